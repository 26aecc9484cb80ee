"""What a recorder answers, and does when it is told something, that stages nothing and belongs to no call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import CodeType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from stillgraph.core.diagnostics import refuse
from stillgraph.core.parcel import opened
from stillgraph.program.exceptions import copied
from stillgraph.program.so_far import SoFar
from stillgraph.program.sources import Source
from stillgraph.trace.code.frames import here
from stillgraph.trace.heap.places import Place
from stillgraph.trace.values.raised import Raised


class PlainAnswers(TorchFunctionMode):
    """What the modules that record ask of a recorder, and what they tell it. Others answer otherwise, see `Session`."""

    has_several = False  # whether any value is one or another by the path: None or not, or without a join

    # ---- asked
    def is_from_before(self, value: Any) -> bool:
        """Whether something that can be changed was there before the capture, and no path to it is known."""
        return False

    def attributes_of(self, value: Any) -> Source | None:
        """The path to a dictionary of attributes, where the object that has them was there before the capture."""
        return None

    def is_outer(self, value: Any) -> bool:
        """Whether an object was there before the capture."""
        return False

    def is_new(self, value: Any) -> bool | None:
        """Whether the capture has made an object; None where there is no telling."""
        return None

    def known_unboundness(self, value: Any) -> bool | None:
        """Whether a variable with a value is known to have none on the path taken; None if only the run knows."""
        return False

    def is_found(self, value: Any) -> bool:
        """Whether a path leads to an object, or to what it stands for."""
        return False

    def original(self, value: Any) -> Any:
        """The tuple from before that one of the capture's stands for, with inputs in it; anything else itself."""
        return value

    def was_there(self, value: Any) -> bool:
        """Whether the call could reach this very object before the capture, which looks at all that it reaches."""
        return False

    @property
    def in_arm(self) -> bool:
        """Whether a staged branch or loop is being recorded; a recorder that stages nothing has none."""
        return False

    def is_rewritten(self, code: CodeType) -> bool:
        """Whether a code object is rewritten code; there is none without a front end."""
        return False

    def has_callbacks(self) -> bool:
        """Whether a backward pass may call code of the user's."""
        return False

    def may_change(self, place: Place) -> bool:
        """Whether code that the program calls as it is may change a place."""
        return False

    def entry_gradient(self, fake: torch.Tensor) -> torch.Tensor | None:
        """What ``.grad`` of a tensor holds when the call begins; a recorder without a call has no older tensors."""
        return None

    def so_far(self) -> SoFar | None:
        """What was written to objects that outlive the call by now; a recorder without a call has none."""
        return None

    def left_behind(self) -> tuple[int, list[Any]] | None:
        """What the path that is about to raise did to objects that outlive the call: see `Program.midway`."""
        return None

    def known_absence(self, value: Any) -> bool | None:
        """Whether a staged value that is ``None`` on some path is it on the one being recorded, if that is known."""
        return None

    def either(self, value: Any, use: Callable[[Any], Any]) -> Any:
        """What ``use`` gives for an `Unjoined` value; a recorder that stages nothing has none."""
        value.refuse()

    def with_or_without(self, value: Any, use: Callable[[Any], Any]) -> Any:
        """What ``use`` gives for a value that may be None; a recorder that stages nothing has none."""
        return use(value)

    def choices_of(self, value: Any) -> tuple[int, ...] | None:
        """The few whole numbers of which a value is one; None where that is not known."""
        return None

    def is_one_of(self, value: Any, choices: tuple[int, ...]) -> None:
        """Told of which few whole numbers a value is one."""

    def is_entry(self, number: Any, entry: Any) -> Any:
        """Whether a staged number is that of an entry of a table; here there are no tables."""
        raise NotImplementedError

    def possible_entries(self, number: Any, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        """The entries whose number a staged one may be where we are."""
        return entries

    def tells_entry(self, value: Any, entry: Any, flag: Any, when: bool) -> None:
        """Told that a value is an entry of its table just where a flag is ``when``."""

    def excludes_entry(self, value: Any, entry: Any, flag: Any, when: bool) -> None:
        """Told that a value is no such entry of its table where a flag is ``when``."""

    def entry_number(self, entry: Any) -> int:
        """The number by which the graph knows a constant."""
        raise NotImplementedError

    def entry_of(self, value: Any) -> Any:
        """The number of the entry that a value is: a constant, or one of several."""
        raise NotImplementedError

    def on_each_path(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What one gives where a staged condition holds, and the other where not; here the capture knows it."""
        return then() if condition else otherwise()

    def may_be_none(self, value: Any) -> bool:
        """Whether a staged value may be ``None`` where we are."""
        return False

    # ---- told
    def needs_value(self, given: Any) -> None:
        """To be called where a torch call needs a value that only the run knows, among what it is given."""

    @contextlib.contextmanager
    def assuming(self, predicate: Any, taken: bool) -> Iterator[None]:
        """Record what is only reached where a staged condition is true, or is false."""
        yield

    def decided(self, flag: Any) -> bool | None:
        """How a staged condition is decided where we are; None if only the run knows."""
        return None

    def came_from(self, value: Any, condition: Any, written: int | None, sides: tuple[Any, Any]) -> None:
        """Told which values of its two arms a branch hands out as one.

        Args:
            value: what it hands out.
            condition: of the branch.
            written: how often a condition that is a tensor had been written when the branch asked it.
            sides: what the arm of a true condition leaves, and the other.
        """

    def constant_here(self, value: Any) -> Any:
        """A constant for a staged value that is it on the path being recorded; any other value itself."""
        return value

    def learn(self, predicate: Any, taken: bool) -> None:
        """Told that from here on a staged condition is decided: where it is not, the program has raised."""

    def implies(self, result: Any, when: bool, flag: Any) -> None:
        """Told that where the condition ``result`` is ``when``, the condition ``flag`` is so too."""

    def is_certainly(self, value: Any, truth: bool) -> None:
        """Told what ``bool(value)`` is in every run, though only the run knows the value."""

    def known_truth(self, value: Any) -> bool | None:
        """What ``bool(value)`` is in every run; None where that is not known."""
        return None

    def unboundness(self, value: Any) -> Any:
        """Whether the variable with a value has none on the path taken; staged where only the run knows."""
        return False

    def asked_unboundness(self, value: Any) -> Any:
        """As `unboundness`, if that was asked before where we are; else None."""
        return None

    def before_raise(
        self, kind: type[BaseException] | None, certain: bool = False, raised: tuple[Raised, ...] = ()
    ) -> None:
        """To be called before something is recorded that raises, or may raise, when the program runs.

        Args:
            kind: of the exception; None if that is not known.
            certain: whether it is a ``raise`` or ``assert`` of the user's.
            raised: what it may be, as far as more is known than its kind.
        """

    def before_risk(self) -> None:
        """To be called before an operation is recorded that may raise when the program runs."""
        self.before_raise(None)

    def before_failures(self, failures: Iterable[Exception] | None) -> None:
        """To be called before an operation is recorded that may raise some exceptions, of which all is known.

        Args:
            failures: each that it may raise; None if they are not known.
        """
        if failures is None:
            self.before_risk()
        for error in failures or ():
            known = copied(error)
            self.before_raise(type(error), raised=(Raised(type(error), True, known, known),))

    def unpacked(self, value: Any) -> Any:
        """What is in a parcel, on which the capture depends from now on; anything else as it is."""
        return opened(value)

    def meets_several(self) -> None:
        """To be called where a value comes up that is one or another by the path."""
        self.has_several = True

    def watch_reads(self, target: Any, name: str) -> None:
        """An object gets an attribute on some paths only: see to it that all that reads one of that name is told.

        Raises:
            JoinFailure: code has got hold of its dictionary.
        """

    def follow_libraries(self) -> None:
        """To be called where code that is not rewritten would not see what is of the run, such as a list's length."""

    def before_unseen(self, what: str) -> None:
        """To be called where code that is not rewritten does something only rewritten code may do."""
        raise refuse("SG305", what, location=here())

    def before_unseen_write(self) -> None:
        """To be called where something turns up that code has stored which is not rewritten."""

    def calling_python(
        self, handed: Iterable[Any], what: str, changed: Iterable[Place] = ()
    ) -> AbstractContextManager[None]:
        """To be around the recording of an operation that calls Python code as it is.

        Args:
            handed: what is called, and what leads to more such code; together with what it is given, in a tuple.
            what: a name for it, for messages.
            changed: what torch's part of that code changes.
        """
        return contextlib.nullcontext()

    def calling_autograd(self, what: str) -> AbstractContextManager[None]:
        """As `calling_python`, for a backward pass with all the hooks that it may come by."""
        return contextlib.nullcontext()
