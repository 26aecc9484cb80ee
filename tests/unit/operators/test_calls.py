from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.operators.calls.calls import call
from stillgraph.trace.code.names import assigned_outer_variables
from tests.unit.trace.agreement import IF, N, P, agree, agree_fresh, count, nodes, program_of


# ---- plain
def test_plain_calls() -> None:
    assert call(divmod, 7, 2) == (3, 1)
    assert call(functools.partial(int, base=2), "101") == 5
    assert call(str.upper, "a") == "A"
    assert call(dict, a=1) == {"a": 1}
    assert call(lambda *a, **k: (a, k), 1, function=2) == ((1,), {"function": 2})


def test_variables_of_outer_functions_that_a_function_assigns() -> None:
    count = total = seen = 0

    def outer() -> None:
        nonlocal count
        count = 1

        def inner() -> int:
            nonlocal total
            total = 2
            return seen

        inner()

    assert assigned_outer_variables(outer.__code__) == ("count", "total")


# ---- followed
def if_positive(x: Tensor, k: float = 1.0, *, minus: float = 0.0) -> Tensor:
    return x * 2 + k if x.sum() > 0 else x - minus


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result + 1 if result.sum() > 0 else result - 1

    return wrapper


@counted
def decorated(x: Tensor) -> Tensor:
    return x * 3


