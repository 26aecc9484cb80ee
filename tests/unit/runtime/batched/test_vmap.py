"""`sg.vmap`: each lane takes its own way, and has what a call for it alone has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.runtime.batched import calling

X = torch.tensor([[1.0, 2.0], [-5.0, -6.0], [60.0, 50.0], [0.1, 0.3], [1.0, 2.0]])


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why calls were run lane by lane."""
    found: list[str] = []

    def log(kind: str, what: str, text: str, **more: Any) -> None:
        found.append(text)

    monkeypatch.setattr(calling, "log", log)
    return found


def loop(function: Callable[..., Any], *columns: Any) -> list[Any]:
    return [function(*each) for each in zip(*columns)]


def same(function: Callable[..., Any], *columns: Tensor) -> None:
    """Assert that values and gradients are those of a loop over the lanes."""
    left, right = ([each.clone().requires_grad_(each.is_floating_point()) for each in columns] for _ in range(2))
    found, expected = sg.vmap(function)(*left), torch.stack(loop(function, *right))
    torch.testing.assert_close(found, expected, equal_nan=True)
    if not expected.requires_grad:
        return
    for value in (found, expected):
        (value * torch.arange(1, value.numel() + 1).reshape(value.shape).cos()).sum().backward()
    for one, other in zip(left, right):
        torch.testing.assert_close(one.grad, other.grad, equal_nan=True)


