"""A static function against its original: every call must do the same, whatever can be seen of it."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, fx, nn

import stillgraph as sg
from stillgraph.program.program import Program
from stillgraph.trace.fakes.symbolic import is_fake
from tests.cases.compare import assert_same, sharing, tensors_in

P = torch.tensor([1.0, 2.0, 3.0])
N = -P


def agree(function: Any, *calls: Any, programs: int = 1, input_spec: list[sg.InputSpec] | None = None) -> Any:
    """Assert that a static function does what the function does, call after call.

    Args:
        function: a function without state of its own.
        calls: what to call it with: an argument, or a tuple of them.
        programs: how many programs the calls may need.
        input_spec: see `sg.to_static`.

    Returns:
        The static function.
    """
    return agree_fresh(lambda: function, *calls, programs=programs, input_spec=input_spec)


def agree_fresh(
    make: Callable[[], Any], *calls: Any, programs: int = 1, input_spec: list[sg.InputSpec] | None = None
) -> Any:
    """As `agree`, for functions and modules that keep state: ``make`` makes a fresh one.

    A call that is callable is no call, but is run on both targets.
    """
    torch.manual_seed(0)
    eager = make()
    torch.manual_seed(0)
    target = make()
    static = sg.to_static(target, backend="eager", input_spec=input_spec)
    for number, given in enumerate(calls):
        if callable(given) and not isinstance(given, Tensor):
            torch.manual_seed(number)
            given(eager)
            torch.manual_seed(number)
            given(target)
            continue
        args = given if isinstance(given, tuple) else (given,)
        expected, actual = outcome(eager, args), outcome(static, args)
        if isinstance(actual["error"], sg.CaptureError):
            raise actual["error"]
        assert not any(is_fake(tensor) for tensor in tensors_in((actual["value"], actual["arguments"])))
        for what, value in expected.items():
            if what == "error":
                assert same_error(value, actual[what]), f"call {number}: raises {actual[what]!r}, eager {value!r}"
            else:
                assert_same(value, actual[what], f"call {number}: {what}")
        assert_same(state(eager), state(target), f"call {number}: state")
    held = static.forward if isinstance(static, nn.Module) else static
    assert held.cache_info().programs <= programs
    return held


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """All that a call gives: value, error, print, arguments, gradients, random numbers, grad mode."""
    args = copy.deepcopy(args)
    value, error, printed = None, None, io.StringIO()
    torch.manual_seed(1)
    with contextlib.redirect_stdout(printed):
        try:
            value = function(*args)
        except Exception as raised:
            error = raised
    mode = torch.is_grad_enabled()
    noise = torch.rand(1).item()
    given = [tensor for tensor in tensors_in(args) if tensor.requires_grad and tensor.is_leaf]
    outputs = [tensor for tensor in tensors_in(value) if tensor.requires_grad]
    if given and outputs:
        torch.autograd.backward(outputs, [torch.ones_like(tensor) for tensor in outputs])
    return {
        "value": value,
        "error": error,
        "printed": printed.getvalue(),
        "arguments": args,
        "grad mode": mode,
        "gradients": [tensor.grad for tensor in given],
        "random numbers": noise,
        "containers twice": sharing((value, args)),
        "arguments returned": [any(out is tensor for tensor in tensors_in(args)) for out in tensors_in(value)],
    }


def same_error(expected: BaseException | None, actual: BaseException | None) -> bool:
    """Whether two exceptions are of one type, say and hold the same, and were caused by the same."""
    if expected is None or actual is None:
        return expected is actual
    if type(expected) is not type(actual) or str(expected) != str(actual) or len(expected.args) != len(actual.args):
        return False
    if expected.__suppress_context__ != actual.__suppress_context__:
        return False
    assert_same(vars(expected), vars(actual), "what the exception holds")
    return same_error(expected.__cause__, actual.__cause__)


def state(target: Any) -> dict[str, Any]:
    """What a module or closure keeps between calls."""
    if isinstance(target, nn.Module):
        own = {k: v for k, v in vars(target).items() if not k.startswith("_") and k != "forward"}
        return {"attributes": own, "tensors": dict(target.state_dict())}
    code = getattr(target, "__code__", None)
    cells = () if code is None else zip(code.co_freevars, target.__closure__ or ())
    return {name: cell.cell_contents for name, cell in cells if not callable(cell.cell_contents)}


def refusal(function: Any, *args: Any) -> sg.CaptureError:
    """The error with which the capture of a call is refused."""
    try:
        sg.to_static(function, backend="eager")(*copy.deepcopy(args))
    except sg.CaptureError as error:
        return error
    raise AssertionError("the capture is not refused")


def program_of(function: Any, *args: Any, **options: Any) -> Program:
    """The program of a call."""
    return sg.export(function, args, **options)


def nodes(module: Program | fx.GraphModule) -> Iterator[fx.Node]:
    """Every node of a program, those of its inner regions included."""
    graph = module.graph if isinstance(module, Program) else module
    yield from graph.graph.nodes
    for child in graph.children():
        if isinstance(child, fx.GraphModule):
            yield from nodes(child)


def count(program: Program, target: Any) -> int:
    """How many nodes of a program have a target."""
    return sum(node.target == target for node in nodes(program))


IF, WHILE = torch.ops.higher_order.cond, torch.ops.higher_order.while_loop