@torch.no_grad()
def without_grad(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x + 1


class Scale:
    factor = 3

    def __init__(self, k: Any) -> None:
        if k.sum() > 0:
            self.k = k
        else:
            self.k = -k

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.k if x.sum() > 0 else x

    @property
    def twice(self) -> Any:
        return self.k * 2 if self.k.sum() > 3 else self.k

    @twice.setter
    def twice(self, value: Any) -> None:
        self.k = value / 2 if value.sum() > 0 else value

    @staticmethod
    def plus(x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x - 1

    @classmethod
    def by_factor(cls, x: Tensor) -> Tensor:
        return x * cls.factor if x.sum() > 0 else x


class Shifted(Scale):
    def __init__(self, k: Any) -> None:
        super().__init__(k)
        self.shift = 1

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) + self.shift

    @property
    def twice(self) -> Any:
        return self.k * 3


def functions(x: Tensor) -> Any:
    return if_positive(x), if_positive(x, 2.0), if_positive(x, minus=3.0), if_positive(*(x,), **dict(k=4.0))  # noqa: C408 - starred keywords are the point


def partials(x: Tensor) -> Any:
    bound = functools.partial(if_positive, k=5.0)
    return bound(x), functools.partial(if_positive, x)(2.0), functools.partial(bound, minus=1.0)(x)


def lambdas(x: Tensor) -> Any:
    square = lambda v: v * v if v.sum() > 0 else v  # noqa: E731
    return square(x), (lambda *v, k=2: sum(v) * k)(x, x), [f(x) for f in (square, torch.sin)]


def objects(x: Tensor) -> Any:
    a, b = Scale(x), Shifted(x.sum())
    b.twice = x.mean()
    return a(x), b(x), a.twice, b.twice, Scale.plus(x), a.plus(x), Scale.by_factor(x), b.by_factor(x), type(b).__name__


def higher_order(x: Tensor) -> Any:
    return (
        list(map(if_positive, [x, -x])),
        functools.reduce(lambda a, b: a + if_positive(b), [x, x], x),
        sorted([x.sum().item(), 1.0][1:], key=lambda v: -v),
        max([x, x * 2], key=lambda v: v.sum()),
        getattr(x, "mean")(),  # noqa: B009
        getattr(x, "nothing", 5),
        Scale(x).__call__(x),
    )


def recursion(x: Tensor, n: int = 3) -> Tensor:
    if n == 0:
        return x
    y = recursion(x, n - 1)
    return y * 2 if y.sum() > 0 else y + 1


def nested_functions(x: Tensor) -> Any:
    n, seen = 0, []

    def count_up(k: int = 2) -> int:
        nonlocal n
        n = n + k if x.sum() > 0 else n - 1
        seen.append(k)
        return n

    return count_up(), count_up(3), n, seen


def generators(x: Tensor) -> Any:
    def multiples(n: int) -> Iterator[Tensor]:
        for i in range(n):
            yield x * i

    total = x
    for v in multiples(3):
        total = total + v if total.sum() > 0 else total
    return total, list(multiples(2))


@pytest.mark.parametrize(
    "function",
    [
        functions,
        partials,
        lambdas,
        objects,
        higher_order,
        recursion,
        nested_functions,
        generators,
        decorated,
        without_grad,
    ],
)
def test_calls_are_followed(function: Any) -> None:
    agree(function, P, N)


def test_variable_and_keyword_arguments() -> None:
    def star(x: Tensor, *rest: Tensor, **named: Any) -> Any:
        for each in rest:
            x = x + each if each.sum() > 0 else x * 2
        return x, rest, named

    agree(star, (P, N, P), (N, P, N), (P,), programs=2)


def test_wrong_arguments_are_eagers_errors() -> None:
    agree(lambda x: if_positive(), P)
    agree(lambda x: if_positive(x, 1, 2), P)
    agree(lambda x: if_positive(x, other=2), P)


def test_recursion_on_a_staged_condition() -> None:
    def collapse(x: Tensor) -> Tensor:
        return x if x.sum() > 10 else collapse(x * x)

    agree(collapse, P, P / 2)


def test_torchs_own_functions_stay_whole() -> None:
    def network(x: Tensor) -> Tensor:
        return nn.functional.cross_entropy(x[None], torch.tensor([1])) + nn.functional.gelu(x).sum()

    targets = {getattr(node.target, "__name__", node.target) for node in nodes(program_of(network, P))}
    assert {"cross_entropy", "gelu"} <= targets


# ---- modules
class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        y = self.linear(x) * scale
        return y if y.sum() > 0 else -y


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block(), Block()])
        self.head = nn.Sequential(Block(), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))
        self.named = nn.ModuleDict({"a": Block()})
        self.tied = self.blocks[0]

    def forward(self, x: Tensor) -> Any:
        for i, block in enumerate(self.blocks):
            x = block(x, scale=2.0) + x
            if x.abs().max() > 4:
                return self.head(x), i
        return self.named["a"](self.tied(x)), -1


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.inner.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        self.inner.register_forward_hook(lambda module, args, out: out * 2)
        self.register_forward_hook(lambda module, args, kwargs, out: out + 100, with_kwargs=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


@pytest.mark.parametrize("kind", [Block, Stack, Hooked])
def test_modules(kind: type[nn.Module]) -> None:
    agree_fresh(kind, P, N, P * 5)


def test_a_tied_parameter_is_one_input() -> None:
    names = [i.name for i in program_of(Stack(), P).inputs if i.kind == "parameter"]
    assert len(names) == len(set(names)) == len(list(Stack().parameters()))


def test_an_autograd_function_is_one_node() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return gradient * 10 * x

    def squared(x: Tensor) -> Tensor:
        return Square.apply(x) if x.sum() > 0 else Square.apply(x) + x

    agree(squared, P.clone().requires_grad_(), N.clone().requires_grad_())


# ---- with
@contextlib.contextmanager
def says(text: str) -> Iterator[str]:
    print("enter", text)
    yield text
    print("leave", text)


class Counter:
    def __init__(self) -> None:
        self.n = 1

    def __enter__(self) -> Counter:
        self.n += 1
        return self

    def __exit__(self, *error: object) -> None:
        self.n -= 1


def context_managers(x: Tensor) -> Any:
    counter = Counter()
    with says("a") as text, counter as entered:
        y = x * entered.n
        if x.sum() > 0:
            y = y + 1
    return y, counter.n, text


def grad_modes(x: Tensor) -> Any:
    weight = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        y = x * weight
        if x.sum() > 0:
            y = y + weight
    z = x * weight
    if x.sum() > 0:
        with torch.no_grad():
            z = z * 2 + weight
        with torch.enable_grad():
            z = z + weight * 3
    return y, z, torch.is_grad_enabled()


def autocast(x: Tensor) -> Tensor:
    m = x[:, None] * x
    if x.sum() > 0:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            m = m @ m
    else:
        m = (m @ m).bfloat16()
    return m


def grad_switched(x: Tensor) -> Any:
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(True)
    return y, x * 3


@pytest.mark.parametrize("function", [context_managers, grad_modes, autocast, grad_switched])
def test_with(function: Any) -> None:
    agree(function, P.clone().requires_grad_(), N.clone().requires_grad_())


def test_a_condition_in_a_called_function_is_staged_once() -> None:
    assert count(program_of(functions, P), IF) == 4


class PrintsWithoutGrad(torch.nn.Module):
    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        print("inside")
        return x * 2


class AroundIt(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = PrintsWithoutGrad()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


def test_a_forward_that_a_mode_decorates_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    static = sg.to_static(AroundIt(), backend="eager")
    for _ in range(3):
        assert torch.equal(static(torch.ones(2)), torch.full((2,), 3.0))
        assert capsys.readouterr().out == "inside\n"


def test_a_function_that_a_mode_decorates_is_called_by_keyword() -> None:
    static = sg.to_static(without_grad, backend="eager")
    for x in (torch.ones(2, requires_grad=True), -torch.ones(2)):
        assert torch.equal(static(x=x), without_grad(x=x))
    assert static.cache_info().programs == 2, "one with gradients, one without"


def test_a_generator_that_a_mode_decorates_does_nothing_unseen(capsys: pytest.CaptureFixture[str]) -> None:
    @torch.no_grad()
    def each(x: Tensor) -> Any:
        print("inside")
        yield x * 2

    with pytest.raises(sg.CaptureError, match="print is called by code that is not rewritten"):
        sg.to_static(lambda x: list(each(x)), backend="eager")(torch.ones(2))
    assert capsys.readouterr().out == ""
