"""What differs from call to call becomes an input: sizes, whole numbers, what was declared or marked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.cases.harness import program_count


class Recurrent(nn.Module):
    """A step for each row, and a condition on what is in it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], 4)
        for step in range(x.shape[1]):
            h = torch.tanh(self.cell(x[:, step]) + h)
            if h.sum() > 0.5:
                h = h * 0.5
        return h


@dataclass
class Batch:
    tokens: Tensor
    lengths: list[int]


def pooled(batch: Batch) -> Tensor:
    return batch.tokens.sum(0) / batch.tokens.shape[0] + len(batch.lengths)


def of_list(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts).sum(0)


def of_dict(batch: dict[str, Tensor]) -> Tensor:
    mask = batch["mask"]
    return (batch["x"] * mask).sum() / mask.sum()


def first(x: Tensor, count: int) -> tuple[Tensor, int]:
    out = x.new_zeros(())
    for i in range(count):
        out = out + x[i] * i
    return out, count * 2


def dispatched(x: Tensor, count: int) -> Tensor:
    table = [torch.sin, torch.cos, torch.tanh, torch.exp, torch.relu, torch.abs, torch.neg, torch.sigmoid]
    return table[count - 1](x)


def named(x: Tensor, count: int) -> tuple[Tensor, str]:
    return x * count, f"{count} times"


def fixed_width(x: Tensor) -> Tensor:
    return x.view(4, -1) * 2


def checked(x: Tensor) -> Tensor:
    if x.shape[0] > 5:
        raise ValueError(f"too long: {x.shape[0]}")
    return x * x.shape[0]


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


LENGTHS = range(2, 8)
PROGRAMS: list[tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]], int]] = [
    (pooled, lambda n: (Batch(random(n, 3), [1, 2]),), 2),
    (of_list, lambda n: ([random(n, 3), random(n + 1, 3)],), 2),
    (of_dict, lambda n: ({"x": random(n, 3), "mask": torch.ones(n, 3)},), 2),
    (first, lambda n: (random(9), n), 2),
    (first, lambda n: (random(n), n), 2),
    (dispatched, lambda n: (random(9), n), 2),
    (named, lambda n: (random(9), n), 2),
    (checked, lambda n: (random(n),), 2),
]


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize(("function", "call", "programs"), PROGRAMS)
def test_what_differs_is_an_input(
    function: Callable[..., Any], call: Callable[[int], tuple[Any, ...]], programs: int, full_graph: bool
) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for size in LENGTHS:
        assert_same(outcome(function, call(size)), outcome(static, call(size)))
    assert program_count(static) == programs


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return function(*args)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("full_graph", [True, False])
def test_a_training_loop_of_many_shapes(full_graph: bool, backend: str) -> None:
    eager = Recurrent()
    static = sg.to_static(Recurrent(), backend=backend, full_graph=full_graph)
    for batch, length in itertools.product((2, 5, 3), range(2, 22)):
        gradients = []
        for model in (eager, static):
            model.zero_grad()
            model(random(batch, length, 4)).square().sum().backward()
            gradients.append([parameter.grad for parameter in model.parameters()])
        assert_same(*gradients)
    assert program_count(static) == 3


def test_one_is_a_size_of_its_own() -> None:
    static = sg.to_static(Recurrent(), backend="eager")
    for batch, length in itertools.product((3, 1, 5), (1, 2, 3, 4)):
        assert_same(Recurrent()(random(batch, length, 4)), static(random(batch, length, 4)))
    assert program_count(static) == 7  # of (3, 1), (3, 2), (3, any), (1, 1), (1, any), (any, 1), (any, any)


def test_never() -> None:
    static = sg.to_static(first, backend="eager", dynamic=False)
    for size in LENGTHS:
        assert_same(first(random(size), size), static(random(size), size))
    assert program_count(static) == len(LENGTHS)


@pytest.mark.parametrize("full_graph", [True, False])
def test_from_the_first_call_on(full_graph: bool) -> None:
    static = sg.to_static(first, backend="eager", dynamic=True, full_graph=full_graph)
    for size in LENGTHS:
        assert_same(first(random(size), size), static(random(size), size))
    assert program_count(static) == 1