def branch(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x.log() * 2
    return x.abs().sqrt()


def loops(x: Tensor) -> Tensor:
    while x.abs().sum() < 100:
        if x.sum() > 10:
            x = x * x
        else:
            x = x * 2 + 1
    return x


def breaks(x: Tensor) -> Tensor:
    total = x.sum() * 0
    for value in x:
        if value < 0:
            break
        if value > 50:
            continue
        total = total + value.sqrt()
    return total


def grows(x: Tensor) -> Tensor:
    found = [x]
    while found[-1].abs().sum() < 40:
        found.append(found[-1] * 3)
    return torch.stack(found).sum(0) + len(found)


def factorial(x: Tensor) -> Tensor:
    return x if x.abs().sum() > 30 else factorial(x * 1.7) * x


def caught(x: Tensor) -> Tensor:
    try:
        if x.sum() > 3:
            raise ValueError("much")
        y = x * 2
    except ValueError:
        y = x - 1
    return y


def written(x: Tensor) -> Tensor:
    y = x * 1
    if x.sum() > 0:
        y[0] = x[1] * 10
    y += 1
    return y


def early(x: Tensor) -> Tensor:
    for _ in range(100):
        x = x + 1
        if x.sum() > 10:
            return x * 100
    return x


def numbers(x: Tensor) -> Tensor:
    steps, scale = 0, 1.0
    while x.abs().sum() < 100:
        x = x * 2
        steps += 1
        scale = scale * 0.5 + steps
    return x * scale + x[steps % 2]


FUNCTIONS = [branch, loops, breaks, grows, factorial, caught, written, early, numbers]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_and_gradients_are_those_of_a_loop(function: Callable[..., Any], one_by_one: list[str]) -> None:
    same(function, X)
    assert one_by_one == []


def test_nothing_is_computed_for_a_lane_that_is_elsewhere() -> None:
    def inverse(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return torch.linalg.inv(x)  # of no other matrix there is one
        return x * 2

    x = torch.stack([torch.eye(2), torch.zeros(2, 2), torch.tensor([[2.0, 1.0], [1.0, 1.0]])])
    same(inverse, x)


def test_a_gradient_is_no_nan_where_the_other_arm_would_give_one() -> None:
    def root(x: Tensor) -> Tensor:
        return x.sqrt() if x > 0 else x * 3

    same(root, torch.tensor([4.0, 0.0, -1.0, 9.0]))


def test_lanes_that_are_done_keep_what_they_have() -> None:
    def halved(x: Tensor) -> Tensor:
        while (x > 1).any():
            x = x / 0 if x.sum() > 1e3 else x / 2
        return x

    same(halved, torch.tensor([[float("nan"), 0.0], [float("-inf"), 1.0], [7.0, 3.0]]))


def test_dimensions_of_arguments_and_results() -> None:
    def shifted(x: Tensor, by: Any, *, scale: Tensor) -> dict[str, Any]:
        if x.sum() > 0:
            x = x + by["some"]
        return {"x": x * scale, "by": by["other"]}

    by = {"some": torch.tensor([1.0, 2.0]), "other": torch.arange(5.0)}
    scale = torch.arange(5.0)
    dims: Any = (1, {"some": None, "other": 0})
    found = sg.vmap(shifted, in_dims=dims, out_dims={"x": 1, "by": 0})(X.T, by, scale=scale)
    expected = [
        shifted(x, {"some": by["some"], "other": o}, scale=s)["x"] for x, o, s in zip(X, by["other"], scale)
    ]
    torch.testing.assert_close(found["x"], torch.stack(expected, 1))
    torch.testing.assert_close(found["by"], by["other"])


def test_numbers_of_python_become_tensors() -> None:
    def counted(x: Tensor) -> Any:
        count, total = 0, 0.5
        while x.sum() > 3:
            x, count, total = x / 2, count + 1, total * 1.1
        return count, total, count > 2, "text", None

    count, total, many, text, nothing = sg.vmap(counted)(X)
    expected = loop(counted, X)
    assert count.tolist() == [each[0] for each in expected]
    assert count.dtype == torch.int64
    assert total.tolist() == [each[1] for each in expected]
    assert total.dtype == torch.float64
    assert many.tolist() == [each[2] for each in expected]
    assert (text, nothing) == ("text", None)


def test_a_method_of_a_static_module_and_a_plain_module() -> None:
    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            while x.abs().sum() > 1:
                x = torch.tanh(self.layer(x)) * 0.5
            return x

    module = Steps()
    expected = torch.stack(loop(module, X))
    torch.testing.assert_close(sg.vmap(module)(X), expected)
    sg.vmap(module)(X).sum().backward()
    batched = module.layer.weight.grad
    module.zero_grad()
    expected.sum().backward()
    torch.testing.assert_close(batched, module.layer.weight.grad)
    static = sg.to_static(module, backend="eager")
    torch.testing.assert_close(sg.vmap(static)(X), expected)
    torch.testing.assert_close(sg.vmap(static.forward)(X), expected)


# ---- what fails, and what is refused
def test_the_error_is_that_of_the_first_lane_that_raises() -> None:
    def checked(x: Tensor) -> Tensor:
        if x[0] > 50:
            raise KeyError("later")
        if x.sum() < 0:
            raise ValueError("first")
        return x

    with pytest.raises(ValueError, match="first"):
        sg.vmap(checked)(X)


def appends(x: Tensor) -> Tensor:
    KEPT.append(x)
    return x


def prints(x: Tensor) -> Tensor:
    if x.sum() > 0:
        print(x)
    return x


KEPT: list[Tensor] = []


@pytest.mark.parametrize("function", [appends, prints])
def test_effects_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(sg.CaptureError, match="SG311"):
        sg.vmap(function)(X)
    assert KEPT == []


def unequal(x: Tensor) -> Any:
    return x[:1] if x.sum() > 0 else x


def structures(x: Tensor) -> Any:
    return (x, x) if x.sum() > 0 else x


@pytest.mark.parametrize("function", [unequal, structures])
def test_results_that_cannot_be_stacked_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(sg.CaptureError, match="SG312"):
        sg.vmap(function)(X)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="randomness is 'some'"):
        sg.vmap(branch, randomness="some")
    with pytest.raises(TypeError, match="not callable"):
        sg.vmap(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no argument has lanes"):
        sg.vmap(branch, in_dims=None)(X)
    with pytest.raises(ValueError, match=r"\[3, 5\] lanes"):
        sg.vmap(lambda x, y: x)(X, X[:3])
    with pytest.raises(ValueError, match="dimension 2 to a tensor of 2"):
        sg.vmap(branch, in_dims=2)(X)
    with pytest.raises(ValueError, match="another structure"):
        sg.vmap(branch, in_dims=(0, 0))(X)


def test_an_argument_that_is_written_is_written_lane_by_lane(one_by_one: list[str]) -> None:
    def doubled(x: Tensor) -> Tensor:
        if x.sum() > 0:
            x.mul_(2)
        return x + 1

    left, right = X.clone(), X.clone()
    found, expected = sg.vmap(doubled)(left), torch.stack(loop(doubled, right))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(left, right)
    assert ["outlives the call" in each for each in one_by_one] == [True]


# ---- random numbers
def noisy(x: Tensor) -> Tensor:
    if x.sum() > 0:
        x = x + torch.rand(2)
    return x + torch.rand(2)


def test_random_numbers() -> None:
    with pytest.raises(sg.CaptureError, match="SG311"):
        sg.vmap(noisy)(X)
    alike = X[:1].expand(4, 2)
    different = sg.vmap(noisy, randomness="different")(alike)
    assert len({tuple(each) for each in different.tolist()}) == 4
    same_for_all = sg.vmap(noisy, randomness="same")(alike)
    assert len({tuple(each) for each in same_for_all.tolist()}) == 1


def test_random_numbers_that_are_the_same_for_lanes_that_part() -> None:
    torch.manual_seed(3)
    found = sg.vmap(noisy, randomness="same")(X)
    expected = []
    for x in X:
        torch.manual_seed(3)
        expected.append(noisy(x))
    torch.testing.assert_close(found, torch.stack(expected))


# ---- how it is run
def test_a_stretch_is_written_once_for_each_kind() -> None:
    static = sg.to_static(loops, backend="eager")
    batched = sg.vmap(static)
    batched(X)
    call, _ = static.captured((torch.ones(2),), {})
    parts = [part for some in call.batched._parts.values() for part in some if hasattr(part, "written")]
    before = [len(part.written) for part in parts]
    batched(torch.cat([X, X]))
    assert [len(part.written) for part in parts] == before
    assert sum(before) > 0


def test_one_program_serves_all_lanes() -> None:
    static = sg.to_static(loops, backend="eager")
    sg.vmap(static)(X)
    sg.vmap(static)(X[:2])
    static(X[0])
    assert static.cache_info().programs == 1


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    yield
    KEPT.clear()


def test_it_is_refused_inside_of_a_captured_function() -> None:
    def outer(x: Tensor) -> Tensor:
        return sg.vmap(branch)(x) + 1

    with pytest.raises(sg.CaptureError, match=r"sg\.vmap is used inside") as refused:
        sg.to_static(outer, backend="eager")(X)
    assert refused.value.reason.code == "SG304"
    partly = sg.to_static(outer, backend="eager", full_graph=False)
    assert torch.equal(partly(X), torch.stack([branch(x) for x in X]) + 1)


class Pair:
    def __init__(self, left: Tensor, right: Any) -> None:
        self.left, self.right = left, right


def test_objects_are_no_results() -> None:
    for make in (lambda x: Pair(branch(x), 1), lambda x: {"pair": Pair(x, x)}, lambda x: {Pair(x, x)}):
        with pytest.raises(sg.CaptureError, match=r"each lane returns a (Pair|set)") as refused:
            sg.vmap(make)(X)
        assert refused.value.reason.code == "SG312"
