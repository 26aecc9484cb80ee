"""Iterators: what happens to them when something runs over them."""

from __future__ import annotations

import gc
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_our_module, is_standard_library, is_torch
from stillgraph.core.lookup import class_member, is_exactly, own_attributes
from stillgraph.core.rewritten import values_in
from stillgraph.program.upcoming import CannotLookError
from stillgraph.trace.code.finalised import close_all
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.effects.counters import Counters
from stillgraph.trace.effects.upcoming import ADVANCE_OUTSIDE, AS_LIST, Ahead, Outside, refuse_outer
from stillgraph.trace.graph.region import Region
from stillgraph.trace.values.lists import has_spread

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session

_ADVANCE_BEFORE = "Advance it before the branch or loop, or outside of the static function, and pass what it gives."
_STOPPED = "an iterator is used again that was left where only the run decides"
_MOST = 1000  # objects that are looked at: an iterator leads to few others
_VIEWS: tuple[Any, ...] = ([], (), range(0), {}.keys(), {}.values(), {}.items())
_OVER_VIEWS = tuple(type(run(each)) for each in _VIEWS for run in (iter, reversed))
_MADE_OF_ARGUMENTS = (enumerate, zip, map, filter, *_OVER_VIEWS)

_KNOWN: tuple[Iterable[Any], ...] = ([], (), range(0), "", "é")
_OVER_KNOWN = tuple(type(iter(each)) for each in _KNOWN)


class Fresh:
    """An iterator that the capture has made of what a call was given, for this call alone to draw from."""

    __slots__ = ()


