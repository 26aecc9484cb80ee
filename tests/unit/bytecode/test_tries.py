"""The `try` statements of a code object are found again, and where control goes on behind them."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import subprocess
import tarfile
import typing
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.bytecode.code.flow import codes_in
from stillgraph.bytecode.code.prepared import Prepared
from stillgraph.bytecode.code.tries import Try, is_try
from tests.front_ends import bytecode
from tests.sampling import few

__all__ = ["bytecode"]


def only(function: Any) -> tuple[Prepared, Try]:
    prepared = Prepared(function.__code__)
    ((found, *more),) = prepared.tries.values()
    assert not more
    return prepared, found


def names(prepared: Prepared, found: Try) -> list[str]:
    """The instructions that the ends lead to, past jumps."""
    ends = {prepared.decoded.past_jumps(index) for index in found.ends}
    return sorted(prepared.decoded.instructions[index].name for index in ends)


def two_clauses(x: Any) -> Any:
    try:
        y = x()
    except (KeyError, ValueError):
        y = 1
    except TypeError as error:
        return error
    return y


def test_clauses() -> None:
    prepared, found = only(two_clauses)
    assert [clause.kinds is not None for clause in found.clauses] == [True, True]
    assert not found.only_cleans_up
    assert "LOAD_FAST" in names(prepared, found)


def before_a_circle(x: Any) -> Any:
    try:
        x()
    except KeyError:
        while True:
            pass
    while True:
        pass


def test_jumps_to_themselves_end_the_search() -> None:
    prepared, found = only(before_a_circle)
    assert len(found.clauses) == 1
    assert set(names(prepared, found)) <= {"JUMP", "NOP"}


def nested_at_one_instruction(x: Any) -> Any:
    try:
        try:
            y = x()
        except ValueError as error:
            y = len(error.args)
    except KeyError:
        y = 3
    return y


def test_each_place_behind_a_try_is_one_end() -> None:
    """From Python 3.12 on both begin at one instruction, and the way out of the handler has a jump of its own."""
    prepared = Prepared(nested_at_one_instruction.__code__)
    found = [each for some in prepared.tries.values() for each in some]
    assert len(found) == 2
    for each in found:
        assert len({prepared.decoded.past_jumps(index) for index in each.ends}) == len(each.ends)


def cleaned_up(x: Any) -> Any:
    try:
        return x()
    finally:
        print("done")


def test_a_finally_passes_exceptions_on() -> None:
    _, found = only(cleaned_up)
    assert [clause.kinds for clause in found.clauses] == [None]
    assert found.only_cleans_up


def leaves(x: Any) -> Any:
    try:
        x()
    finally:
        return 1  # noqa: B012


def test_a_finally_that_returns_ends_them() -> None:
    assert not only(leaves)[1].only_cleans_up


def nested(x: Any) -> Any:
    try:
        try:
            x()
        except KeyError:
            return 1
    except ValueError:
        return 2
    finally:
        print("done")
    return 3


def test_statements_that_begin_together_are_given_from_the_outside() -> None:
    (found,) = Prepared(nested.__code__).tries.values()
    assert len(found) == 3
    assert [found[0].only_cleans_up, found[1].only_cleans_up] == [True, False]
    assert found[0].nodes > found[1].nodes > found[2].nodes


def returning_from_a_handler(x: Tensor, seen: list[Any]) -> Tensor:
    try:
        if x.sum() > 0:
            _fails()
    except ValueError:
        if x.sum() > 10:
            return x * 2
        x = x * 3
    seen.append(1)
    return x + 1


def behind_one_that_cleans_up(x: Tensor, seen: list[Any]) -> Tensor:
    try:
        try:
            if x.sum() > 0:
                _fails()
        except ValueError:
            seen.append(1)
            return x
        x = x + 1
    finally:
        seen.append(2)
    return x * 7


def leaving_a_loop(x: Tensor, seen: list[Any]) -> Tensor:
    for each in range(3):
        try:
            if x.sum() > 0:
                x = x + 1
                if x.sum() > 6:
                    _fails()
            x = x * 3
        except ValueError:
            x = x - 20
            if x.sum() < -60:
                return x
            continue
        seen.append(each)
    return x + 5


def _fails() -> None:
    raise ValueError


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", [returning_from_a_handler, behind_one_that_cleans_up, leaving_a_loop])
def test_a_handler_of_what_a_call_raises_may_leave_an_arm(function: Any, full_graph: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for value in (1.0, -3.0, 20.0, -0.5, 1.0):
        x, expected, seen = torch.full((2,), value), [], []
        assert torch.equal(static(x, seen), function(x, expected))
        assert seen == expected


def groups(x: Any) -> Any:
    try:
        x()
    except* KeyError:
        return_value = 1
    return return_value


def test_handlers_of_groups_stay_pythons() -> None:
    assert Prepared(groups.__code__).tries == {}


def tries_in(code: CodeType) -> tuple[set[int], set[int]]:
    """The handlers of a code object's ``try`` statements, and of those that were found."""
    prepared = Prepared(code)
    decoded = prepared.decoded
    return (
        {each.target for each in decoded.handlers if is_try(decoded, each.target)},
        {each.handler.target for some in prepared.tries.values() for each in some},
    )


@pytest.mark.parametrize("module", [argparse, contextlib, subprocess, tarfile, typing], ids=lambda m: m.__name__)
def test_all_of_the_standard_librarys_are_found(module: ModuleType) -> None:
    assert module.__file__ is not None
    count = 0
    for code in codes_in(compile(Path(module.__file__).read_text(), module.__file__, "exec")):
        if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            continue  # refused by name
        there, found = tries_in(code)
        assert there == found, code.co_qualname
        count += len(there)
    assert count


