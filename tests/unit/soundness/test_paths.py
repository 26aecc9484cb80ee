"""Objects that the code comes to by several ways, or of which it asks only a little."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.soundness.following import Box, X, follows, setting, storing


# ---- shared objects
class Scaled(nn.Module):
    """Has its settings under a name of its own."""

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self.own_settings = settings

    def forward(self, x: Tensor) -> Tensor:
        return x * self.own_settings.rate  # type: ignore[no-any-return]


class Outer(nn.Module):
    """Has the settings of its child too, and does not look at them."""

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self.config = settings
        self.child = Scaled(settings)

    def forward(self, x: Tensor) -> Tensor:
        return self.child(x)  # type: ignore[no-any-return]


def test_settings_that_a_parent_has_under_another_name() -> None:
    settings = Box(rate=2.0)
    follows(Outer(settings), setting(settings, rate=5.0))


def test_settings_that_are_shared_no_longer() -> None:
    model = Outer(Box(rate=2.0))
    follows(model, setting(model, config=Box(rate=3.0)), setting(model.child, own_settings=Box(rate=7.0)))


def test_a_tensor_that_is_found_by_a_way_the_code_does_not_take() -> None:
    class Inner(nn.Module):
        def __init__(self, settings: Any) -> None:
            super().__init__()
            self.own_settings = settings

        def forward(self, x: Tensor) -> Tensor:
            return x * self.own_settings.weight  # type: ignore[no-any-return]

    class Model(Outer):
        def __init__(self, settings: Any) -> None:
            super().__init__(settings)
            self.child: Any = Inner(settings)

    model = Model(Box(weight=torch.ones(3)))
    follows(
        model,
        setting(model, config=Box(weight=torch.ones(3) * 9)),
        setting(model.child, own_settings=Box(weight=torch.ones(3) * 3)),
    )


def test_an_effect_on_an_object_that_is_found_by_another_way() -> None:
    class Counting(nn.Module):
        def __init__(self, settings: Any) -> None:
            super().__init__()
            self.own_settings = settings

        def forward(self, x: Tensor) -> Tensor:
            self.own_settings.last = x.sum()
            return x * 2

    class Model(Outer):
        def __init__(self, settings: Any) -> None:
            super().__init__(settings)
            self.child: Any = Counting(settings)

    first, second = Box(last=None), Box(last=None)
    model = Model(first)
    static = sg.to_static(model, backend="eager")
    static(X)
    model.config = second
    static(X * 2)
    assert first.last == 12
    assert second.last is None


@pytest.mark.parametrize("make", [list, set, dict], ids=lambda kind: kind.__name__)
def test_a_container_under_two_names(make: Any) -> None:
    shared = make({1: 2, 3: 4}) if make is dict else make([1, 3])
    owner = Box(hidden=shared, seen=shared)
    grow = {dict: lambda: shared.update({5: 6}), set: lambda: shared.add(5), list: lambda: shared.append(5)}[make]
    follows(lambda x: x * sum(owner.seen) + len(owner.seen), grow, setting(owner, seen=make()))


@pytest.mark.parametrize("value", [(1, 2), (), frozenset({1, 2}), frozenset()], ids=str)
def test_a_constant_container_under_two_names(value: Any) -> None:
    owner = Box(left=value, right=value)
    change = setting(owner, right=(5, 6))
    follows(lambda x: x * (1 + sum(owner.left)) - sum(owner.right), change, setting(owner, left=(7,)))


@pytest.mark.parametrize("name", ["stride", "padding", "dilation"])
def test_settings_of_a_convolution_that_are_one_tuple(name: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 1, 2))
    changed = setting(model[0], **{name: (2, 2)})
    follows(model, changed, setting(model[0], **{name: (1, 1)}), args=(torch.randn(1, 1, 6, 6),))


def test_two_tensors_that_become_one() -> None:
    owner = Box(a=torch.ones(3), b=torch.ones(3))
    follows(
        lambda x: x * 2 if owner.a is owner.b else x,
        lambda: setattr(owner, "b", owner.a),
        lambda: setattr(owner, "a", torch.zeros(3)),
    )


# ---- kinds of containers
@pytest.mark.parametrize("other", [(3, 1), [3, 1]], ids=lambda value: type(value).__name__)
def test_the_type_of_a_container(other: Any) -> None:
    owner = Box(sizes=[3, 1] if type(other) is tuple else (3, 1))
    follows(lambda x: x.view(owner.sizes) if isinstance(owner.sizes, list) else x, setting(owner, sizes=other))


def test_a_dictionary_that_becomes_one_with_defaults() -> None:
    import collections

    owner = Box(table={"a": 1})

    def function(x: Tensor) -> Tensor:
        try:
            return x * owner.table["b"]
        except KeyError:
            return x - 1

    follows(function, lambda: setattr(owner, "table", collections.defaultdict(lambda: 5, {"a": 1})), settled=2)


@pytest.mark.parametrize("shape", [torch.Size([3, 1]), torch.Size([1, 3])], ids=str)
def test_a_size(shape: torch.Size) -> None:
    owner = Box(shape=torch.Size([3]))
    follows(lambda x: x.reshape(owner.shape), setting(owner, shape=shape))


def test_what_torch_returns_by_name() -> None:
    owner = Box(found=torch.max(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), 0))
    follows(
        lambda x: x * owner.found.values.sum() + owner.found.indices.sum(),
        lambda: setattr(owner, "found", torch.max(torch.tensor([[3.0, 4.0]]), 0)),
    )


@pytest.mark.parametrize("make", [set, frozenset, dict.fromkeys], ids=lambda kind: kind.__name__)
def test_attributes_of_what_a_set_holds(make: Callable[[Any], Any]) -> None:
    item = Box(rate=2.0, weight=torch.ones(3))
    items = make([item])

    def function(x: Tensor) -> Tensor:
        for each in items:
            x = x * each.rate + each.weight
        return x

    follows(function, setting(item, rate=5.0), setting(item, weight=torch.zeros(3)))


def test_writes_to_what_a_set_holds() -> None:
    item = Box(last=None, count=0)
    items = {item}

    def function(x: Tensor) -> Tensor:
        for each in items:
            each.last, each.count = x * 2, each.count + 1
        return x

    static = sg.to_static(function, backend="eager")
    for step in range(3):
        static(X + step)
        assert_same(item.last, (X + step) * 2)
        assert item.count == step + 1
    assert static.cache_info().programs <= 2  # None, or a tensor


# ---- modules
def test_a_child_that_is_none() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm: Any = nn.Tanh()

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(x) if self.norm is not None else x  # type: ignore[no-any-return]

    model = Model()
    model.norm = None
    follows(model, setting(model, norm=nn.Tanh()), setting(model, norm=None), setting(model, norm=nn.Sigmoid()))


class HookOwner:
    """Its methods are hooks."""

    def __init__(self) -> None:
        self.rate = 2.0
        self.weight = torch.ones(3)
        self.last: Any = None
        self.count = 0
        self.log: list[float] = []

    def scale(self, module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return output * self.rate + self.weight

    def scale_input(self, module: nn.Module, args: Any) -> Any:
        return (args[0] * self.rate + self.weight,)

    def record(self, module: nn.Module, args: Any, output: Tensor) -> None:
        self.last = output
        self.count += 1
        self.log.append(output.mean().item())

    def __call__(self, module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return self.scale(module, args, output)


def scale_by(owner: HookOwner, module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return owner.scale(module, args, output)


@pytest.mark.parametrize(
    "hook",
    [lambda o: o.scale, lambda o: o, lambda o: partial(scale_by, o), lambda o: lambda m, a, out: o.scale(m, a, out)],
    ids=["method", "object", "partial", "closure"],
)
def test_state_of_a_forward_hook(hook: Callable[[HookOwner], Any]) -> None:
    torch.manual_seed(0)
    model, owner = nn.Sequential(nn.Linear(3, 3)), HookOwner()
    model[0].register_forward_hook(hook(owner))
    weight = torch.zeros(3)
    follows(model, setting(owner, rate=5.0), setting(owner, weight=weight), storing(owner.__dict__, "rate", 1.0))


def test_state_of_a_forward_pre_hook() -> None:
    torch.manual_seed(0)
    model, owner = nn.Sequential(nn.Linear(3, 3)), HookOwner()
    model[0].register_forward_pre_hook(owner.scale_input)
    follows(model, setting(owner, rate=5.0), setting(owner, weight=torch.zeros(3)))


def test_what_a_hook_records() -> None:
    def recorded(static: bool) -> tuple[HookOwner, int]:
        torch.manual_seed(0)
        model, owner = nn.Sequential(nn.Linear(3, 3)), HookOwner()
        model[0].register_forward_hook(owner.record)
        if static:
            model = sg.to_static(model, backend="eager")
        for step in range(4):
            model(X * step)
        return owner, model.forward.cache_info().programs if static else 0

    (expected, _), (actual, programs) = recorded(False), recorded(True)
    assert_same(vars(expected), vars(actual))
    assert programs <= 2


# ---- tensors that are only looked at
def test_metadata_of_a_tensor_that_is_not_computed_with() -> None:
    class Model(nn.Module):
        def __init__(self, read: Callable[[Any, Tensor], Tensor]) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
            self.register_buffer("mask", torch.ones(3))
            self.plain = torch.ones(1)
            self.read = read

        def forward(self, x: Tensor) -> Tensor:
            return self.read(self, x)

    def total(self: Any, x: Tensor) -> Tensor:
        return x * sum(p.numel() for p in self.parameters() if p.requires_grad)

    readers: list[Callable[[Any, Tensor], Tensor]] = [
        lambda self, x: x.to(self.weight.dtype),
        lambda self, x: x.to(next(self.parameters()).dtype),
        lambda self, x: x * 2 if self.weight.requires_grad else x,
        lambda self, x: x * 2 if self.mask is not None else x,
        lambda self, x: x * self.plain.shape[0] + self.plain.dim(),
        lambda self, x: x * self.mask.size(0),
        lambda self, x: x * 2 if isinstance(self.plain, Tensor) else x * self.plain,
        total,
    ]
    for read in readers:
        model = Model(read)
        follows(
            model,
            partial(model.weight.requires_grad_, False),
            model.double,
            setting(model, mask=torch.ones(5)),
            setting(model, plain=torch.ones(2, 2)),
            setting(model, mask=None),
            setting(model, plain=3.0),
        ) if read is not readers[5] else follows(model, setting(model, mask=torch.ones(5)))


def test_state_that_is_made_anew_when_the_batch_changes() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state: Any = None

        def forward(self, x: Tensor) -> Tensor:
            if self.state is None or self.state.size(0) != x.size(0) or self.state.dtype != x.dtype:
                self.state = torch.zeros_like(x)
            self.state = self.state + x
            return self.state * 1  # type: ignore[no-any-return]

    eager, ours = Model(), sg.to_static(Model(), backend="eager")
    for count, dtype in [(2, torch.float32), (2, torch.float32), (3, torch.float32), (3, torch.float64)] * 2:
        x = torch.ones(count, 2, dtype=dtype)
        assert_same(eager(x), ours(x))


# ---- writes to what only a callee leads to
RECORDS: dict[str, Any] = {}


def _record(x: Tensor) -> None:
    RECORDS["last"] = (x.sum().item(),)
    RECORDS["log"].append((1, x.mean()))
    RECORDS["made"] = [x]
    RECORDS.setdefault("later", []).append((x,))
    RECORDS["pair"][0] = (x, 2 * x)


def test_new_containers_stored_where_only_a_callee_leads() -> None:
    def recorded(call: Any) -> list[Any]:
        RECORDS.clear()
        RECORDS.update(last=("none",), log=[], pair=[None, 1])
        seen = []
        for step in range(4):
            call(torch.ones(2) * step)
            seen.append({key: list(value) for key, value in RECORDS.items()})
        return seen

    def function(x: Tensor) -> Tensor:
        _record(x)
        return x * 2

    expected = recorded(function)
    assert_same(expected, recorded(sg.to_static(function, backend="eager")))
