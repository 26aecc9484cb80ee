"""A ``torch.autograd.Function`` that cannot be called as a whole: its passes are followed, and part of the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.interpreter import interpret
from tests.front_ends import through_bytecode
from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager, refused

SMALL = (0.1, 0.2, -0.1)


class Grown(torch.autograd.Function):
    """Multiplies until it is large; gradients go back as often."""

    @staticmethod
    def forward(ctx: Any, factor: Any, x: Tensor, w: Tensor) -> Any:  # type: ignore[override]  # as everybody writes it
        times, y = 0, x
        while y.norm() < 10:
            y, times = factor(y) * w, times + 1
        ctx.times, ctx.factor = times, factor
        ctx.save_for_backward(x, y, w)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]  # likewise
        x, y, _ = ctx.saved_tensors
        if y.sum() > 0:
            grad = grad * 2
        for _ in range(ctx.times):
            grad = ctx.factor(grad)
        return None, grad + x, (grad * y).sum().reshape(1) if ctx.needs_input_grad[2] else None


class Factor:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.value


class Several(torch.autograd.Function):
    """Gives a tensor, a number, and one without gradients; the context is set up apart."""

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Any:  # type: ignore[override]  # as everybody writes it
        return (x * y if x.sum() > 0 else x - y), 3, (x > y)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[2])
        ctx.positive = bool(inputs[0].sum() > 0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, number: Any, mask: Any) -> Any:  # type: ignore[override]  # likewise
        x, y = ctx.saved_tensors
        if number is not None or mask.any():
            raise ValueError("there are no gradients of these")
        return (grad * y, grad * x) if ctx.positive else (grad, -grad)


class OfModule(torch.autograd.Function):
    """Differentiates a module in its backward pass, as adjoint methods do."""

    @staticmethod
    def forward(ctx: Any, module: nn.Module, x: Tensor, *weights: Tensor) -> Any:  # type: ignore[override]  # likewise
        ctx.module = module
        ctx.save_for_backward(x, *weights)
        return module(x) if x.sum() > 0 else module(-x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]  # likewise
        x, *weights = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            y = ctx.module(x)
        return None, *torch.autograd.grad(y, (x, *weights), grad)


class Same(torch.autograd.Function):
    """Gives what it is given; or a list of it, which torch hands on as it is."""

    @staticmethod
    def forward(ctx: Any, factor: Any, x: Tensor, listed: bool = False, written: bool = False) -> Any:  # type: ignore[override]  # likewise
        ctx.factor = factor
        if written:
            x.add_(1)
            ctx.mark_dirty(x)
        return [x] if listed else x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]  # likewise
        return None, ctx.factor(grad), None, None


class Told(torch.autograd.Function):
    """Says what it does in both passes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:  # type: ignore[override]  # likewise
        if x.sum() > 0:
            print("forward")
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]  # likewise
        print("backward", grad.sum().item())
        return grad


def with_gradients(f: Any, *args: Tensor) -> Any:
    result = f(*args)
    wanted = [each for each in args if each.requires_grad]
    tracked = [each for each in (result if isinstance(result, tuple) else (result,)) if _is_tracked(each)]
    given = torch.autograd.grad([each.sum() for each in tracked], wanted, allow_unused=True) if tracked else ()
    return result, given


def _is_tracked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


@pytest.fixture(autouse=True, params=["source", "bytecode"])
def front_end(request: pytest.FixtureRequest) -> Any:
    """By which front end a test captures."""
    if request.param == "source":
        yield
    else:
        with through_bytecode():
            yield


@as_in_eager
def test_loops_in_both_passes(wrap: Wrap) -> Any:
    f = wrap(lambda x, w: Grown.apply(Factor(2.0), x * 1, w) + x)  # type: ignore[no-untyped-call]  # torch's
    return [with_gradients(f, V(*x), V(1.5, g=g)) for g in (True, False) for x in (P, N, SMALL, (20.0, 0.0, 0.0))]


