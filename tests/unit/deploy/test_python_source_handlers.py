"""``try`` with several ``except`` clauses in a written file: each path is run, and compared with the original."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import InternalError
from stillgraph.deploy.python import regions
from tests.cases.harness import python_module


class TooLarge(Exception):
    pass


class FarTooLarge(TooLarge):
    pass


class TooSmall(ArithmeticError):
    pass


def builtin_classes(x: Tensor) -> Tensor:
    try:
        if x[0] > 1:
            raise KeyError("large")
        if x[0] < -1:
            raise ValueError("small")
    except KeyError:
        x = x + 1
    except ValueError:
        x = x - 1
    return x


def own_classes(x: Tensor) -> Tensor:
    try:
        if x[0] > 1:
            raise TooLarge("large")
        if x[0] < -1:
            raise TooSmall("small")
    except TooLarge:
        return x + 1
    except TooSmall:
        return x - 1
    return x


def by_their_bases(x: Tensor) -> Tensor:
    try:
        if x[0] > 1:
            raise FarTooLarge("large")
        if x[0] < -1:
            raise TooSmall("small")
    except TooLarge:
        return x + 1
    except ArithmeticError:
        return x - 1
    return x


def the_nearer_class_first(x: Tensor) -> Tensor:
    try:
        if x[0] > 1:
            raise FarTooLarge("large")
        if x[0] < -1:
            raise TooLarge("small")
    except FarTooLarge:
        x = x + 1
    except TooLarge:
        x = x - 1
    return x


def three_clauses(x: Tensor) -> Tensor:
    try:
        if x[0] > 10:
            raise RuntimeError("very large")
        if x[0] > 1:
            raise TooLarge("large")
        if x[0] < -1:
            raise KeyError("small")
    except TooLarge as error:
        print("too large:", error)
        x = x + 1
    except (KeyError, IndexError):
        x = x - 1
    except Exception:
        x = x * 0
    return x


def some_escape(x: Tensor) -> Tensor:
    try:
        if x[0] > 10:
            raise TooLarge("nobody catches this")
        if x[0] > 1:
            raise KeyError("large")
        if x[0] < -1:
            raise ValueError("small")
    except KeyError:
        x = x + 1
    except ValueError:
        x = x - 1
    return x


def nested(x: Tensor) -> Tensor:
    try:
        try:
            if x[0] > 10:
                raise FarTooLarge("very large")
            if x[0] > 1:
                raise KeyError("large")
            if x[0] < -1:
                raise TooSmall("small")
        except KeyError:
            x = x + 1
        except TooSmall as error:
            raise ValueError("from within") from error
    except TooLarge:
        x = x * 2
    except ValueError:
        x = x - 1
    return x


def else_and_finally(x: Tensor) -> Tensor:
    try:
        if x[0] > 1:
            raise KeyError("large")
        if x[0] < -1:
            raise TooSmall("small")
    except KeyError:
        x = x + 1
    except TooSmall:
        x = x - 1
    else:
        x = x * 3
    finally:
        print("done")
    return x


def of_an_operation(x: Tensor) -> Tensor:
    try:
        y = x[int(x[1])]
    except IndexError:
        y = x.sum()
    except RuntimeError:
        y = x.sum() * 2
    return y


def asked_which(x: Tensor) -> Tensor:
    try:
        if x[0] > 10:
            raise TooLarge("far")
        if x[0] > 1:
            raise TooLarge("too", 3)
        if x[0] < -1:
            raise KeyError("small")
    except (TooLarge, KeyError) as error:
        print(type(error).__name__, str(error))
        x = x * len(error.args)
    return x


def raised_from_another(x: Tensor) -> Tensor:
    try:
        if x[0] > 1:
            raise KeyError("large")
    except KeyError as error:
        if x[0] > 10:
            raise error from None
        if x[1] > 5:
            raise error from TypeError("other")
        raise error.with_traceback(None)  # noqa: B904  # it is the same one
    return x


def told(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Any, str, str]:
    """What a call gives or raises, and what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            return function(x.clone()).tolist(), "", printed.getvalue()
        except Exception as error:
            return type(error).__name__, str(error), printed.getvalue()


CASES = [
    *(builtin_classes, own_classes, by_their_bases, the_nearer_class_first, three_clauses, some_escape, nested),
    *(else_and_finally, of_an_operation, asked_which, raised_from_another),
]


@pytest.mark.parametrize("function", CASES, ids=lambda case: case.__name__)
def test_each_path(function: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "written.py", args=(torch.tensor([2.0, 1.0]),))
    written = getattr(python_module(tmp_path / "written.py"), function.__name__)
    for first in (20.0, 2.0, 0.0, -2.0):
        for second in (1.0, 7.0):
            x = torch.tensor([first, second])
            assert told(written, x) == told(function, x)


def test_a_value_without_a_name_is_a_fault_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "_spells_what_it_takes", lambda node: True)
    with pytest.raises(InternalError, match="Python source has no name for constant_0") as caught:
        sg.save(builtin_classes, tmp_path / "written.py", args=(torch.ones(2),))
    line = builtin_classes.__code__.co_firstlineno + 1
    assert f'File "{__file__}", line {line}, in builtin_classes\n    try:' in str(caught.value)
    assert list(tmp_path.iterdir()) == []
