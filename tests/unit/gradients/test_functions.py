"""`torch.autograd.Function`: recorded as it is called, and differentiated as it says."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map, tree_map_

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager, refused


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x * 10


class Needs(torch.autograd.Function):
    @staticmethod
    def forward(x, w, k):
        return x * w * k, (x > 0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, k = inputs
        ctx.save_for_backward(x, w)
        ctx.k = k
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        x, w = ctx.saved_tensors
        gx = g * w * ctx.k if ctx.needs_input_grad[0] else None
        gw = g * x * ctx.k * 100 if ctx.needs_input_grad[1] else None
        return gx, gw, None


class STE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, t):
        return (x > t).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g, None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Branchy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.sum() > 0:
            ctx.pos = True
            return x * 2
        ctx.pos = False
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * (20 if ctx.pos else 30)


def grads(f, *args):
    out = f(*args)
    outs = out if isinstance(out, (tuple, list)) else (out,)
    outs = [o for o in outs if isinstance(o, Tensor) and o.requires_grad]
    leaves = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
    g = torch.autograd.grad(outs, leaves, [torch.ones_like(o) * 2 for o in outs], allow_unused=True, create_graph=True)
    g2 = [x for x in g if x is not None and x.requires_grad]
    gg = torch.autograd.grad(g2, leaves, [torch.ones_like(o) * 0.5 for o in g2], allow_unused=True) if g2 else None
    return out, g, gg


@as_in_eager
def test_function(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            y = Square.apply(x)
        else:
            y = Square.apply(x * 2) + x
        if y.sum() > 10:
            y = y * y
        return y

    f = wrap(f)
    return [grads(f, V(*a)) for a in (P, N, P)]


@as_in_eager
def test_function_needs(wrap: Wrap) -> Any:
    def f(x, w):
        if x.sum() > 0:
            y, mask = Needs.apply(x, w, 2.0)
        else:
            y, mask = Needs.apply(x, w * 2, 3.0)
        return y, mask

    f = wrap(f)
    return [grads(f, V(*a), V(*b, g=gb)) for a in (P, N) for b in (P, N) for gb in (True, False)]


@as_in_eager
def test_ste(wrap: Wrap) -> Any:
    def f(x):
        y = STE.apply(x, 1.5)
        i = torch.tensor(0)
        while i < 3:
            y = y + STE.apply(x * (i + 1), 2)
            i = i + 1
        return y * x

    f = wrap(f)
    return [grads(f, V(*a)) for a in (P, N)]


@as_in_eager
def test_dirty(wrap: Wrap) -> Any:
    def f(x):
        y = x * 1
        y = InPlace.apply(y)
        if y.sum() > 0:
            y = y * 2
        return y

    f = wrap(f)
    return [grads(f, V(*a)) for a in (P, N)]


@as_in_eager
def test_dirty_in_arm(wrap: Wrap) -> Any:
    def f(x):
        y = x * 1
        if y.sum() > 0:
            InPlace.apply(y)
        return y * y

    f = wrap(f)
    return [grads(f, V(*a)) for a in (P, N)]


@as_in_eager
def test_function_staged_number(wrap: Wrap) -> Any:
    def f(x):
        k = x.sum().item()
        y, _m = Needs.apply(x, x.sin(), k)
        return y

    f = wrap(f)
    return [grads(f, V(*a)) for a in (P, N)]


@as_in_eager
def test_lib_function(wrap: Wrap) -> Any:
    # a Function applied directly through super().apply-like plain helper of torch: nn.Module implementing Function
    class Rev(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g.neg() * ctx.scale, None

    class GRL(nn.Module):
        def forward(self, x, scale):
            return Rev.apply(x, scale)

    m = GRL()

    def f(x):
        h = m(x * 2, 0.5)
        if h.sum() > 0:
            h = h * x
        return h

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


class _Weights:
    weight = torch.ones(3, 3, dtype=torch.float64)


class Outside(torch.autograd.Function):
    """Uses a tensor that is no argument."""

    @staticmethod
    def forward(ctx, x):
        return x @ _Weights.weight

    @staticmethod
    def backward(ctx, g):
        return (g * 2) @ _Weights.weight.T


@as_in_eager
def test_a_tensor_that_is_no_argument(wrap: Wrap) -> Any:
    def f(x):
        y = Outside.apply(x)
        return y * torch.ones(y.shape)

    f = wrap(f)
    out = []
    for weight in (torch.ones(3, 3), torch.full((3, 3), 2.0), torch.ones(3, 5)):
        _Weights.weight = weight.double()
        x = V(*P)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


class Recomputed(torch.autograd.Function):
    """A checkpoint of one's own: calls a module in both passes."""

    @staticmethod
    def forward(ctx, module, x):
        ctx.module = module
        ctx.save_for_backward(x)
        with torch.no_grad():
            return module(x)

    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.module(x)
        torch.autograd.backward(y, g)
        return None, x.grad