@as_in_eager
def test_in_branches_and_loops(wrap: Wrap) -> Any:
    def f(x: Tensor, w: Tensor) -> Tensor:
        while x.norm() < 100:
            if x.sum() > 0:
                x = Grown.apply(Factor(x.detach().max().item()), x, w)  # type: ignore[no-untyped-call]  # torch's
            x = x * 2
        return x

    f = wrap(f)
    return [with_gradients(f, V(*x), V(1.5)) for x in (P, N, (0.5, 0.25, 3.0))]


@as_in_eager
def test_several_results(wrap: Wrap) -> Any:
    f = wrap(lambda x, y: Several.apply(x, y))  # type: ignore[no-untyped-call]  # torch's
    return [with_gradients(f, V(*x), V(*y, g=g)) for x in (P, N) for y in (P, N) for g in (True, False)]


@as_in_eager
def test_without_gradients(wrap: Wrap) -> Any:
    f = wrap(lambda x, w: Grown.apply(Factor(2.0), x, w))  # type: ignore[no-untyped-call]  # torch's
    with torch.no_grad():
        unwanted = [f(V(*x), V(1.5)) for x in (P, N)]
    return unwanted, [f(V(*x, g=False), V(1.5, g=False)) for x in (P, N)]


@as_in_eager
def test_a_result_that_is_an_input(wrap: Wrap) -> Any:
    def f(x: Tensor, listed: bool, tracked: bool) -> Any:
        with torch.set_grad_enabled(tracked):
            y = Same.apply(Factor(7.0), x, listed)  # type: ignore[no-untyped-call]  # torch's
        y = y[0] if listed else y
        return y * x, y is x, y._is_view(), y.requires_grad, y.grad_fn is None

    f, out = wrap(f), []
    for tracked in (True, False):
        for x in (V(*P), V(*P, g=False)):
            for listed in (True, False):
                value, *facts = f(x, listed, tracked)
                given = torch.autograd.grad(value.sum(), x) if value.requires_grad else ()
                out.append((value, facts, given, x.requires_grad))
    return out


@as_in_eager
def test_an_input_that_it_writes(wrap: Wrap) -> Any:
    def f(x: Tensor) -> Any:
        with torch.no_grad():
            y = Same.apply(Factor(7.0), x, False, True)  # type: ignore[no-untyped-call]  # torch's
        return y is x, y.requires_grad, x.requires_grad, y

    f = wrap(f)
    return [f(V(*P, g=g)) for g in (True, False)]


@as_in_eager
def test_its_name_is_the_functions(wrap: Wrap) -> Any:
    def f(x: Tensor) -> Any:
        y = Same.apply(Factor(7.0), x * 2)  # type: ignore[no-untyped-call]  # torch's
        return str(y), type(y.grad_fn).__name__, y.grad_fn.name(), y

    *inside, y = wrap(f)(V(*P))
    return inside, str(y), y.grad_fn.name(), type(y.grad_fn).__name__


def test_arguments_by_name_are_refused() -> None:
    f = sg.to_static(lambda x: Same.apply(Factor(2.0), x=x), backend="eager")
    with pytest.raises(sg.CaptureError, match=r"Same, .* is given arguments by name") as caught:
        f(V(*P))
    assert caught.value.hint == "Pass them by position."


@as_in_eager
def test_a_module_that_the_backward_pass_differentiates(wrap: Wrap) -> Any:
    module = nn.Sequential(nn.Linear(3, 2), nn.Tanh()).double()
    f = wrap(lambda x: OfModule.apply(module, x, *module.parameters()))  # type: ignore[no-untyped-call]  # torch's
    out = []
    for x in (P, N):
        result = f(V(*x))
        out.append((result, torch.autograd.grad(result.sum(), list(module.parameters()))))
        with torch.no_grad():
            for each in module.parameters():
                each.mul_(0.5)
    return out