def test_a_list_that_leads_to_itself() -> None:
    def of_first_part(parts: list[Any]) -> Any:
        return parts[0] * 2

    static = sg.to_static(of_first_part, backend="eager", dynamic=True)
    parts: list[Any] = [random(3)]
    parts.append(parts)
    assert_same(of_first_part(parts), static(parts))


def test_what_takes_one_size_alone_is_captured_for_it() -> None:
    static = sg.to_static(fixed_width, backend="eager", dynamic=True)
    for size in (4, 8, 12):
        assert_same(fixed_width(random(size, 3)), static(random(size, 3)))


@pytest.mark.parametrize("mark", [torch._dynamo.mark_dynamic, torch._dynamo.maybe_mark_dynamic])
def test_marked(mark: Callable[[Tensor, int], None]) -> None:
    static = sg.to_static(Recurrent(), backend="eager")
    for length in LENGTHS:
        x = random(3, length, 4)
        mark(x, 1)
        assert_same(Recurrent()(x), static(x))
    assert program_count(static) == 1


def one_width(x: Tensor) -> Tensor:
    return x + torch.ones(6)


def test_a_mark_that_cannot_be_kept_is_refused() -> None:
    x = random(6)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(sg.CaptureError, match="takes only 6"):
        sg.to_static(one_width, backend="eager")(x)
    x = random(6)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    assert_same(one_width(x), sg.to_static(one_width, backend="eager")(x))


def test_marked_as_static() -> None:
    static = sg.to_static(of_list, backend="eager")
    for size in LENGTHS:
        parts = [random(size, 3)]
        torch._dynamo.mark_static(parts[0], 0)
        static(parts)
    assert program_count(static) == len(LENGTHS)


# ---- how tensors lie in memory
def laid_out(x: Tensor) -> tuple[Any, ...]:
    total = x.new_zeros(())
    for step in range(x.shape[1]):
        total = total + x[:, step].sum()
    return x * 2, x.stride(), x.is_contiguous(), x.transpose(0, 1).contiguous(), total