@as_in_eager
def test_a_module_as_an_argument(wrap: Wrap) -> Any:
    block = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).double()

    def f(x):
        if x.sum() > 0:
            return Recomputed.apply(block, x)
        return x

    f = wrap(f)
    out = []
    for values in (P, N, P):
        x = torch.tensor([values, values[::-1]], dtype=torch.float64, requires_grad=True)
        y = f(x)
        y.pow(3).sum().backward()
        out.append((y, x.grad, *(p.grad for p in block.parameters()), *block.buffers()))
    return out


@as_in_eager
def test_gradients_it_leaves_are_read_inside(wrap: Wrap) -> Any:
    layer = nn.Linear(3, 3).double()

    def f(x):
        Recomputed.apply(layer, x).sum().backward()
        return layer.weight.grad.clone()

    f = wrap(f)
    return [f(V(*P)), f(V(*N))]


@as_in_eager
def test_a_forward_that_looks_at_values(wrap: Wrap) -> Any:
    f = wrap(lambda x: Branchy.apply(x) * 2)
    out = []
    for values in (P, N, P):
        x = V(*values)
        result = f(x)
        out.append((result, torch.autograd.grad(result.sum(), x)))
    return out


@as_in_eager
def test_one_applied_to_all_in_a_tree(wrap: Wrap) -> Any:
    f = wrap(lambda given: tree_map(Square.apply, given))
    out = []
    for values in (P, N, P):
        x, y = V(*values), V(*values[::-1])
        made = f({"x": x, "rest": [y]})
        (made["x"] * made["rest"][0]).sum().backward()
        out.append((made, x.grad, y.grad))
    return out


@as_in_eager
def test_one_applied_by_torch_itself(wrap: Wrap) -> Any:
    applied: list[Tensor] = []

    def apply(x: Tensor) -> None:
        applied.append(Square.apply(x))

    def f(x: Tensor) -> Tensor:
        applied.clear()
        tree_map_(apply, [x, x * 2])
        tree_map_(Square.apply, x)
        return applied[0] + applied[1]

    f = wrap(f)
    out = []
    for values in (P, N):
        x = V(*values)
        result = f(x)
        out.append((result.detach(), torch.autograd.grad(result.sum(), x)))
    return out


# ---- what ``forward`` does to Python
class Counted:
    made = 0

    def __init__(self) -> None:
        self.count = 0


NOTED: list[int] = []
SEEN: dict[Any, int] = {"calls": 0}
KINDS: set[int] = set()
CALLS = 0


def _note(counted: Counted) -> None:
    global CALLS
    CALLS += 1
    NOTED.append(CALLS)
    KINDS.add(CALLS % 2)
    Counted.made += 1
    counted.count += 1
    counted.last = CALLS  # type: ignore[attr-defined]  # made by the call


class Busy(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x, counted):
        Busy.calls += 1
        SEEN["calls"] += 1
        SEEN[Busy.calls] = 1
        _note(counted)
        print("forward", Busy.calls)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


@as_in_eager
def test_forward_does_to_python_what_it_does_in_eager(wrap: Wrap) -> Any:
    global CALLS
    Busy.calls = Counted.made = CALLS = 0
    NOTED.clear(), SEEN.clear(), KINDS.clear()
    SEEN["calls"] = 0
    counted = Counted()

    def f(x):
        y = Busy.apply(x, counted)
        if y.sum() > 0:
            y = Busy.apply(y, counted)
        return y

    f = wrap(f)
    out = []
    for a in (P, N, P):
        printed = io.StringIO()
        x = V(*a)
        with contextlib.redirect_stdout(printed):
            y = f(x)
        y.sum().backward()
        out.append((y, x.grad, Busy.calls, Counted.made, CALLS, dict(vars(counted))))
        out.append((list(NOTED), dict(SEEN), set(KINDS)))
        out.append(printed.getvalue())
    return out


def test_a_capture_that_is_refused_has_not_counted() -> None:
    Busy.calls, counted = 0, Counted()

    def f(x):
        y = Busy.apply(x, counted)
        return y.apply_(lambda v: v)

    refused(f, V(*P, g=False))
    assert Busy.calls == 0
    assert vars(counted) == {"count": 0}


class Renewing(torch.autograd.Function):
    """Gives the memory, and the gradient, of tensors that it comes by anew."""

    @staticmethod
    def forward(ctx, x, holder):
        for tensor in (holder.parameter, holder.listed[0]):
            tensor.data = x.detach().clone()
        holder.layer.weight.grad = x.detach()[None] * 2
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


def test_a_capture_leaves_tensors_as_they_are() -> None:
    holder = Counted()
    holder.parameter, holder.listed, holder.layer = nn.Parameter(V(1, 2, 3)), [V(1, 2, 3)], nn.Linear(3, 1).double()
    tensors = [holder.parameter, holder.listed[0], holder.layer.weight]
    before = [tensor.detach().clone() for tensor in tensors]

    def f(x):
        y = Renewing.apply(x, holder)
        return y.apply_(lambda v: v)

    refused(f, V(*P, g=False))
    for tensor, memory in zip(tensors, before):
        assert torch.equal(tensor.detach(), memory)
        assert tensor.grad is None
