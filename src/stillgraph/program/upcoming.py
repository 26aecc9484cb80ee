"""What an iterator of Python's own is going to give, looked at without advancing it."""

from __future__ import annotations

import collections
import enum
import gc
import itertools
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any


class End(enum.Enum):
    """What stands where an iterator has no more items."""

    END = "the end"

    def __repr__(self) -> str:
        return self.value


class CannotLookError(TypeError):
    """Nobody can look at what an iterator will give: to give it, something of a ``kind`` does something."""

    def __init__(self, kind: type) -> None:
        super().__init__(f"a {kind.__name__}")
        self.kind = kind


_HELD = (list, tuple, range, str, bytes, bytearray, dict, set, frozenset, collections.OrderedDict)
"""What gives the same items to each iterator over it, and runs no code of anybody's for that."""
_EXAMPLES: tuple[Iterable[Any], ...] = (
    *([], (), range(0), range(1 << 70), "", "\xe9", b"", bytearray(), set(), {}.keys(), {}.values(), {}.items()),
    *(reversed([]), reversed(()), reversed({}), reversed({}.values()), reversed({}.items())),
    collections.OrderedDict(),
)
_OVER_ONE = frozenset(type(iter(each)) for each in _EXAMPLES)
_OVER_SEVERAL = (enumerate, zip, itertools.islice, itertools.zip_longest)
_OF_THEIR_OWN = (
    *(itertools.repeat, itertools.product, itertools.permutations, itertools.combinations),
    itertools.combinations_with_replacement,
)
KINDS = frozenset({*_OVER_ONE, *_OVER_SEVERAL, *_OF_THEIR_OWN, itertools.count, itertools.chain, itertools.cycle})
"""The types of iterators into which one can look, if that goes for those that they draw from."""


class LookAhead:
    """The items that an iterator is going to give, which stays where it is.

    Args:
        iterator: of Python's.

    Attributes:
        behind: all that it draws from, by id: itself, other iterators, containers that may be changed.

    Raises:
        CannotLookError: drawing from it does something that cannot be undone.
    """

    def __init__(self, iterator: Any) -> None:
        self.behind: dict[int, Any] = {}
        self._copies: dict[int, Iterator[Any]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: itertools' are not to be copied
            self._copy = self._copied(iterator)
        self._items: list[Any] = []

    def __getitem__(self, position: int) -> Any:
        """The item that comes after ``position`` others; `End.END` if there is none."""
        while len(self._items) <= position:
            self._items.append(next(self._copy, End.END))
        return self._items[position]

    def _copied(self, iterator: Any) -> Iterator[Any]:
        known = self._copies.get(id(iterator))
        if known is None:
            if type(iterator) not in KINDS:
                raise CannotLookError(type(iterator))
            self.behind[id(iterator)] = iterator
            known = self._copies[id(iterator)] = self._rebuilt(iterator, *iterator.__reduce__())
        return known

    def _rebuilt(self, iterator: Any, make: Any, args: tuple[Any, ...], state: Any = None) -> Iterator[Any]:
        kind = type(iterator)
        if kind is itertools.chain:
            return itertools.chain.from_iterable([*self._parts(*(state or ()))])
        if kind in _OVER_SEVERAL:
            args = tuple(self._copied(each) if isinstance(each, Iterator) else each for each in args)
        elif kind is itertools.cycle:
            args, state = (self._copied(args[0]),), ([*state[0]], state[1])  # the list of what to repeat still grows
        elif kind is itertools.count:
            _require(args, (int, float))
        elif kind in _OVER_ONE:
            _require(args[:1], _HELD)
            held = (each for each in gc.get_referents(iterator) if isinstance(each, (dict, set)))
            self._note(next(held, args[0]))  # of a dict or set, they are given a list
        made: Any = make(*args)
        if state is not None:
            made.__setstate__(state)
        return made  # type: ignore[no-any-return]  # of Any

    def _parts(self, waiting: Any = None, active: Any = ()) -> Iterator[Any]:
        """What is left of the parts of a chain."""
        waiting = iter(()) if waiting is None else waiting
        _require((waiting,), _OVER_ONE)  # others may have no end
        for part in (active, *self._copied(waiting)):
            if isinstance(part, Iterator):
                yield self._copied(part)
            else:
                _require((part,), _HELD)
                self._note(part)
                yield part

    def _note(self, container: Any) -> None:
        if isinstance(container, (list, bytearray, dict, set)):
            self.behind[id(container)] = container


def _require(values: Iterable[Any], kinds: Collection[type]) -> None:
    for each in values:
        if type(each) not in kinds:
            raise CannotLookError(type(each))


def state_of(iterator: Any) -> Any:
    """What tells how far an iterator of `KINDS` is, and those that it draws from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _state(iterator)


def _state(part: Any) -> Any:
    if type(part) in KINDS:
        return tuple(map(_state, part.__reduce__()))
    if type(part) in (int, float, range):
        return part
    if type(part) is tuple:
        return tuple(map(_state, part))
    return len(part) if type(part) is list else id(part)


def advance(iterator: Iterator[Any], count: int) -> None:
    """Draw as many items from an iterator, the end included: one that has met it stays there."""
    for _ in range(count):
        next(iterator, None)


def are_separate(iterators: Sequence[Any], containers: Sequence[Any]) -> bool:
    """Whether none of some iterators draws from another, from what another draws from, or from one of the containers.

    Two may run over one container.
    """
    seen = {id(each) for each in containers}
    for iterator in iterators:
        behind = LookAhead(iterator).behind
        if not seen.isdisjoint(behind):
            return False
        seen |= {key for key, each in behind.items() if isinstance(each, Iterator)}
    return True
