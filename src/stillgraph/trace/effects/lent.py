"""Iterators from outside in the hands of code that is left alone: nobody sees it draw.

So while such code runs, an object of ours stands for each of them, wherever the code may find it. It draws as rewritten
code does: what it gives is read ahead and guarded, and the program advances the iterator.
"""

from __future__ import annotations

import collections
import functools
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from types import FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any

from torch.utils._pytree import is_namedtuple_instance

from stillgraph.core.diagnostics import StateLostError, refuse
from stillgraph.core.files import is_dependency, is_ours
from stillgraph.program.sources import Attribute, Cell, Global, Held, Item, Slot, Source
from stillgraph.program.upcoming import KINDS, state_of
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.reachable_values import places_within
from stillgraph.trace.effects.iterators import is_advanced_unseen
from stillgraph.trace.effects.upcoming import ADVANCE_OUTSIDE
from stillgraph.trace.heap.contents import kind_of_container
from stillgraph.trace.heap.places import AttributePlace, CellPlace, ContentsPlace, GlobalPlace, Place

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session

_DRAWING = frozenset({"send", "throw", "close", "read", "read1", "readall", "readline", "readlines", "readinto"})
_UNSEEN = "an iterator from outside the function is advanced by code that is left alone, and found where nobody looks"


class Lent(Iterator[Any]):
    """Stands for an iterator from outside, for code that is left alone.

    Behind the capture, whoever has kept one draws from the iterator itself.
    """

    def __init__(self, session: Session, iterator: Any) -> None:
        self._session, self._iterator = session, iterator

    @property  # type: ignore[misc]  # nobody assigns it
    def __class__(self) -> Any:
        return type(self._iterator)

    def __next__(self) -> Any:
        return next(self._drawn_from())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drawn_from() if name in _DRAWING else self._iterator, name)

    def __len__(self) -> int:
        return len(self._iterator)

    def __bool__(self) -> bool:
        return bool(self._iterator)

    def __enter__(self) -> Any:
        self._iterator.__enter__()
        return self

    def __exit__(self, *raised: Any) -> Any:
        return self._iterator.__exit__(*raised)

    def __length_hint__(self) -> Any:
        return self._look("__length_hint__")

    def __copy__(self) -> Any:
        return self._look("__copy__")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._look("__reduce_ex__", protocol)

    def _look(self, name: str, *args: Any) -> Any:
        if not self._session.ended:
            self._told(self._session.iterators.before_looking)
        return getattr(self._iterator, name)(*args)

    def _drawn_from(self) -> Any:
        if self._session.ended:
            return self._iterator
        return self._told(self._session.iterators.to_draw_from)

    def _told(self, what: Callable[[Any], Any]) -> Any:
        try:
            return what(self._iterator)
        except BaseException as error:  # which the code's handlers may take for one of their own
            raise self._session.executed.noted(error) from None


