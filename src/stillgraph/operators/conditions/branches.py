"""``if``, the conditional expression, and what follows a statement that may have left its block."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.operators import dispatch
from stillgraph.operators.conditions.truth import truth
from stillgraph.trace.capture.session import Session, capturing, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.recursion import Pending
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.staging import continue_ as stage_rest
from stillgraph.trace.heap.exits import Exit, Return
from stillgraph.trace.heap.places import CellPlace, Place

Block = Callable[[], Exit | None]


def places(names: Iterable[str], *blocks: Callable[..., Any] | None) -> list[CellPlace]:
    """The closure cells that blocks share for these variables."""
    cells: dict[str, Any] = {}
    for block in blocks:
        if isinstance(block, FunctionType):
            cells.update(zip(block.__code__.co_freevars, block.__closure__ or ()))
    return [CellPlace(cells[name], name) for name in names if name in cells]


@dispatch.if_.defined
def if_(
    test: Any,
    then: Block,
    orelse: Block | None = None,
    rest: Block | None = None,
    *,
    keeps: tuple[str, ...] = (),
    drops: tuple[str, ...] = (),
) -> Exit | None:
    """``if test: then() else: orelse()``, and ``rest()`` behind it unless an arm left the block."""
    capture = session()
    known = bool(test) if capture is None else truth(capture, test)
    if isinstance(known, bool):
        if capture is not None:
            capture.watch.decided("if", sys._getframe(1), known)
        exit = then() if known else (None if orelse is None else orelse())
        return exit if rest is None else continue_(exit, rest, keeps=keeps, drops=drops)
    assert capture is not None
    capture.watch.staged(sys._getframe(1))
    blocks = (then, orelse, rest)
    return branch(capture, known, then, orelse or _nothing, places(keeps, *blocks), places(drops, *blocks), rest, "if")


def _nothing() -> None:
    return None


def continue_(
    exit: Exit | None, rest: Block, *, keeps: tuple[str, ...] = (), drops: tuple[str, ...] = ()
) -> Exit | None:
    """``rest()``, unless control has left the block by ``exit``."""
    capture = session()
    if capture is None:
        return rest() if exit is None else exit
    return stage_rest(capture, exit, rest, places(keeps, rest), places(drops, rest))


def return_(value: Any) -> Exit:
    """``return value``, in a block."""
    capture = session()
    if capture is None:
        return Return(value)
    frame = sys._getframe(1)
    capture.returns[frame.f_code, frame.f_lasti] = None
    return capture.tail_call(value) if isinstance(value, Pending) else Return(value)


def result_of(exit: Exit | None) -> Any:
    """What a function returns whose body ended with ``exit``."""
    if exit is None:
        return None
    if exit.returned is True:
        return exit.value
    capture = capturing()
    if exit.continued is not False:
        return exit  # of a function that is being recorded as a loop: some path calls it anew
    return select(capture, exit.returned, lambda: exit.value, lambda: None)


@dispatch.if_exp.defined
def if_exp(test: Any, then: Callable[[], Any], orelse: Callable[[], Any], *, keeps: tuple[str, ...] = ()) -> Any:
    """``then() if test else orelse()``; ``keeps`` are the variables that these assign by ``:=``."""
    capture = session()
    known = bool(test) if capture is None else truth(capture, test)
    if isinstance(known, bool):
        if capture is not None:
            capture.watch.decided("if expression", sys._getframe(1), known)
        return then() if known else orelse()
    assert capture is not None
    capture.watch.staged(sys._getframe(1))
    return select(capture, known, then, orelse, "if expression", places(keeps, then, orelse))


def _giving(value: Callable[[], Any]) -> Exit:
    return Return(value())


def select(
    capture: Session,
    predicate: Any,
    then: Callable[[], Any],
    orelse: Callable[[], Any],
    written: str = "",
    assigned: Sequence[Place] = (),
) -> Any:
    """The value of a staged choice; ``written`` and the variables that are ``assigned`` as for `staging.branch`."""
    first, second = functools.partial(_giving, then), functools.partial(_giving, orelse)
    exit = branch(capture, predicate, first, second, assigned, (), written=written)
    if exit is None or exit.returned is not True:
        raise refuse("SG203", "a conditional expression gives no value", location=here())
    return exit.value
