"""The programs of one static function: found by guards, bounded in number."""
from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from stillgraph.core.logs import log
from stillgraph.core.warning import warn
from stillgraph.program.exceptions import take_left
from stillgraph.program.outputs import Constant
from stillgraph.program.program import Program
from stillgraph.runtime.calls import growing
from stillgraph.runtime.calls.advice import advice
from stillgraph.runtime.guards.checking import Check
from stillgraph.runtime.guards.explaining import failures
from stillgraph.runtime.native.native import lower
from stillgraph.runtime.native.results import Finish, compile_result
from stillgraph.runtime.native.so_far import found_in

Structure = Any  # an int, or a tuple of an int and names


def call_structure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Structure:
    """What tells calls apart before any guard is looked at: how many positional arguments, and which keywords."""
    return (len(args), *kwargs) if kwargs else len(args)


class CacheInfo(NamedTuple):
    """How a static function's cache has done."""

    hits: int
    misses: int
    programs: int
    evictions: int
    size: int


@dataclass(slots=True, eq=False)
class CapturedCall:
    """A program together with the functions that were generated for it.

    A call runs them in turn: ``inputs = check(args, kwargs)``, ``outputs = run(*inputs)``,
    ``finish(outputs, args, kwargs)``, or where that raises ``fail(error, args, kwargs)``. A program that writes to
    Python's objects midway (`operations.settle`) is run by ``settled`` instead of the last three. ``used`` is the
    cache's: when the program was last used; and so is ``reason``: why none of the programs before it fitted.
    """

    program: Program
    structure: Structure
    check: Check
    run: Callable[..., Sequence[Any]]
    finish: Finish
    settled: Callable[..., Any] | None = None
    acting: tuple[int, ...] | None = None  # regions that leave something behind, see `repeating.regions_that_act`
    rewound: bool = False  # whether it draws at random, and the generators are put back if it fails
    used: int = 0
    reason: str = ""
    checked: bool = False  # against eager PyTorch
    batched: Any = None  # the program for many lanes, a `batched.runner.Batched`, once there is one
    _uncompiled: CapturedCall | None = None

    def uncompiled(self) -> CapturedCall:
        """The same, running PyTorch's operators as they are."""
        if self._uncompiled is None:
            run = lower(self.program, None).run
            self._uncompiled = replace(self, run=run, settled=None)
        return self._uncompiled

    @property
    def visits(self) -> list[int] | None:
        """How often each region of the program began, by `Block.number`; None where that is not counted."""
        return getattr(self.run, "visits", None)

    @property
    def entered(self) -> list[int] | None:
        """How often each region that acts has begun; None where that is not counted."""
        return None if self.visits is None else [self.visits[number] for number in self.acting or ()]

    def fail(self, error: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Carry out what the program did to Python's state before it raised ``error``.

        Returns:
            Whether that is known: it is where the program itself raises, not where one of torch's operations does.
        """
        left = take_left(error)
        if left is None:
            return False
        site, values = left
        compile_result(Constant(None), self.program.midway[site])(values, args, kwargs)
        return True

    def stop(self, error: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Carry out what the program did to Python's state before one of its operations raised ``error``."""
        found = found_in(error)
        if found is None:
            return
        if found.index is not None:
            compile_result(Constant(None), self.program.so_far[found.index])(found.values, args, kwargs)
        if found.left_out:
            places = ", ".join(found.left_out)
            message = f"{self.program.name} fails, and not all is there that it had written by then: {places}"
            warn(message)


class ProgramCache:
    """A bounded set of captured calls.

    Reading takes no lock: the table and the tuples in it are never changed, only replaced (under the lock). The counts
    are exact under the GIL, for CPython does not switch threads within ``self.hits += 1``.
    """

    __slots__ = (
        *("_lock", "_table", "_told_of_growth", "_warned"),
        *("evictions", "hits", "misses", "name", "parameters", "size"),
    )

    def __init__(self, name: str, size: int, parameters: Sequence[str] = ()) -> None:
        """Make an empty cache.

        Args:
            name: the static function's name, for the warning.
            size: how many programs are kept.
            parameters: the names of its positional parameters, by which sentences call the arguments.

        Raises:
            ValueError: the size is less than one.
        """
        if size < 1:
            raise ValueError(f"a cache holds at least one program, not {size}")
        self.name = name
        self.size = size
        self.parameters = tuple(parameters)
        self.hits = self.misses = self.evictions = 0
        self._table: dict[Structure, tuple[CapturedCall, ...]] = {}
        self._lock = threading.Lock()
        self._warned = self._told_of_growth = False

    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[CapturedCall, tuple[Any, ...]] | None:
        """Look for a program that fits a call.

        Returns:
            The captured call and the inputs of its graph, or None.
        """
        # `call_structure`, written out: this is on the path of every call.
        calls = self._table.get((len(args), *kwargs) if kwargs else len(args), ())
        for call in calls:
            inputs = call.check(args, kwargs)
            if inputs is not None:
                self.hits += 1
                call.used = self.hits + self.misses
                if calls[0] is not call:
                    self._move_to_front(call)
                return call, inputs
        return None

    def add(self, call: CapturedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add what was captured for a call that missed, and evict the least recently used where the cache is full.

        The first eviction warns, and says in what the call differs from the most similar one that was cached; before
        that, a list that each call makes longer is told of (see `growing`).
        """
        before = self._recent_first()
        call.reason = self._difference(before, call.structure, args, kwargs) if before else ""  # reads users' objects
        with self._lock:
            self.misses += 1
            call.used = self.hits + self.misses
            calls = self._recent_first()
            warn = len(calls) >= self.size and not self._warned
            if len(calls) >= self.size:
                self._remove(calls[-1])
                self.evictions += 1
                self._warned = True
            self._table = {**self._table, call.structure: (call, *self._table.get(call.structure, ()))}
        data: dict[str, Any] = {"function": self.name, "programs": min(len(calls) + 1, self.size), "size": self.size}
        log("cache", "added", f"{self.name} has {data['programs']} of {self.size} programs", **data)
        if len(calls) >= self.size:
            log("cache", "dropped", f"the program of {self.name} that was used longest ago is dropped", **data)
        recent = [*reversed(calls[: growing.CALLS - 1]), call]
        grows = None if self._told_of_growth else growing.growing([each.program for each in recent])
        if grows is not None:
            self._told_of_growth = True
            source, lengths = grows
            warnings.warn(growing.told(self.name, self._named(str(source)), lengths), RuntimeWarning, stacklevel=5)
        elif warn:  # outside the lock: this reads the user's objects
            warnings.warn(self._what_keeps_changing(calls, call, args, kwargs), RuntimeWarning, stacklevel=5)

    def be_quiet(self) -> None:
        """Warn of nothing: somebody else does."""
        self._warned = self._told_of_growth = True

    def peek(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CapturedCall | None:
        """The captured call that fits a call, if there is one; it does not count as used."""
        calls = self._table.get(call_structure(args, kwargs), ())
        return next((call for call in calls if call.check(args, kwargs) is not None), None)

    def explain_miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Why no program fits a call, in one sentence; None where one does."""
        structure = call_structure(args, kwargs)
        if self.peek(args, kwargs) is not None:
            return None
        return self._difference(self._recent_first(), structure, args, kwargs)

    def alike(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[CapturedCall, ...]:
        """What was captured for calls of as many arguments, of the same names."""
        return self._table.get(call_structure(args, kwargs), ())

    def _difference(
        self, calls: list[CapturedCall], structure: Structure, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> str:
        """In what a call differs from the most similar one that was captured."""
        if not calls:
            return "nothing has been captured yet"
        similar = [call for call in calls if call.structure == structure]
        reasons = [list(failures(call.program.guards, args, kwargs, call.program.inputs)) for call in similar]
        differ = "its number of arguments, or their names, differ from those of the calls so far"
        return self._named(min((found for found in reasons if found), key=len, default=[differ])[0])

    def _named(self, sentence: str) -> str:
        """A sentence with the parameters' names for ``args[0]``, ``args[1]``."""

        def name(found: re.Match[str]) -> str:
            position = int(found[1])
            return self.parameters[position] if position < len(self.parameters) else found[0]

        return re.sub(r"(?<![\w.'\"])args\[(\d+)\]", name, sentence)

    @property
    def calls(self) -> tuple[CapturedCall, ...]:
        """What was captured, the most recently used first."""
        return tuple(self._recent_first())

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs, the most recently used first."""
        return tuple(call.program for call in self._recent_first())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each program was made, in the order of `programs`: in what its call differed from those before it."""
        return tuple(call.reason for call in self._recent_first())

    def info(self) -> CacheInfo:
        """The counts so far."""
        return CacheInfo(self.hits, self.misses, len(self._recent_first()), self.evictions, self.size)

    def clear(self) -> None:
        """Forget every program; the counts stay."""
        with self._lock:
            self._table = {}

    def _recent_first(self) -> list[CapturedCall]:
        calls = [call for group in self._table.values() for call in group]
        return sorted(calls, key=lambda call: call.used, reverse=True)

    def _move_to_front(self, call: CapturedCall) -> None:
        with self._lock:
            group = self._table.get(call.structure, ())
            if call in group:  # it may have been evicted meanwhile
                rest = (other for other in group if other is not call)
                self._table = {**self._table, call.structure: (call, *rest)}

    def _remove(self, call: CapturedCall) -> None:
        rest = tuple(other for other in self._table[call.structure] if other is not call)
        others = {structure: group for structure, group in self._table.items() if structure != call.structure}
        self._table = {**others, call.structure: rest} if rest else others

    def _what_keeps_changing(
        self, calls: list[CapturedCall], new: CapturedCall, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> str:
        reason = self._difference(calls, new.structure, args, kwargs)
        programs = [each.program for each in (new, *calls) if each.structure == new.structure]
        return (
            f"{self.name} already has {self.size} programs and needs one more, so the least recently used is dropped: "
            f"{reason}. Where that keeps changing, every call is captured anew. {advice(reason, programs)}."
        )
