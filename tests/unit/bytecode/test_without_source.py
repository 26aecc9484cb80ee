"""Functions that have no source become programs all the same: branches, loops, state, closures and generators."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.cases.compare import assert_same

CHECK = """
        def check(x):
            if x.sum() > 5:
                raise ValueError("high")
            if x.sum() < -5:
                raise KeyError("low")
            return x * 2
        """

PROGRAMS = {
    "branch": """
        def function(x):
            if x.sum() > 0 and x[0] < 5:
                return x * 2
            return x - 1
        """,
    "while": """
        def function(x):
            steps = 0
            while x.norm() > 1:
                x = x / 2
                steps += 1
            return x, steps
        """,
    "for": """
        def function(x):
            total = x[0] * 0
            for value in x:
                if value < 0:
                    continue
                if value > 10:
                    break
                total = total + value
            else:
                total = total * 2
            return total
        """,
    "nonlocal": """
        def function(x):
            count = 0
            def add(value):
                nonlocal count
                if value > 0:
                    count += 1
            for value in x:
                add(value)
            return count
        """,
    "with": """
        def function(x):
            with torch.no_grad():
                if x.sum() > 0:
                    return x * 2
            return x
        """,
    "exception of a loop": """
        def function(x):
            total = x[0] * 0
            for value in x:
                try:
                    for number in (1, 2):
                        total = total + number
                        if number == 2:
                            raise ValueError(number)
                except ValueError as error:
                    total = total + value + error.args[0]
            return total
        """,
    "try": """
        def function(x):
            try:
                if x.sum() > 0:
                    raise ValueError
                y = x + 1
            except ValueError:
                y = x - 1
            finally:
                z = x * 3
            return y, z
        """,
    "exception of a function that is called": CHECK
    + """
        def function(x):
            log = []
            for value in (1, 2):
                try:
                    log.append(value)
                    x = check(x + value)
                except (KeyError, IndexError) as error:
                    log.append(len(error.args))
                    continue
                except ValueError:
                    return -x, value
                else:
                    x = x + 1
                finally:
                    log.append(-value)
            return x, log[-1]
        """,
    "exceptions of nested statements": CHECK
    + """
        def function(x):
            seen = 0
            try:
                try:
                    y = check(x)
                except KeyError as error:
                    seen += 1
                    raise RuntimeError("from another") from error
                except ValueError:
                    seen += 10
                    raise
                seen += 100
            except (ValueError, RuntimeError) as error:
                y = x
                if isinstance(error, ValueError):
                    seen += 1000
            return y, seen
        """,
    "managers that see exceptions": """
        import contextlib
        class Manager:
            def __init__(self, *ends):
                self.ends, self.log = ends, []
            def __enter__(self):
                self.log.append(0)
                return self
            def __exit__(self, kind, error, trace):
                self.log.append(1 if kind is None else 2)
                return kind is not None and issubclass(kind, self.ends)
        def check(x):
            if x.sum() < -5:
                raise ValueError("low")
            return x * 2
        def function(x):
            with Manager(ValueError) as manager:
                if x[0] > 1:
                    return x, manager.log
                x = check(x)
                if x[1] > 5:
                    raise ValueError("second")
            with contextlib.suppress(ValueError):
                x = check(x) + 1
            return x, manager.log
        """,
    "generator": """
        def positive(x):
            for value in x:
                if value > 0:
                    yield value * 2
        def function(x):
            return sum(positive(x)) + sum([value for value in x if value < 1])
        """,
    "recursion": """
        def function(x):
            return x if x.sum() > 100 or x.sum() <= 0 else function(x * 2)
        """,
    "nested conditions": """
        def function(x):
            if (x > 0).any():
                if not (x[0] > 0 and x.sum() > -1.5):
                    if not x[1] >= x[0]:
                        return x * 7
            return x
        """,
    "assert": """
        def function(x):
            assert x.sum() < 20, f"the sum is {x.sum()}"
            return x + 1
        """,
}
_VALUES = ([1.0, 2, 3], [-1.0, -2, -3], [-1.0, 12, 4], [2.0, -1, 20], [0.5, -0.5, 0])
INPUTS = [torch.tensor(values) for values in _VALUES]


def made(text: str) -> Any:
    """The function of a text that is in no file."""
    space: dict[str, Any] = {"torch": torch, "__name__": "typed_in"}
    file = Path(__file__).with_name("typed_in.py")  # a file of the user's that is not there
    exec(compile(textwrap.dedent(text), str(file), "exec"), space)
    return space["function"]


def outcome(function: Any, x: torch.Tensor) -> Any:
    try:
        return function(x.clone())
    except AssertionError as error:
        return str(error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_agree_with_eager(name: str) -> None:
    eager = made(PROGRAMS[name])
    static = sg.to_static(made(PROGRAMS[name]), backend="eager")
    for x in INPUTS:
        assert_same(outcome(eager, x), outcome(static, x))
    assert static.cache_info().programs == 1


def test_state_is_written() -> None:
    space: dict[str, Any] = {"torch": torch, "__name__": "typed_in"}
    exec(
        textwrap.dedent(
            """
            class Counting(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.calls = 0
                    self.register_buffer("seen", torch.zeros(3))

                def forward(self, x):
                    self.calls += 1
                    self.seen = self.seen + x
                    if x.sum() > 0:
                        return self.seen * self.calls
                    return x
            """
        ),
        space,
    )
    eager, static = space["Counting"](), sg.to_static(space["Counting"](), backend="eager")
    for x in INPUTS:
        assert_same(eager(x), static(x))
        assert static.calls == eager.calls
        assert_same(eager.seen, static.seen)
    assert static.forward.cache_info().programs == 1


def test_the_rewritten_source_cannot_be_shown() -> None:
    with pytest.raises(sg.CaptureError, match="SG101"):
        _ = sg.to_static(made(PROGRAMS["branch"]), backend="eager").code


@pytest.mark.parametrize("file", ["<string>", "<stdin>", "<ipython-input-3-0123>"])
def test_functions_that_call_each_other_are_one_program(file: str) -> None:
    space: dict[str, Any] = {"torch": torch, "__name__": "__main__"}
    lines = """
        class Scale(torch.nn.Module):
            def forward(self, x):
                return g(x) if x.sum() > 0 else (lambda y: y - 1)(x)

        def g(x):
            return x * 2

        def f(x, scale=Scale()):
            def inner(y):
                return y + 1
            return inner(scale(x)), sorted([g(x), x], key=lambda each: -len(each))[0]
        """
    exec(compile(textwrap.dedent(lines), file, "exec"), space)
    static = sg.to_static(space["f"], full_graph=False, strict=True, backend="eager")
    for x in (torch.ones(2), -torch.ones(2), torch.ones(2)):
        assert_same(space["f"](x), static(x))
    assert len(static.plan.segments) == 1, static.plan.breaks.residual
    assert static.cache_info().programs == 1
