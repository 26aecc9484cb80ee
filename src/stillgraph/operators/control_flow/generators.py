"""Generators: a loop over one is staged by running the generator, with the loop's body for each ``yield``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import FunctionType, GeneratorType
from typing import Any, NoReturn

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.conditions.branches import if_
from stillgraph.operators.containers.drawing import items, iterable_of
from stillgraph.operators.dispatch import for_
from stillgraph.operators.elements.stand_ins import StandIn
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.heap.exits import BREAK, Exit
from stillgraph.trace.heap.places import MISSING, AttributePlace

Emit = Callable[[Any], Any]
"""Takes what is yielded; gives whether the loop over the generator was left."""

_GENERATOR = 0x20  # CO_GENERATOR


class Produced(StandIn, kind=GeneratorType):
    """A generator that has not begun. A loop runs it (`run`); anything else draws from it, as Python would."""

    __slots__ = ("__weakref__", "_draw", "_drawn", "_run", "returned")

    def __init__(self, run: Callable[[Emit], Any], draw: Callable[[], Iterator[Any]]) -> None:
        self.returned: Any = None  # by the generator, when it has been run to its end
        self._run = run
        self._draw = draw
        self._drawn: Any = None

    @property
    def begun(self) -> bool:
        """Whether something was drawn from it."""
        return self._drawn is not None

    def run(self, emit: Emit) -> None:
        """Run the generator to its end, or until ``emit`` says that the loop was left."""
        self._note()
        self._drawn = iter(())
        left: list[bool] = []

        def watched(item: Any) -> Any:
            is_left = emit(item)
            if is_left is not False:
                left.append(True)
            return is_left

        taking: Any = watched
        taking.nothing, taking.delegated = MISSING, Delegated
        capture = session()
        with contextlib.nullcontext() if capture is None else capture.handlers.answering(StopIteration):
            self.returned = self._run(taking)
        if left:
            self._drawn = _advanced()

    def _note(self) -> None:
        """To be called before it is drawn from: what one arm draws is there for the other."""
        capture = session()
        if capture is not None:
            capture.journal.note(AttributePlace(self, "_drawn"))

    def _begin(self) -> None:
        if self._drawn is None:
            self._note()
            self._drawn = _noted(self._draw(), self)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._begin()
        if isinstance(self._drawn, Unjoined):
            message = "a generator is used again that only some path has drawn from"
            raise refuse("SG206", message, location=here(), hint=_AS_LIST)
        return next(self._drawn)

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS or type(self) is not Produced:
            self._fail_to_find(name)
        self._begin()
        return getattr(self._drawn, name)

    def _fail_to_find(self, name: str) -> NoReturn:
        """Raise what Python does for an attribute that there is not, and refuse what shows how far a generator is."""
        kind = type(self).stands_for
        if kind is not None and hasattr(kind, name):
            self.refuse()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)


_METHODS = frozenset({"send", "throw", "close"})


def is_fresh(value: Any) -> bool:
    """Whether a value is a generator that a loop can run."""
    return isinstance(value, Produced) and not value.begun


class Delegated:
    """What a ``yield from`` takes the values of, for a generator that is run inside out.

    Attributes:
        items: what a loop runs over.
    """

    def __init__(self, iterable: Any) -> None:
        iterable = iterable_of(iterable)
        self._generator = iterable if isinstance(iterable, Produced) and not iterable.begun else None
        is_plain = isinstance(iterable, Unjoined) or is_exactly(iterable, (list, tuple, range, str, dict))
        self._value: Any = None
        self.items: Any = iterable if is_plain or self._generator is not None else _noted(self._all(iterable), iterable)

    @property
    def value(self) -> Any:
        """What the generator returns, at its end."""
        return self._value if self._generator is None else self._generator.returned

    def _all(self, iterable: Any) -> Iterator[Any]:
        self._value = yield from items(iterable)


class Mapped(Produced, kind=map):
    __slots__ = ()


class _Filtered(Produced, kind=filter):
    __slots__ = ()


class _Zipped(Produced, kind=zip):
    __slots__ = ()


def strictly(zipped: Any, check: Callable[[], None]) -> Produced:
    """``zip(…, strict=True)``: ``zipped``, and a check behind its end."""

    def run(emit: Emit) -> None:
        for_(zipped, lambda item: if_(emit(item), lambda: BREAK), check)

    def draw() -> Iterator[Any]:
        yield from zipped
        check()

    return _Zipped(run, draw)


_AS_LIST = "Make a list of it first, with list(...), and loop over parts of that."


def _advanced() -> Iterator[Any]:
    message = "a generator is used again after a loop that left it before its end"
    raise refuse("SG206", message, location=here(), hint=_AS_LIST)
    yield


def generator_of(
    iterable: Any,
    element: Callable[[Any], Any],
    test: Callable[[Any], Any] | None = None,
    made: type[Produced] = Produced,
) -> Iterator[Any]:
    """``(element(x) for x in iterable if test(x))``."""
    iterator = iterable if session() is not None else iter(iterable)

    def draw() -> Iterator[Any]:
        return (element(item) for item in items(iterator) if test is None or test(item))

    if session() is None:
        return draw()

    def run(emit: Emit) -> None:
        def one(item: Any) -> Exit | None:
            def produce() -> Exit | None:
                return if_(emit(element(item)), lambda: BREAK)

            return produce() if test is None else if_(test(item), produce)

        for_(iterable, one)

    return _noted(made(run, draw), iterable)


def _noted(generator: Iterator[Any], given: Any) -> Iterator[Any]:
    """A generator, of which the capture knows from then on where it was made."""
    capture = session()
    if capture is not None:
        capture.iterators.made(generator, given)
    return generator


def filtered(iterable: Any, test: Callable[[Any], Any]) -> Iterator[Any]:
    """``filter(test, iterable)``."""
    return generator_of(iterable, lambda value: value, test, _Filtered)


def binding(generator: Iterator[Any], binds: bool = True) -> Iterator[Any]:
    """A generator expression that is Python's, as it is made.

    Args:
        generator: the expression.
        binds: whether it binds variables, which no arm knows of: with an assignment by ``:=``, or variables that
            functions inside of it read. Those are of the last element.
    """
    capture = session()
    if capture is not None:
        if binds:
            capture.iterators.binds(generator)
        capture.iterators.made_of_parts(generator)
    return generator


def generator(twin: FunctionType, emit: str) -> Callable[[FunctionType], FunctionType]:
    """The decorator of a generator that rewritten code defines: ``twin`` is the same turned inside out."""

    def belongs(function: FunctionType) -> FunctionType:
        capture = session()
        if capture is not None:
            twin.__defaults__, twin.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
            capture.conversion.generators[function] = (twin, emit)
        return function

    return belongs


def call_generator(capture: Session, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a generator function; None where it can only be a generator of Python's."""
    if not function.__code__.co_flags & _GENERATOR:
        return None
    twin = capture.conversion.generators.get(function)
    if twin is not None:
        turned_over, parameter = twin
        run = functools.partial(turned_over, *args, **kwargs)
        return Produced(lambda emit: run(**{parameter: emit}), lambda: function(*args, **kwargs))
    if not capture.conversion.wants(function):
        return None
    turned = capture.conversion.turn_inside_out(function)
    if turned is None:
        return None
    inside_out, name = turned
    return Produced(
        lambda emit: inside_out(*args, **kwargs, **{name: emit}),
        lambda: capture.conversion.convert(function)(*args, **kwargs),
    )