class Iterators:
    """The iterators that a capture has made and advanced.

    Attributes:
        counters: those of `itertools.count` among them.
        advances: of those that were advanced and cannot be put back: which they are.
        count: how many have been made: those that are made later have larger numbers.
        asking: the methods ``__next__`` of the user's that are being called, by loops.
        watches: on containers that something runs over (`operators.containers.watched`), as long as it does.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.outside = Outside(session)
        self.counters = Counters(session)
        self.advances: list[int] = []
        self.count = 0
        self.asking: list[CodeType] = []
        self._may_raise: Counter[CodeType] = Counter()
        self.watches: weakref.WeakSet[Any] = weakref.WeakSet()
        self._made: dict[int, tuple[Any, Region | None, int]] = {}  # where they are from, and which they are
        self._over_outer: set[int] = set()  # those among them that advance others from outside the function
        self._binding: weakref.WeakSet[GeneratorType[Any, Any, Any]] = weakref.WeakSet()
        self._stopped: dict[int, Any] = {}  # those of which only the run knows how far they were advanced

    def made(self, iterator: Any, given: Any) -> None:
        """Remember where an iterator was made.

        Args:
            iterator: what a call gave.
            given: the call's arguments; it may advance the iterators among them.
        """
        leaves = torch.utils._pytree.tree_leaves(given)
        if any(each is iterator for each in leaves):
            return  # ``iter`` gives an iterator itself
        stands_in = is_our_module(type(iterator).__module__)  # what it does, the capture notes by itself
        self._made_of(iterator, leaves, type(iterator) in _MADE_OF_ARGUMENTS or stands_in)

    def _made_of(self, iterator: Any, leaves: list[Any], is_all: bool) -> None:
        """As `made`; ``is_all`` tells whether it advances no others than those among ``leaves``."""
        behind = [leaf for leaf in leaves if isinstance(leaf, Iterator) and not isinstance(leaf, (Ahead, Fresh))]
        known = [self._made.get(id(each), (None, None, 0)) for each in behind]
        region = next((each for _, each, _ in known if each is not self.session.region), self.session.region)
        if any(self.session.is_outer(each) or id(each) in self._over_outer for each in behind):
            self._over_outer.add(id(iterator))
        self.count += 1
        number = min([self.count, *(each for *_, each in known)]) if is_all else 0  # it advances the older ones, too
        self._made[id(iterator)] = (self._held(iterator), region, number)
        self.counters.made(iterator)

    def made_of_parts(self, generator: Any) -> None:
        """Remember where a generator expression was made; what it runs over may be an iterator from before."""
        parts = list(behind(generator))[1:]
        leaves = [each for each in parts if id(each) in self._made or not self.session.is_new(each)]
        self._made_of(generator, leaves, True)

    def _held(self, iterator: Any) -> Any:
        generator = drawn_from(iterator)
        return iterator if generator is None else self._while_there_is(generator, id(iterator))

    def _while_there_is(self, generator: Any, number: int) -> Any:
        """What stands for the iterator with an id that goes with a generator, itself or one that draws from it.

        A generator cleans up when the code has let go of it: nothing of the capture's is to hold it.
        """

        def gone(_: Any) -> None:
            self._made.pop(number, None)
            self._over_outer.discard(number)
            self._stopped.pop(number, None)

        return weakref.ref(generator, gone)

    def close_generators(self) -> None:
        """End the generators that were begun: what they clean up is to be undone with the rest, not done later."""
        with self.session.executed.watching():
            close_all([held for held, *_ in reversed(self._made.values())], self.session.is_outer)

    def forget(self) -> None:
        """Let go of the user's objects: a capture that has ended lives until Python looks for cycles."""
        self.outside.forget()
        self.counters.forget()
        self._made.clear()
        self._over_outer.clear()
        self._stopped.clear()

    def before_advancing(self, iterator: Any) -> None:
        """Refuse to advance what is from outside, or in an arm what is from before it: the other arm finds it advanced.

        Raises:
            CaptureError: it is that, or in an arm nobody knows where it is from; or only the run knows where it stands.
        """
        if isinstance(iterator, Ahead):
            return
        self.require_known(iterator)
        known = self._made.get(id(iterator))
        self.advances.append(known[2] if known is not None else 0)
        if isinstance(iterator, Iterator):
            self.before_beginning(iterator)
        if isinstance(iterator, Iterator) and (self.session.is_outer(iterator) or id(iterator) in self._over_outer):
            raise refuse_outer(iterator)

    def counted(self, iterator: Any) -> bool:
        """Whether `Counters.advance` gives what comes next: of a counter that was made before the branch or loop."""
        known = self._made.get(id(iterator))
        is_older = self.session.in_arm and known is not None and known[1] is not self.session.region
        return self.counters.begin(iterator) if is_older else self.counters.is_counted(iterator)

    def stopped(self, iterators: Iterable[Any]) -> None:
        """Note that only the run knows how far iterators were advanced: the capture goes on to their end."""
        for each in iterators:
            if is_advanced_unseen(each):
                self._stopped[id(each)] = self._held(each)

    def binds(self, generator: Any) -> None:
        """Note a generator expression that binds variables of the user's unseen."""
        self._binding.add(generator)

    def binds_unseen(self, iterator: Any) -> bool:
        """Whether an iterator is such a generator expression."""
        return isinstance(iterator, GeneratorType) and iterator in self._binding

    def require_known(self, *values: Any) -> None:
        """To be called before iterators among values are advanced, or looked at.

        Raises:
            CaptureError: only the run knows where one of them stands, or one that it draws from.
        """
        iterators = [value for value in values if isinstance(value, Iterator)]
        if any(map(self.counters.is_counted, iterators)):
            raise refuse("SG305", _STOPPED, location=here(), hint=AS_LIST)
        if not self._stopped:
            return
        stopped = [each for iterator in iterators for each in behind(iterator) if id(each) in self._stopped]
        if stopped:
            self._require_positions(stopped)
            raise refuse("SG305", _STOPPED, location=here(), hint=AS_LIST)

    def before_beginning(self, iterator: Any) -> None:
        """Refuse to draw in an arm from an iterator of Python's that was made before it.

        Raises:
            Restart: it was, and would better be one that the arms join.
            CaptureError: it was, or nobody knows where it is from.
        """
        known = self._made.get(id(iterator))
        if self.session.in_arm and (known is None or known[1] is not self.session.region):
            if known is not None:
                self._require_positions([iterator])
            message = "an iterator is advanced in a branch or loop that began after it"
            raise refuse("SG305", message, location=here(), hint=_ADVANCE_BEFORE)

    def _require_positions(self, iterators: list[Any]) -> None:
        """Begin anew with iterators that branches join, if these are over known lists and the like."""
        if all(type(each) in _OVER_KNOWN for each in iterators) and not self.session.knowledge.positions:
            raise Restart("positions", None)

    def is_made_here(self, iterator: Any) -> bool:
        """Whether an iterator was made in the block that is being run, and in no branch or loop around."""
        known = self._made.get(id(iterator))
        return known is not None and known[1] is self.session.region

    def may_raise(self, method: CodeType) -> None:
        """Told that a method ``__next__`` gave an item, and that the run may raise something in place of it.

        Raises:
            Restart: it did so many times, and nothing else may end the loop.
        """
        self._may_raise[method] += 1
        if self._may_raise[method] > self.session.options.unroll_limit:
            self.require_loop(method)

    def require_loop(self, method: CodeType) -> None:
        """Begin anew with loops that can be staged around a method ``__next__``, if it is not so yet."""
        if method not in self.session.knowledge.iterators:
            raise Restart("iterators", method)

    def before_raise(self, kind: type[BaseException] | None) -> None:
        """Refuse to end a loop where only the run knows whether its iterator has another item.

        Raises:
            Restart: a method ``__next__`` is being called, and raises just that: loops are to follow it.
            CaptureError: it is called where no loop can.
        """
        if self.asking and kind is not None and issubclass(kind, StopIteration):
            self.require_loop(self.asking[-1])
            message = "only the run knows whether an iterator has another item"
            raise refuse("SG206", message, location=here(), hint="Write a while loop with that condition.")

    def to_draw_from(self, value: Any) -> Any:
        """What is drawn from in the place of a value: of an iterator from outside, what stands for it.

        To be called before code that the capture does not see may run over a value, which advances iterators.

        Raises:
            CaptureError: as `before_advancing`.
        """
        if not is_advanced_unseen(value):
            return value
        require_known(value)
        ahead = None if id(value) in self._over_outer else self._ahead(value)
        if ahead is None:
            self.before_advancing(value)
        return value if ahead is None else ahead

    def before_looking(self, value: Any) -> None:
        """To be called before something shows how far an iterator is, or copies it.

        Raises:
            CaptureError: it is one from outside, of which another call may have another, elsewhere.
        """
        if is_advanced_unseen(value) and self._ahead(value) is not None:
            message = f"it is looked at how far a {type(value).__name__} from outside the function is"
            raise refuse("SG305", message, location=here(), hint=ADVANCE_OUTSIDE)

    def _ahead(self, iterator: Any) -> Any:
        try:
            return self.outside.ahead(iterator)
        except (CannotLookError, RuntimeError):  # the latter of a dict or set that was changed since
            return None


