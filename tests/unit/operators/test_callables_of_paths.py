"""Functions, methods and partials that a path makes of its own values, called behind the branch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree, refusal

UP, DOWN = (torch.tensor([1.0, 2.0]),), (torch.tensor([-3.0, 2.0]),)


def above(a: Tensor, b: Tensor) -> Tensor:
    return (a > b) * a


def shifted(function: Callable[..., Any], by: Tensor) -> Callable[..., Any]:
    def inner(a: Tensor, b: Tensor) -> Any:
        return function(by + a, by + b)

    return inner


def closure(x: Tensor) -> Any:
    g = above
    if x.sum() > 0:
        g = shifted(g, x * 2)
    return g(x, x.flip(0))


def composed(x: Tensor) -> Any:
    """As transformers composes the functions of its masks."""
    g, seen, plain = above, None, True
    if x.sum() > 0:
        seen = x * 2
    if seen is not None:
        g = shifted(g, seen)
        plain = False
    if seen is not None:
        g = shifted(g, seen + 1)
    return x if plain else g(x, x.flip(0))


def of_both(x: Tensor) -> Any:
    g = shifted(above, x * 2) if x.sum() > 0 else shifted(above, x - 1)
    return g(x, x.flip(0))


def of_unlike_variables(x: Tensor) -> Any:
    if x.sum() > 0:
        g = shifted(above, x * 2)
    else:
        g = shifted(torch.maximum, x[:1])
    return g(x, x.flip(0))


def defaults(x: Tensor) -> Any:
    g: Any = torch.relu
    if x.sum() > 0:
        y = x * 3

        def g(z: Tensor, y: Tensor = y, *, k: Tensor = y + 1) -> Tensor:
            return z * y * k

    return g(x)


def attributes(x: Tensor) -> Any:
    def scaled(p: Tensor) -> Any:
        def inner(z: Tensor) -> Tensor:
            return z + p

        inner.scale = p.sum()  # type: ignore[attr-defined]
        return inner

    g = scaled(x)
    if x.sum() > 0:
        g = scaled(x * 2)
    return g(x) * g.scale


def one_variable_of_two(x: Tensor) -> Any:
    def counter() -> Any:
        n = x.sum()

        def step() -> Tensor:
            nonlocal n
            n = n + 1
            return n

        return step, lambda: n * 2

    step, show = (lambda: x.sum()), (lambda: x.mean())
    if x.sum() > 0:
        step, show = counter()
        step()
    first, shown, second = step(), show(), step()
    return first, shown, second, show()


def partial(x: Tensor) -> Any:
    g: Any = torch.relu
    if x.sum() > 0:
        g = functools.partial(torch.add, x * 2, alpha=2)
    return g(x) if g is torch.relu else g(x + 1)


def partial_of_both(x: Tensor) -> Any:
    g = functools.partial(torch.mul, x * 2) if x.sum() > 0 else functools.partial(torch.mul, x * 3)
    return g(x), g.args[0]


class Scale:
    def __init__(self, by: Any) -> None:
        self.by = by

    def of(self, z: Tensor) -> Tensor:
        return z * self.by


DOUBLE, TREBLE = Scale(2.0), Scale(3.0)


def method_of_a_new_object(x: Tensor) -> Any:
    g: Any = torch.relu
    if x.sum() > 0:
        g = Scale(x * 2).of
    return g(x)


def methods_of_two_objects(x: Tensor) -> Any:
    g = DOUBLE.of if x.sum() > 0 else TREBLE.of
    return g(x), g is DOUBLE.of


def in_a_dict(x: Tensor) -> Any:
    functions = {"a": above}
    if x.sum() > 0:
        functions["a"] = shifted(above, x * 2)
    return functions["a"](x, x.flip(0))


def by_iterations(x: Tensor) -> Any:
    g = lambda z: z  # noqa: E731
    for i in range(3):
        if x[0] > i:
            g = lambda z, h=g, y=x * i: h(z) + y  # noqa: E731
    return g(x)


def of_itself(x: Tensor) -> Any:
    times: Any = lambda n: x  # noqa: E731
    if x.sum() > 0:
        y = x * 2

        def times(n: int) -> Tensor:
            return y if n == 0 else times(n - 1) * n

    return times(3)


def one_object(x: Tensor) -> Any:
    g = h = above
    if x.sum() > 0:
        g = h = shifted(above, x)
    return g is h, g is above, g(x, x.flip(0))


def names(x: Tensor) -> Any:
    g = above
    if x.sum() > 0:
        g = shifted(above, x)
    return (x if g.__name__ == "inner" else x + 1), g.__name__


def wrapped(x: Tensor) -> Any:
    def times(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any) -> Any:
            return function(*args) * x

        return inner

    g = above
    if x.sum() > 0:
        g = times(above)
    return g(x, x.flip(0))


FUNCTIONS = [
    *(closure, composed, of_both, of_unlike_variables, defaults, attributes, one_variable_of_two, partial),
    *(partial_of_both, method_of_a_new_object, methods_of_two_objects, in_a_dict, by_iterations, of_itself),
    *(one_object, names, wrapped),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_is_what_its_path_made(function: Any) -> None:
    agree(function, UP, DOWN, (torch.tensor([5.0, -1.0]),))


def test_gradients_reach_what_the_function_holds() -> None:
    static = sg.to_static(closure, full_graph=True)
    for (x,) in (UP, DOWN):
        given, expected = x.clone().requires_grad_(), x.clone().requires_grad_()
        static(given).sum().backward()
        closure(expected).sum().backward()
        assert given.grad is not None
        assert expected.grad is not None
        assert torch.equal(given.grad, expected.grad)


def carried(x: Tensor) -> Any:
    g = lambda z: z  # noqa: E731
    while x.sum() > 1:
        x = x / 2
        g = lambda z, y=x: z + y  # noqa: E731
    return g(x)


def test_a_function_that_a_loop_makes_anew_is_refused() -> None:
    assert "'g' is a lambda before the loop and a lambda after an iteration" in str(refusal(carried, *UP))


class Acting:
    pass


class Acted:
    def act(self, v: Tensor) -> Tensor:
        return v * 2


def _less(self: Any, v: Tensor) -> Tensor:
    return v - 1


def plain_functions(x: Tensor) -> Any:
    acting = Acting()
    if x.sum() > 0:
        Acting.act = lambda self, v: v + 1
    else:
        Acting.act = _less
    bound = acting.act
    return bound(x), Acting.act(acting, x), Acting().act(x)


def class_methods(x: Tensor) -> Any:
    if x.sum() > 0:
        Acting.named = classmethod(lambda cls, v: (cls.__name__, v + 1))
    else:
        Acting.named = classmethod(lambda cls, v: (cls.__name__, v - 1))
    return Acting().named(x), Acting.named(x)


def static_methods(x: Tensor) -> Any:
    if x.sum() > 0:
        Acting.plain = staticmethod(lambda v: v * 3)
    else:
        Acting.plain = staticmethod(lambda v: v * 4)
    return Acting().plain(x), Acting.plain(x)


@pytest.mark.parametrize("function", [plain_functions, class_methods, static_methods], ids=lambda each: each.__name__)
def test_methods_that_paths_give_a_class(function: Any) -> None:
    agree(function, P, N, P, programs=3)  # eager PyTorch, beside it, puts functions of its own there


def test_a_method_that_one_path_exchanges() -> None:
    def function(x: Tensor) -> Any:
        acted = Acted()
        before = Acted.act
        if x.sum() > 0:
            Acted.act = _less
        found = acted.act(x)
        Acted.act = before
        return found

    agree(function, P, N)