LAYOUTS: dict[str, Callable[[int, int], Tensor]] = {
    "rows_first": lambda b, t: random(t, b, 4).transpose(0, 1),
    "channels_last": lambda b, t: random(b, t, 4, 3).to(memory_format=torch.channels_last),
    "columns_first": lambda b, t: random(4, b, t).permute(1, 2, 0),
    "of_one_column": lambda b, t: random(t, b, 1).transpose(0, 1),
    "a_part": lambda b, t: random(b, 30, 4)[:, :t],
    "all_but_the_last": lambda b, t: random(b, t + 1, 4)[:, :-1],
    "all_but_the_first": lambda b, t: random(b, t + 1)[:, 1:],
    "a_half": lambda b, t: random(b, 2 * t, 4).chunk(2, 1)[1],
    "stretched": lambda b, t: random(b, 1).expand(b, t),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    static = sg.to_static(laid_out, backend="eager")
    for batch, length in itertools.product((2, 5, 3), LENGTHS):
        x = LAYOUTS[layout](batch, length)
        assert_same(laid_out(x), static(x))
        assert static(x)[0].stride() == laid_out(x)[0].stride()
    assert program_count(static) == 3


def of_first(x: Tensor) -> tuple[Any, ...]:
    flat = x.is_contiguous()
    return x.contiguous() + x.shape[0], flat, x.stride(), x.reshape(-1), x.stride(0) + 1


def test_the_first_of_each_row() -> None:
    static = sg.to_static(of_first, backend="eager")
    for batch, length in itertools.product((2, 5, 3), LENGTHS):
        x = random(batch, length)[:, 0]
        assert_same(of_first(x), static(x))
    assert program_count(static) == 2


def test_rows_that_lie_close_or_not() -> None:
    static = sg.to_static(of_first, backend="eager", cache_size=16)
    for size in LENGTHS:
        x = random(size, size + 2)
        for given in (x, x[:, 1:], x.t(), x[1:], x[:, :-1], x.t()[1:], x[:, 0], x[0]):
            assert_same(of_first(given), static(given))
    assert static.cache_info().programs <= 12


def test_another_layout_is_another_program() -> None:
    static = sg.to_static(laid_out, backend="eager")
    for size in LENGTHS:
        for x in (random(size, 3, 4), random(3, size, 4).transpose(0, 1)):
            assert_same(laid_out(x), static(x))
    assert program_count(static) == 4


# ---- tensors that the function finds, rather than gets
class Stateful(nn.Module):
    """Its state has the rows of its input, after a reset."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Tensor | None = None
        self.register_buffer("seen", torch.zeros(2, 3))
        self.parts = {"first": torch.zeros(2, 3)}

    def forward(self, x: Tensor) -> tuple[Any, ...]:
        self.seen.add_(x)
        self.parts["first"] = self.parts["first"] + x
        if self.state is None:
            self.state = torch.zeros_like(x)
        self.state = torch.tanh(self.state + x * self.state.shape[0])
        if x.sum() > 0:
            self.seen[0] = 7
        return self.state, self.seen * 1, self.seen is x, self.parts["first"].shape


@pytest.mark.parametrize("full_graph", [True, False])
def test_state(full_graph: bool) -> None:
    eager, model = Stateful(), Stateful()
    static = sg.to_static(model, backend="eager", full_graph=full_graph)
    for size in LENGTHS:
        for each in (eager, model):
            each.state, each.seen, each.parts["first"] = None, torch.ones(size, 3), torch.zeros(size, 3)
        for call in range(3):
            x = random(size, 3) * (-1) ** call
            assert_same(eager(x), static(x))
            assert_same(eager.seen, model.seen)
            assert_same(eager.parts, model.parts)
            assert_same(eager.state, model.state)
    assert program_count(static) == 4  # with a state and without, of two rows and of any number


class Cache(nn.Module):
    """Keys that grow with each call."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = torch.zeros(2, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.keys = torch.cat([self.keys, x[:, None]], 1)
        return (self.keys * x[:, None]).sum(-1).softmax(-1)


@pytest.mark.parametrize("full_graph", [True, False])
def test_a_cache_that_grows(full_graph: bool) -> None:
    eager, static = Cache(), sg.to_static(Cache(), backend="eager", full_graph=full_graph)
    for call in range(8):
        x = random(2, 3) * call
        assert_same(eager(x), static(x))
        assert_same(eager.keys, static.keys)
    assert program_count(static) == 3  # of a row, of two, of any number


TABLE = [torch.zeros(2, 3)]


def from_outside(x: Tensor) -> tuple[Any, ...]:
    return TABLE[0].sum() * x, TABLE[0].shape, TABLE[0] is x


@pytest.mark.parametrize("full_graph", [True, False])
def test_a_list_of_the_modules(full_graph: bool) -> None:
    static = sg.to_static(from_outside, backend="eager", full_graph=full_graph)
    for size in LENGTHS:
        TABLE[0] = random(size, 3)
        assert_same(from_outside(random(3)), static(random(3)))
    assert program_count(static) == 2


# ---- declared as to torch.export
def scaled(x: Tensor, rest: dict[str, list[Tensor]], *more: Tensor, factor: Tensor | None = None) -> Tensor:
    total = x.sum(0) + rest["parts"][0].sum(0)
    for each in more:
        total = total + each.sum(0)
    return total if factor is None else total * factor.sum()


BATCH = torch.export.Dim("batch", min=2, max=100)
SHAPES: list[Any] = [
    {"x": {0: BATCH}, "rest": {"parts": [{0: torch.export.Dim.DYNAMIC}]}, "factor": {0: torch.export.Dim.AUTO}},
    {"x": (BATCH, 3), "rest": {"parts": [[torch.export.Dim.AUTO, None]]}, "factor": (torch.export.Dim("f"),)},
    ({0: BATCH, 1: torch.export.Dim.STATIC}, {"parts": [{-2: torch.export.Dim("rows")}]}),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_declared_as_to_torch_export(shapes: Any) -> None:
    static = sg.to_static(scaled, backend="eager", dynamic_shapes=shapes)
    for size in LENGTHS:
        args = random(size, 3), {"parts": [random(size + 1, 3)]}
        given = {"factor": random(size)} if isinstance(shapes, dict) else {}
        assert_same(scaled(*args, **given), static(*args, **given))
    assert program_count(static) == 1


def test_declared_of_a_module_and_of_a_file(tmp_path: Any) -> None:
    model, shapes = Recurrent(), {"x": {0: torch.export.Dim("b"), 1: torch.export.Dim("t")}}
    path = tmp_path / "model.pt2"
    sg.save(model, path, args=(random(3, 4, 4),), dynamic_shapes=shapes)
    loaded = sg.load(path)
    static = sg.to_static(Recurrent(), backend="eager", dynamic_shapes=shapes)
    program = sg.export(model, (random(3, 4, 4),), dynamic_shapes=shapes)
    assert "?, ?" in str(program.guards[1]) or any("?, ?" in str(guard) for guard in program.guards)
    for batch, length in ((3, 4), (5, 2), (2, 9)):
        x = random(batch, length, 4)
        assert_same(model(x), static(x))
        torch.testing.assert_close(loaded(x), model(x))
    assert program_count(static) == 1


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dynamic_shapes": 3}, TypeError, "dynamic_shapes is a dict or sequence"),
        ({"dynamic_shapes": {}, "input_spec": []}, ValueError, "say the same"),
        ({"dynamic": 1}, TypeError, "dynamic is True, False or None"),
    ],
)
def test_what_cannot_be_declared(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sg.to_static(scaled, **options)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"x": {2: BATCH}}, "for a tensor of 2 dimensions"),
        ({"x": BATCH}, "not a dict or sequence of its dimensions"),
        ({"x": {0: 2 * torch.export.Dim("half")}}, "is computed from another dimension"),
        ({"x": {0: 7}}, "'x' is .*, but dynamic_shapes declares"),
        ({"x": {0: "batch"}}, "dynamic_shapes has 'batch' for a dimension"),
        ({"x": {0: True}}, "dynamic_shapes has True for a dimension"),
        ({"x": {0: -1}}, "dynamic_shapes has -1 for a dimension"),
        ({"z": {0: BATCH}}, "dynamic_shapes has 'z', which is no argument of scaled"),
        (({0: BATCH}, *[None] * 6), "dynamic_shapes has 7 entries, but scaled has 3 arguments"),
    ],
)
def test_what_does_not_fit(shapes: Any, words: str) -> None:
    static = sg.to_static(scaled, backend="eager", dynamic_shapes=shapes)
    with pytest.raises(sg.CaptureError, match=words) as raised:
        static(random(4, 3), {"parts": [random(4, 3)]})
    assert raised.value.reason.code == "SG501"


# ---- tensors outside, told by identity
PLACES: dict[str, Any] = {}


def same_or_not(x: Tensor) -> tuple[Any, ...]:
    first, second = PLACES["first"], PLACES["second"]
    if first is second:
        return x + 1, first in {first: 1}, getattr(first, "tag", None)
    return second * 100 + x.sum(), first.sum(), getattr(first, "tag", None)


@pytest.mark.parametrize("options", [{}, {"full_graph": False}, {"dynamic": True}], ids=str)
def test_one_tensor_at_two_places(options: dict[str, Any]) -> None:
    static = sg.to_static(same_or_not, backend="eager", **options)
    for first, second in [(3, 5), (4, 5), (6, 0), (5, 0), (7, 0), (3, 4), (1, 0), (2, 1)]:
        PLACES["first"] = torch.randn(first)
        PLACES["second"] = torch.randn(second) if second else PLACES["first"]
        PLACES["first"].tag = first
        assert_same(same_or_not(torch.ones(2)), static(torch.ones(2)))