def is_advanced_unseen(value: Any) -> bool:
    """Whether a value is an iterator that the journal cannot put back: a generator, or one of Python's own.

    What the capture uses for iterators notes it by itself, a user's class writes its attributes.
    Torch's and the standard library's classes do so unseen.
    """
    kind = type(value)  # what stands for an exception is not asked what it is
    if not issubclass(kind, Iterator) or is_our_module(kind.__module__):
        return False
    method = class_member(kind, "__next__")
    if not isinstance(method, FunctionType):
        return True
    return is_torch(method.__code__.co_filename) or is_standard_library(method.__code__.co_filename)


def lists_behind(iterator: Any) -> list[Any]:
    """The lists that an iterator of Python's runs over."""
    found = gc.get_referents(iterator) if is_exactly(iterator, _HANDING_OUT) else behind(iterator)
    return [each for each in found if isinstance(each, (list, deque))]


_HANDING_OUT: tuple[type, ...] = (type(iter([])), type(reversed([])), type(iter(())), type(iter(deque())))
"""Iterators over a sequence: they run over none of its elements, as ``chain`` does."""


def require_known(iterator: Any) -> None:
    """To be called before an iterator of Python's is advanced: a list under it must not have become one of the run's.

    Raises:
        CaptureError: it has. Python would count what stands for several elements as one.
    """
    if any(map(has_spread, lists_behind(iterator))):
        message = "an iterator goes on over a list of which only the run knows by now how long it is"
        raise refuse("SG206", message, location=here(), hint="Make the iterator behind the last change of the list.")


def drawn_from(iterator: Any) -> Any:
    """The generator that an iterator is, or that Python's own (``enumerate``, ``zip``) draw from; None for none."""
    if isinstance(iterator, GeneratorType):
        return iterator
    held = gc.get_referents(iterator)
    held += [each for several in held if type(several) is tuple for each in several]  # as ``zip`` keeps them
    generators = (each if isinstance(each, GeneratorType) else _drawn_by_pythons(each) for each in held)
    return next((each for each in generators if each is not None), None)


def _drawn_by_pythons(value: Any) -> Any:
    is_pythons = type(value).__module__ in ("builtins", "itertools") and isinstance(value, Iterator)
    return drawn_from(value) if is_pythons else None


def behind(iterator: Any) -> Iterator[Any]:
    """An iterator, those that it draws from, and what iterators of Python's will run over (``chain``, ``zip``)."""
    seen: set[int] = set()
    waiting = deque([iterator])
    while waiting and len(seen) < _MOST:
        each = waiting.popleft()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if not isinstance(each, Iterator) or isinstance(each, Ahead):
            continue
        referred = gc.get_referents(each)
        if type(each).__module__ in ("builtins", "itertools") and not isinstance(each, GeneratorType):
            waiting += referred
            waiting += (part for several in referred if is_exactly(several, (tuple, list)) for part in several)
            continue
        if isinstance(each, GeneratorType) and each.gi_frame is not None:
            referred += values_in(each.gi_frame)
        referred += (own_attributes(each) or {}).values()
        waiting += (value for value in referred if isinstance(value, Iterator))  # it need not run over the others