@as_in_eager
def test_a_backward_pass_within_the_call(wrap: Wrap) -> Any:
    def f(x: Tensor, w: Tensor) -> Any:
        y = Grown.apply(Factor(2.0), x, w).sum()  # type: ignore[no-untyped-call]  # torch's
        if y > 0:
            y.backward()
        return x.grad, w.grad

    f = wrap(f)
    return [f(V(*x), V(1.5)) for x in (P, N)]


def test_what_the_backward_pass_prints(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for call in (lambda x: Told.apply(x), sg.to_static(lambda x: Told.apply(x), backend="eager")):
        for values in (P, N):
            call(V(*values)).sum().backward()  # type: ignore[no-untyped-call]  # torch's
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_a_saved_tensor_that_was_written_is_told() -> None:
    for call in (lambda x, w: Grown.apply(Factor(2.0), x, w), _static()):
        x, w = V(*P, g=False), V(1.5)
        result = call(x, w)
        x.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()


def test_a_second_derivative_is_no_part_of_the_program() -> None:
    x = V(*P)
    result = _static()(x, V(1.5))
    (first,) = torch.autograd.grad((result * x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_the_reference_interpreter_agrees() -> None:
    static = _static()
    wanted = with_gradients(static, V(*P), V(1.5))
    (program,) = static.programs
    found = with_gradients(lambda *args: interpret(program, args)[0], V(*P), V(1.5))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert "with the backward pass" in str(program)


def _function(x: Tensor, w: Tensor) -> Any:
    return Grown.apply(Factor(2.0), x, w)  # type: ignore[no-untyped-call]  # torch's


def test_a_file_has_the_forward_pass(tmp_path: Path) -> None:
    sg.save(_function, tmp_path / "f.pt2", args=(V(*P), V(1.5)))
    loaded = sg.load(tmp_path / "f.pt2")
    for values in (P, N):
        with torch.no_grad():
            torch.testing.assert_close(loaded(V(*values), V(1.5)), _function(V(*values), V(1.5)))


def test_python_source_has_both_passes(tmp_path: Path) -> None:
    sg.save(_function, tmp_path / "followed.py", args=(V(*P), V(1.5)))
    names: dict[str, Any] = {"__name__": "followed"}
    exec((tmp_path / "followed.py").read_text(), names)
    for values in (P, N):
        wanted, found = (with_gradients(each, V(*values), V(1.5)) for each in (_function, names["function"]))
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


class Owner:
    """Applies a function in a property, which Python calls."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @property
    def applied(self) -> Any:
        return lambda x, w: Grown.apply(Factor(self.factor), x, w)  # type: ignore[no-untyped-call]  # torch's

    @property
    def scaled(self) -> Any:
        return Grown.apply(Factor(self.factor), V(*P), V(1.5))  # type: ignore[no-untyped-call]  # torch's


@as_in_eager
def test_in_a_property(wrap: Wrap) -> Any:
    owner = Owner(2.0)
    f = wrap(lambda x, w: owner.applied(x, w) * owner.scaled)
    return [with_gradients(f, V(*x), V(1.5)) for x in (P, N)]


class Counting(torch.autograd.Function):
    times = 0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:  # type: ignore[override]  # as everybody writes it
        return x * 2 if x.sum() > 0 else x * 3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]  # likewise
        Counting.times += 1
        return grad


class Wrong(Counting):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, grad


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:  # type: ignore[override]  # likewise
        ctx.mark_dirty(x)
        return x.mul_(2) if x.sum() > 0 else x.mul_(3)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]  # likewise
        return grad


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (Counting, "changes Counting.times, which outlives it"),
        (Wrong, "gives other gradients than one for each argument"),
        (Dirty, "writes to its inputs"),
    ],
)
def test_what_is_refused(function: Any, says: str) -> None:
    assert says in refused(lambda x: function.apply(x * 1), V(*P))


def _static() -> Any:
    return sg.to_static(lambda x, w: Grown.apply(Factor(2.0), x, w), backend="eager")  # type: ignore[no-untyped-call]
