from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.trace.fakes.symbolic import is_fake
from tests.cases.compare import tensors_in
from tests.unit.trace.agreement import N, P, agree, agree_fresh, program_of

CALLS = (P, N)


# ---- what comes back
def kinds(x: Tensor) -> Any:
    return {"t": x + 1, "n": 1, "f": 2.5, "b": True, "s": "text", "none": None, "l": [x, (1, [x])], "e": {}}


def shapes(x: Tensor) -> Any:
    return x.shape, x.size(), torch.Size([1]), x.dtype, x.device, range(3), slice(1, 2), ..., x[x > 0].shape


def staged_numbers(x: Tensor) -> Any:
    n = int(x.sum())
    return n, [n + 1, (n / 2, n > 0)], {"n": -n}, x.sum().item()


def arguments(x: Tensor) -> Any:
    return x, [x, x * 1], {"x": x}


def nothing(x: Tensor) -> None:
    x * 2


@pytest.mark.parametrize("function", [kinds, shapes, staged_numbers, arguments, nothing])
def test_results_have_eagers_types(function: Any) -> None:
    agree(function, *CALLS)


def test_containers_of_the_caller_come_back_as_they_are() -> None:
    def same(x: Tensor, values: list[Any], d: dict[str, Any]) -> Any:
        return values, d, values[0], x

    x, values, d = P.clone(), [P.clone(), 1], {"k": P.clone()}
    result = sg.to_static(same, backend="eager")(x, values, d)
    assert result[0] is values
    assert result[1] is d
    assert result[2] is values[0]
    assert result[3] is x


def test_a_fresh_container_is_fresh_at_each_call() -> None:
    def fresh(x: Tensor) -> Any:
        return [x], {"a": 1}, [1, 2], {1, 2}

    static = sg.to_static(fresh, backend="eager")
    first, second = static(P), static(P)
    assert all(a is not b for a, b in zip(first, second))
    first[2].append(3)
    first[3].add(3)
    assert static(P)[2:] == ([1, 2], {1, 2})


# ---- errors are eager's, and so is what happened before them
class Fails(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.values = 0, [1]
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        self.values.append(self.n)
        self.seen += x
        print("before")
        raise ValueError("always")


def test_a_function_that_always_raises() -> None:
    agree_fresh(Fails, P, N, programs=0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x @ torch.ones(4),
        lambda x: x.reshape(2, 2),
        lambda x: x.nothing,
        lambda x: x + "a",
        lambda x: undefined_name,  # noqa: F821
        lambda x: {}["key"],
        lambda x: [][1],
        lambda x: 1 // 0,
        lambda x: int("a"),
        lambda x: next(iter([])),
        lambda x: torch.cat([x, x[None]]),
    ],
)
def test_errors_of_constants_are_eagers(function: Any) -> None:
    agree(function, P)


# ---- nothing is left behind
class Writes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.values, self.last, self.table = 0, [1], None, {}
        self.register_buffer("seen", torch.zeros(3))
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor, values: list[Any], d: dict[str, Any]) -> Any:
        self.n += 1
        self.last = x * 2
        self.seen = self.seen + x
        self.seen.add_(1)
        self.values.append(x)
        self.table["k"] = x
        self.fresh = x
        values.append(x)
        d["z"] = x
        del d["q"]
        x.add_(1)
        return x

    def refused(self, x: Tensor, values: list[Any], d: dict[str, Any]) -> Any:
        return len(str(self.forward(x, values, d).sum().item()).split())


@pytest.mark.parametrize("refused", [False, True])
def test_a_capture_alone_changes_nothing(refused: bool) -> None:
    model, x, values, d = Writes(), P.clone(), [P], {"q": 1}
    names = set(vars(model)), set(model._buffers), set(model._parameters)
    if refused:
        with pytest.raises(sg.CaptureError):
            sg.to_static(model.refused, backend="eager")(x, values, d)
    else:
        sg.export(model, (x, values, d))
    assert (set(vars(model)), set(model._buffers), set(model._parameters)) == names
    assert (model.n, model.last, model.table, len(model.values)) == (0, None, {}, 1)
    assert torch.equal(model.seen, torch.zeros(3))
    assert torch.equal(x, P)
    assert len(values) == 1
    assert d == {"q": 1}
    assert not any(is_fake(t) for t in tensors_in((values, d, dict(vars(model)), dict(model.state_dict()))))


def test_a_run_leaves_real_tensors() -> None:
    model, x, values, d = Writes(), P.clone(), [P], {"q": 1}
    sg.to_static(model, backend="eager")(x, values, d)
    assert not any(is_fake(t) for t in tensors_in((x, values, d, model.last, model.seen, model.values, model.table)))
    assert model.n == 1
    assert values[1] is x


# ---- names, options, threads
def test_names() -> None:
    program = program_of(kinds, P)
    assert program.name == "kinds"
    assert program.inputs[0].name == "x"
    assert program.location.file == __file__
    assert program_of(kinds, P, name="other").name == "other"

    def star(*tensors: Tensor, **named: Tensor) -> Tensor:
        return sum(tensors) + sum(named.values())

    assert [i.name for i in sg.export(star, (P, N), {"z": P}).inputs] == ["tensors_0", "tensors_1", "z"]


def test_many_threads_capture_and_call() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Any:
            for i in range(2):
                x = self.linear(x)
                if x.sum() > 0:
                    return x, i
            return x, -1

    torch.manual_seed(0)
    model = Net()
    xs = [torch.randn(3) * k for k in range(1, 7)]
    expected = [model(x) for x in xs]
    static, wrong = sg.to_static(model, backend="eager"), []

    def work(index: int) -> None:
        for _ in range(3):
            with torch.set_grad_enabled(index % 2 == 0):
                y, step = static(xs[index])
            if step != expected[index][1] or not torch.allclose(y, expected[index][0]) or y.requires_grad == index % 2:
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(xs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert static.forward.cache_info().programs == 2