def asked_in_a_loop(x: Tensor, each: int, seen: list[Any]) -> Tensor:
    try:
        for factor in range(4):
            if factor == each or x.sum() > 100:
                continue
            if factor < each:
                continue
            if x.sum() < 0:
                raise KeyError(factor)
            x = x + factor
    except KeyError as error:
        seen.append(error.args[0])
        x = x - 50
    return x


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("full_graph", few([False, True], 2))
def test_jumps_that_the_table_of_handlers_leaves_out_are_in_the_statement(full_graph: bool) -> None:
    assert tries_in(asked_in_a_loop.__code__)[1] == tries_in(asked_in_a_loop.__code__)[0] != set()
    static = sg.to_static(asked_in_a_loop, backend="eager", full_graph=full_graph)
    for value, each in ((1.0, 1), (-2.0, 1), (200.0, 0), (-2.0, 3), (-2.0, 2)):
        x, expected, seen = torch.full((2,), value), [], []
        assert torch.equal(static(x, each, seen), asked_in_a_loop(x, each, expected))
        assert seen == expected


def asked_twice_in_a_loop(x: Tensor, each: int, seen: list[Any]) -> Tensor:
    try:
        for factor in range(4):
            if factor == each and x.sum() < 0:
                raise KeyError(factor)
        x = x + 1
    except KeyError as error:
        seen.append(error.args[0])
    return x


@pytest.mark.usefixtures("bytecode")
def test_conditional_jumps_that_the_table_leaves_out_are_in_the_statement() -> None:
    there, found = tries_in(asked_twice_in_a_loop.__code__)
    assert there == found != set()
    static = sg.to_static(asked_twice_in_a_loop, backend="eager")
    for value, each in ((1.0, 1), (-2.0, 1), (-2.0, 5)):
        x, expected, seen = torch.full((2,), value), [], []
        assert torch.equal(static(x, each, seen), asked_twice_in_a_loop(x, each, expected))
        assert seen == expected


# ---- in segments
def check(x: Tensor) -> Tensor:
    if x.sum() > 5:
        raise ValueError("high")
    if x.sum() < -5:
        raise KeyError("low")
    return x * 2


class Manager:
    def __init__(self) -> None:
        self.log: list[int] = []

    def __enter__(self) -> Manager:
        self.log.append(0)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.log.append(1 if kind is None else 2)
        return kind is not None and issubclass(kind, ValueError)


def behind_a_print(x: Tensor, out: list[Any]) -> Any:
    print("before", x.sum().item())
    try:
        x = check(x)
    except (ValueError, KeyError):
        x = x * 3
    finally:
        x = x + 1
    out.append(float(x[0]))
    return x


def seen_by_a_manager(x: Tensor, out: list[Any]) -> Any:
    print("hello")
    with Manager() as manager:
        if x.sum() > 100:
            return x, manager.log
        x = check(x)
    out.append(manager.log)
    return x, manager.log


def print_in_a_mode(x: Tensor, out: list[Any]) -> Any:
    with torch.no_grad():
        print("in")
        x = check(x)
    return x


def in_a_loop(x: Tensor, out: list[Any]) -> Any:
    for i in range(3):
        try:
            x = check(x + i)
            if i == 1:
                print("one")
        except ValueError:
            out.append(i)
            break
    return x


def observed(function: Any, x: float) -> Any:
    printed, out, value = io.StringIO(), [], None
    with contextlib.redirect_stdout(printed):
        try:
            value = str(function(torch.tensor([x, x / 2]), out))
        except (ValueError, KeyError) as error:
            value = repr(error)
    return value, out, printed.getvalue(), torch.is_grad_enabled()


@pytest.mark.parametrize("function", [behind_a_print, seen_by_a_manager, print_in_a_mode, in_a_loop])
def test_exceptions_of_the_run_come_to_their_handlers_in_segments(function: Any) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for x in (1.0, 9.0, -9.0, 0.5, 60.0):
        assert observed(static, x) == observed(function, x), x


def risky(x: Tensor) -> Tensor:
    if x.sum() > 1.5:
        raise KeyError("big")
    return x * 0.5


def at_a_meeting(x: Tensor, n: int) -> Any:
    kept: dict[str, Any] = {}
    if [x] == [] or (n < x.sum() and n in (0, 2)):
        try:
            x = risky(x)
        except KeyError:
            x = x + 1
    else:
        kept = {}
    return x, kept


def behind_a_loop(x: Tensor, n: int) -> Any:
    found = 0
    while x.sum() > n:
        if x.max() > 2:
            found = 1
            break
        x = x * 0.5 - 1
    try:
        x = risky(x)
    except KeyError:
        found = found + 2
    return x, found


def behind_a_try(x: Tensor, n: int) -> Any:
    try:
        x = risky(x)
    except KeyError:
        n = n + 1
    try:
        x = risky(x * 3)
    except KeyError:
        n = n + 10
    return x, n


@pytest.mark.parametrize("function", [at_a_meeting, behind_a_loop, behind_a_try])
def test_a_statement_that_begins_where_ways_meet(bytecode: None, function: Any) -> None:
    """What tells the ways apart stands before it, and not in it."""
    static = sg.to_static(function, backend="eager")
    for values in ([0.0, -1.0], [0.5, 0.25], [1.0, 3.0], [0.75, 0.5], [-1.0, -3.0]):
        for n in (0, 1):
            x = torch.tensor(values)
            torch.testing.assert_close(static(x, n), function(x, n), rtol=0, atol=0)
