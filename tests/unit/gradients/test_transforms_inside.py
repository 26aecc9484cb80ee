"""Transforms of `torch.func` inside a captured function."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from torch.utils._pytree import tree_leaves

import stillgraph as sg
from tests.cases.harness import python_module
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import refusal

SHAPES = (4, 3)
CALLS = [torch.linspace(-2, 2, 12).view(SHAPES), -torch.linspace(1, 2, 12).view(SHAPES).flip(0), torch.rand(SHAPES)]
W = torch.arange(9.0).view(3, 3) / 9
SCALE = 2.0
LOG: list[str] = []


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 1)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        y: Tensor = self.second(torch.tanh(self.first(x)))
        return y


torch.manual_seed(0)
NET = Net()
NETS: Any = [nn.Linear(3, 2) for _ in range(3)]


def energy(x: Tensor) -> Tensor:
    return (x**4 + x**2).sum() * SCALE


def lanes(x: Tensor) -> Any:
    return vmap(lambda row, w: (row @ w, row.sum()), in_dims=(0, None), out_dims=(1, 0))(x, W)


def gradients(x: Tensor) -> Any:
    of_two = grad(lambda a, b: (a * b.sin()).sum(), argnums=(0, 1))(x, x * 2)
    return grad(energy)(x), of_two, grad(lambda a: (a.pow(2).sum(), a * 3), has_aux=True)(x)


def jacobians(x: Tensor) -> Any:
    return jacrev(lambda v: torch.tanh(v) @ W)(x[0]), jacfwd(torch.sin)(x[1]), hessian(energy)(x[0])


def products(x: Tensor) -> Any:
    value, pull = vjp(lambda v: torch.exp(v) @ W, x)
    return value, pull(value), jvp(lambda v: v.sin() @ W, (x,), (x * 2,))


def per_sample(x: Tensor) -> Any:
    parameters = {name: each.detach() for name, each in NET.named_parameters()}

    def loss(parameters: dict[str, Tensor], row: Tensor) -> Tensor:
        result: Tensor = functional_call(NET, parameters, (row,)).pow(2).sum()
        return result

    return vmap(grad(loss), in_dims=(None, 0))(parameters, x)


def ensemble(x: Tensor) -> Any:
    parameters, buffers = stack_module_state(NETS)
    call = vmap(lambda p, b, v: functional_call(NETS[0], (p, b), (v,)), in_dims=(0, 0, None))
    return call(parameters, buffers, x)


def of_a_module(x: Tensor) -> Any:
    return vmap(NET)(x), grad(lambda v: NET(v).sum())(x)


def in_arms_and_loops(x: Tensor) -> Any:
    if x.sum() > 0:
        x = vmap(torch.sigmoid)(x)
    else:
        x = grad(energy)(x)
    while x.abs().sum() < 50:
        x = x + grad(lambda v: (v**2).sum())(x).abs() + 1
    return x


def newton(x: Tensor) -> Any:
    y = x[0]
    for _ in range(3):
        y = y - torch.linalg.solve(hessian(energy)(y), grad(energy)(y))
    return y


def gradients_in_lanes(x: Tensor) -> Any:
    x = x.detach().requires_grad_(True)
    value = x**2 * x.sum()

    def pulled(given: Tensor) -> Tensor:
        return torch.autograd.grad(value, x, given, retain_graph=True)[0]

    basis = torch.eye(x.numel()).view(-1, *x.shape)
    return vmap(pulled)(basis), torch.autograd.grad(value, x, basis, is_grads_batched=True)[0]


def chances(x: Tensor) -> Any:
    different = vmap(lambda row: row + torch.rand(3), randomness="different")(x)
    return different, vmap(lambda row: row + torch.randn(3), randomness="same")(x), torch.rand(1)


def written_in_lanes(x: Tensor) -> Any:
    def written(row: Tensor) -> Tensor:
        row.mul_(2)
        row[0] = 1
        return row.sum()

    x = x.clone()
    return vmap(written)(x), x


def without_gradients(x: Tensor) -> Any:
    def part(v: Tensor) -> Tensor:
        with torch.no_grad():
            scale = v.sum()
        return (v * scale).sum()

    with torch.no_grad():
        return grad(part)(x)


def failing(x: Tensor) -> Any:
    return vmap(lambda row: row + torch.rand(3))(x)  # randomness is an error unless one says which


# ---- what decides inside a gradient
def bent(v: Tensor) -> Tensor:
    return (v**2).sum() if v.sum() > 0 else (v * 3).sum()


def of_a_branch(x: Tensor) -> Any:
    return grad(bent)(x), grad(lambda v: (v * float(v.sum().detach())).sum())(x)


def of_a_loop(x: Tensor) -> Any:
    def grown(v: Tensor) -> Any:
        steps = 0
        while v.sum() < 20:
            v, steps = v * v + 1, steps + 1
        return v.sum(), v * steps

    return grad_and_value(grown, has_aux=True)(x), grad(grown, has_aux=True)(x)


def of_a_tree(x: Tensor) -> Any:
    def chosen(p: dict[str, Any], scale: float = 1.0) -> Tensor:
        one: Tensor = p["a"] * p["b"][0] * scale
        return one.sum() if p["a"].sum() > 0 else p["b"][0].sum()

    two = grad(lambda a, b: a.sum() if a.sum() > 0 else (a * b).sum(), argnums=(1, 0))
    return grad(chosen)({"a": x, "b": [x * 2]}, scale=3.0), two(x, x + 1)


def by_the_last(x: Tensor) -> Any:
    return grad(lambda a, b: (a * b).sum() if a.sum() > 0 else b.sum(), argnums=-1)(x, x * 2)


def of_a_constant(x: Tensor) -> Any:
    return grad(lambda v: v.sum() if v.sum() > 0 else torch.tensor(1.0))(x)


def nested(x: Tensor) -> Any:
    def outer(y: Tensor) -> Tensor:
        by_another = grad(lambda v: (v**3 * y).sum() if v.sum() > 0 else (v**2 * y * y).sum())(x)
        return (grad(bent)(y) ** 2).sum() + by_another.pow(2).sum()

    return grad(outer)(x)


def trained(x: Tensor) -> Any:
    parameters = {name: each.detach() for name, each in NET.named_parameters()}

    def loss(parameters: dict[str, Tensor]) -> Tensor:
        y: Tensor = functional_call(NET, parameters, (x,))
        return y.abs().sum() if y.sum() > 0 else (y**2).sum()

    for _ in range(2):
        found = grad(loss)(parameters)
        parameters = {name: each - 0.1 * found[name] for name, each in parameters.items()}
    return parameters


def of_a_closure(x: Tensor) -> Any:
    return grad(lambda v: (NET(v) ** 2).sum() if v.sum() > 0 else NET(v).sum())(x)


def descending(x: Tensor) -> Any:
    while x.sum() > -5:
        x = x - grad(lambda v: (v**2).sum() + v.sum() if v.sum() > 1 else (v * 3).sum())(x)
    with torch.no_grad():
        return x, grad(bent)(x)


# ---- what outlives a transform, and what is handed in
class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.last: Any = None

    def forward(self, x: Tensor) -> Tensor:
        self.last = self.layer(x)
        result: Tensor = self.last.sum()
        return result


KEEPING = Keeping()


def kept(x: Tensor) -> Any:
    seen: list[Tensor] = []
    held: Any = None

    def cubed(v: Tensor) -> Tensor:
        nonlocal held
        held = v * 2
        seen.append(v * 3)
        return (v**3).sum()

    return grad(cubed)(x), seen[0] + 1, held + 1, grad(KEEPING)(x), KEEPING.last * 2


class Scaling:
    def __init__(self) -> None:
        self.scale = 2.0

    def __call__(self, v: Tensor) -> Tensor:
        return v


SCALING = Scaling()


def handed_in(x: Tensor) -> Any:
    SCALING.scale = 2.0

    def scaled(v: Tensor, module: Any, activation: Any, scaling: Any) -> Tensor:
        scaling.scale += isinstance(module, nn.Module) + (activation is nn.functional.relu)
        result: Tensor = (activation(module(v)) * scaling.scale).sum()
        return result

    return grad(scaled)(x, NET, nn.functional.relu, SCALING), SCALING.scale


def caught_inside(x: Tensor) -> Any:
    def solved(v: Tensor) -> Tensor:
        try:
            found = torch.linalg.inv(v[:3, :3]).sum()
        except RuntimeError:
            found = v.sum()
        with contextlib.suppress(ValueError):
            found = found + v.mean()
        return found

    return grad(solved)(x)


def drawn(x: Tensor) -> Any:
    generator = torch.Generator().manual_seed(3)
    gradient = grad(lambda v: (v * torch.rand(3, generator=generator)).sum())(x)
    return gradient, torch.rand(1, generator=generator)


FUNCTIONS = [
    *(kept, handed_in, caught_inside, drawn),
    *(of_a_branch, of_a_loop, of_a_tree, by_the_last, of_a_constant, nested, trained, of_a_closure, descending),
    *(lanes, gradients, jacobians, products, per_sample, ensemble, of_a_module, in_arms_and_loops, newton),
    *(gradients_in_lanes, chances, written_in_lanes, without_gradients, failing),
]


def outcome(function: Any, x: Tensor) -> list[Any]:
    """The leaves of a result with their needs of gradients, and the gradient of ``x``; or what is raised."""
    torch.manual_seed(0)
    try:
        leaves = tree_leaves(function(x))
    except RuntimeError as error:
        return [type(error), str(error)]
    needing = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
    if needing and x.requires_grad:
        torch.autograd.backward([leaf.sum() for leaf in needing])
    return [*leaves, [getattr(leaf, "requires_grad", None) for leaf in leaves], x.grad]


def same(actual: list[Any], expected: list[Any]) -> bool:
    torch.testing.assert_close(actual, expected)
    return True


@contextlib.contextmanager
def front_end(name: str) -> Iterator[None]:
    with through_bytecode() if name == "bytecode" else contextlib.nullcontext():
        yield


@pytest.mark.parametrize("which", ["source", "bytecode"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_as_in_eager(function: Any, which: str) -> None:
    with front_end(which):
        for needs in (False, True):
            static = sg.to_static(function, backend="eager")
            for call in CALLS:
                expected = outcome(function, call.clone().requires_grad_(needs))
                actual = outcome(static, call.clone().requires_grad_(needs))
                assert str(actual) == str(expected) if function is failing else same(actual, expected)
            assert len(static.programs) == (function is not failing)


@pytest.mark.parametrize("function", [lanes, gradients, jacobians, products, of_a_module, in_arms_and_loops])
def test_open_sizes(function: Any) -> None:
    static = sg.to_static(function, input_spec=[sg.InputSpec([None, 3])], backend="eager")
    for size in (4, 2, 7):
        x = torch.linspace(-2, 2, size * 3).view(size, 3)
        torch.testing.assert_close(outcome(static, x), outcome(function, x))
    assert len(static.programs) == 1


def logged(row: Tensor) -> Tensor:
    LOG.append(f"row {SCALE}")
    print("a row")
    NET.calls += 10
    return row * SCALE


def test_what_the_code_inside_reads_and_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def function(x: Tensor) -> Any:
        count = 0

        def counted(v: Tensor) -> Tensor:
            nonlocal count
            count += 1
            return (logged(v) * count).sum()

        return grad(counted)(x), vmap(logged)(x), count, NET.calls

    static = sg.to_static(function, backend="eager")
    for scale in (2.0, 2.0, 5.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        done: list[Any] = []
        for call in (function, static):
            NET.calls, LOG[:] = 3, []
            result = call(CALLS[0])
            done.append((str(result), list(LOG), NET.calls, capsys.readouterr().out))
        assert done[0] == done[1]


LOSS = grad(energy)


def test_a_transform_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    static = sg.to_static(lambda x: LOSS(x), backend="eager")
    for scale in (2.0, 3.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        torch.testing.assert_close(static(CALLS[0]), LOSS(CALLS[0]))


@pytest.mark.parametrize("suffix", [".py", ".pt2", ".onnx"])
def test_in_files(tmp_path: Path, suffix: str) -> None:
    def function(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return vmap(grad(lambda row: (row.tanh() ** 2).sum()))(x)
        return vmap(lambda row: row @ W)(x)

    path = tmp_path / f"file{suffix}"
    sg.save(function, path, args=(CALLS[0],), input_spec=[sg.InputSpec([None, 3])])
    run = python_module(path).load() if suffix == ".py" else sg.load(path)
    for call in (*CALLS, CALLS[2][:2]):
        torch.testing.assert_close(run(call), function(call))


class Square(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> Any:
        return given * ctx.saved_tensors[0] * 20


def tried(v: Tensor) -> Tensor:
    try:
        return v.sum()
    except RuntimeError:
        return v * 2


def leaked(x: Tensor) -> Any:
    rows: list[Tensor] = []
    vmap(lambda v: (rows.append(v), v)[1])(x)
    return rows[0] + 1


def deciding(result: Any, **options: Any) -> Any:
    """A gradient of what decides inside, and gives such a result on one of the paths."""
    return lambda x: grad(lambda v: result(v) if v.sum() > 0 else result(v * 2), **options)(x)


REFUSED = {
    "a number": deciding(lambda v: 1.0),
    "an element": deciding(lambda v: v.sum().reshape(1)),
    "no pair": deciding(lambda v: v.sum(), has_aux=True),
    "a pair": deciding(lambda v: (v.sum(), v)),
    "a branch in lanes": lambda x: vmap(grad(lambda v: (v**2).sum() if x.sum() > 0 else v.sum()))(x),
    "a branch in rows of a matrix": lambda x: jacrev(lambda v: v**2 if v.sum() > 0 else v)(x),
    "a try in lanes": lambda x: vmap(tried)(x),
    "a tensor of lanes": lambda x: leaked(x),
    "a generator made there": lambda x: vmap(
        lambda v, g: v + torch.rand(3, generator=g), in_dims=(0, None), randomness="same"
    )(x, torch.Generator().manual_seed(1)),
    "a function of its own": lambda x: vmap(Square.apply)(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert refusal(REFUSED[name], CALLS[0]).reason.code == "SG304"


def test_what_a_transform_hands_out_does_not_leave() -> None:
    assert refusal(lambda x: vjp(torch.sin, x)[1], CALLS[0]).reason.code == "SG306"