class Lending:
    """The iterators from outside that a function which is left alone may find, lent to it while it runs.

    Args:
        session: the capture.
        function: what is called.
        handed: with what, also by name.
    """

    def __init__(self, session: Session, function: FunctionType, handed: tuple[Any, ...]) -> None:
        self._session, self._handed = session, (function, *handed)
        self._undo: list[Callable[[], None]] = []
        with session.executed.paused():
            _find_from(session, function)
            found = session.finder.everything()
            outer = [(value, source) for value, source in found if is_advanced_unseen(value)]
        self._outer = {id(value): source for value, source in outer}
        self._lent: dict[int, Any] = {id(value): Lent(session, value) for value, _ in outer}
        self._back: dict[int, Any] = {id(lent): lent._iterator for lent in self._lent.values()}
        self._stood = [(value, _reduced(value), state_of(value)) for value, _ in outer if type(value) in KINDS]

    def __enter__(self) -> Lending:
        if self._lent:
            with self._session.executed.paused():
                self._lend()
        return self

    def __exit__(self, *raised: object) -> None:
        with self._session.executed.paused():
            while self._undo:
                self._undo.pop()()
            for place, held in [*places_within(self._handed)] if self._lent else ():  # where the code has put one
                self._put(place, held, self._back)
            self._undo.clear()
            advanced = [(each, before, stood) for each, before, stood in self._stood if state_of(each) != stood]
        for iterator, before, stood in advanced:
            if before[2:]:
                iterator.__setstate__(before[2])
            if state_of(iterator) != stood:
                raise StateLostError(f"{_UNSEEN}, and nobody can put it back: it is a {type(iterator).__name__}")
        if advanced:
            raise refuse("SG305", _UNSEEN, location=here(), hint=ADVANCE_OUTSIDE)

    def call(self, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function gives: ``run(args, kwargs)`` calls it."""
        if not self._lent:
            return run(args, kwargs)
        args = _exchanged(args, self._lent)
        kwargs = {name: _exchanged(value, self._lent) for name, value in kwargs.items()}
        with self:
            result = run(args, kwargs)
        if isinstance(result, GeneratorType):
            return self._advanced(result)
        return _exchanged(result, self._back)

    def _advanced(self, generator: Any) -> Generator[Any, Any, Any]:
        """A generator that the code has made, which is lent to whenever it runs."""
        advance, given = generator.send, None
        while True:
            try:
                with self:
                    item = advance(given)
            except StopIteration as end:
                return end.value
            try:
                advance, given = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:  # of any kind: the generator gets it
                advance, given = generator.throw, error

    # ---- places
    def _lend(self) -> None:
        for place, held in [*places_within(self._handed)]:
            self._put(place, held, self._lent)
        for source in self._outer.values():
            found = self._place(source)
            if found is not None:
                self._put(found, found.get(), self._lent)

    def _put(self, place: Place, held: Any, shown_for: dict[int, Any]) -> None:
        """Let a place that holds iterators, or tuples of them, show others in their place."""
        if isinstance(place, ContentsPlace):
            target: Any = place.target
            entries = held.items() if isinstance(held, dict) else enumerate(held)
            for key, value in [] if isinstance(target, set) else [*entries]:
                self._put_entry(target, key, value, shown_for)
            return
        shown = _exchanged(held, shown_for)
        if shown is not held:
            place.set(shown)
            self._undo.append(functools.partial(_set_back, place, shown, held))

    def _put_entry(self, target: Any, key: Any, value: Any, shown_for: dict[int, Any]) -> None:
        shown = _exchanged(value, shown_for)
        if shown is value:
            return
        kind = kind_of_container(target)
        kind.__setitem__(target, key, shown)

        def set_back() -> None:
            entries = kind.items(target) if isinstance(target, dict) else enumerate(kind.__iter__(target))
            for at in [at for at, now in entries if now is shown]:
                kind.__setitem__(target, at, value)

        self._undo.append(set_back)

    def _place(self, source: Source) -> Place | None:
        """Where an iterator, or the tuple that has it, stands; None where it was handed over."""
        match source:
            case Global(module=module, name=name):
                return GlobalPlace(sys.modules[module].__dict__, name)
            case Cell(name=name, cell=cell):
                return CellPlace(cell, name)
            case Item(base=Attribute(base=Held(value=type() as kind), name="__dict__"), key=name):
                return AttributePlace(kind, name)
            case Attribute(base=base, name=name) | Slot(base=base, table="__dict__", name=name):
                return AttributePlace(self._session.finder.value_at(base), name)
            case Item(base=base):
                holder = self._session.finder.value_at(base)
                if isinstance(holder, (list, dict, collections.deque)):
                    return ContentsPlace(holder)
                return self._place(base) if isinstance(holder, tuple) else None
        return None


def _set_back(place: Place, shown: Any, held: Any) -> None:
    if place.get() is shown:  # the code may have put something else there
        place.set(held)


def _exchanged(value: Any, shown_for: dict[int, Any]) -> Any:
    """A value, or a tuple with it, with others in the place of those that have them by id."""
    if id(value) in shown_for:
        return shown_for[id(value)]
    if type(value) is not tuple and not is_namedtuple_instance(value):
        return value
    items = [_exchanged(each, shown_for) for each in value]
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return type(value)(*items) if is_namedtuple_instance(value) else tuple(items)


def _reduced(iterator: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, of those of `itertools`
        return iterator.__reduce__()


def _find_from(session: Session, function: FunctionType) -> None:
    """Walk from a function that is left alone, and from those of the user's that it leads to."""
    known = 0
    waiting = [function]
    while waiting:
        for each in waiting:
            session.finder.add_function(each)
        met = session.finder.reached_since(known)
        known += len(met)
        waiting = [each for each in met if isinstance(each, FunctionType) and _is_followed(each)]


def _is_followed(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return not (is_dependency(file) or is_ours(file))
