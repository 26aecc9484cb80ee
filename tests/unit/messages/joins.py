"""What two paths leave in one place and cannot be joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tests.unit.messages.case import refused

X = torch.ones(2)


@refused("SG201", X)
def another_rank_in_each_iteration(x: Tensor) -> Any:
    while x.sum() < 10:
        x = (x + 1).unsqueeze(0)
    return x


@refused("SG201", X)
def another_rank_as_a_key(x: Tensor) -> Any:
    if x.sum() > 0:
        y = x + 1
    else:
        y = x.sum()
    return len({y: 1})


@refused("SG201", X, X)
def an_attribute_changes_its_rank(x: Tensor, start: Tensor) -> Any:
    class Box:
        pass

    box = Box()
    box.value = start  # type: ignore[attr-defined]  # the user's way
    while x.sum() < 10:
        x = x + 1
        box.value = box.value[None]  # type: ignore[attr-defined]  # the user's way
    return box.value  # type: ignore[attr-defined]  # the user's way


@refused("SG201", torch.full((2, 2), 9.0))
def another_rank_by_a_conditional_expression(h: Tensor) -> Any:
    steps = torch.tensor(0)
    while h.norm() > 1:
        steps = steps + 1
        h = h[0] if steps > 3 else h
    return h


@refused("SG201", X)
def a_conditional_expression_as_a_key(x: Tensor) -> Any:
    y = x[0] if x.sum() > 0 else x
    return len({y: 1})


@refused("SG201", X)
def five_that_meet(x: Tensor) -> Any:
    rows = [x if x[0] > i else x.unsqueeze(0) for i in range(5)]
    return torch.block_diag(*rows)


@refused("SG201", torch.ones(2, 2))
def a_dimension_summed_away(x: Tensor) -> Any:
    while x.sum() < 100:
        x = x.sum(0) + 1
    return x


@refused("SG202", torch.ones(3))
def integers_or_floats(x: Tensor) -> Any:
    best = torch.zeros(3, dtype=torch.long)
    while x.sum() < 10:
        if x.sum() > 5:
            best = x
        x = x + 1
    return best


@refused("SG202", torch.ones(3))
def integers_by_turns(x: Tensor) -> Any:
    total = torch.zeros(3, dtype=torch.long)
    while total.sum() < 10:
        x, total = total, x + 1
    return total


@refused("SG202", X, torch.tensor([1, 2]))
def dtypes_in_turn(mine: Tensor, yours: Tensor) -> Any:
    while mine.sum() < 10:
        mine, yours = yours, mine * 2
    return mine


@refused("SG202", X)
def dtypes_in_a_key(x: Tensor) -> Any:
    if x.sum() > 0:
        y = x * 2
    else:
        y = torch.zeros(2, dtype=torch.long)
    return {y: 1}


@refused("SG202", X)
def a_float_on_one_path_an_integer_on_the_other(x: Tensor) -> Any:
    scale = 2.5 if x.sum() > 0 else 1
    return torch.arange(3) * scale


@refused("SG203", X)
def a_tuple_that_nests(x: Tensor) -> Any:
    path = None
    while x.sum() < 10:
        x = x + 1
        path = (x, path)
    return path


@refused("SG203", X)
def arrays_of_some_iterations(x: Tensor) -> Any:
    return [x.numpy() for _ in range(2) if x.sum() > 0]


@refused("SG203", X)
def the_length_of_two_kinds(x: Tensor) -> Any:
    if x.sum() > 0:
        found = [x]
    else:
        found = x[None]
    return {found: 1}


@refused("SG203", X)
def results_of_a_call_differ(x: Tensor) -> Any:
    def half(y: Tensor) -> Any:
        if y.sum() > 3:
            return y / 2, y
        return None

    return {half(x): x}


@dataclass
class Wide:
    width: Tensor


@dataclass
class Tall:
    height: Tensor


@refused("SG203", X)
def objects_of_two_classes(x: Tensor) -> Any:
    shape: Any = Wide(x)
    while x.sum() < 10:
        x = x + 1
        shape = Tall(x) if x.mean() > 3 else Wide(x)
    return shape


@refused("SG203", X)
def layers_in_turn(x: Tensor) -> Any:
    layer: nn.Module = nn.Tanh()
    while x.sum() < 10:
        layer = nn.ReLU()
        x = layer(x) + 1
    return {layer: x}


@refused("SG203", X)
def keys_of_two_kinds(x: Tensor) -> Any:
    state: dict[Any, Any] = {}
    if x.sum() > 0:
        state[1] = x
    else:
        state[1.0] = x
    return state


@refused("SG203", X)
def a_list_that_contains_itself(x: Tensor) -> Any:
    found: list[Any] = [x]
    if x.sum() > 0:
        found.append(found)
    return found


@refused("SG203", X)
def a_list_of_unlike_things(x: Tensor) -> Any:
    found: list[Any] = []
    while x.sum() < 10:
        x = x + 1
        found.append(x)
        found.append("step")
    return found


@refused("SG203", torch.tensor(1))
def unlike_values_by_index(i: Tensor) -> Any:
    rates = [{"rate": k / 10} for k in range(20)]
    return rates[int(i)]


@refused("SG203", torch.tensor(0))
def an_empty_list_by_index(i: Tensor) -> Any:
    names: list[Any] = []
    return names[int(i)]


@refused("SG204", X)
class AttributeOnOnePath(nn.Module):
    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(name)

    def forward(self, x: Tensor) -> Any:
        if x.sum() > 0:
            self.last = x
        return x * 2


class Box:
    value: Tensor

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


BOX = Box()
BOX.value = torch.ones(2)


@refused("SG204", X)
def a_deleted_attribute(x: Tensor) -> Any:
    if x.sum() > 0:
        del BOX.value
    return x


@refused("SG205", X)
def handed_on_from_place_to_place(x: Tensor) -> Any:
    recent = [None] * 16
    while x.sum() < 100:
        x = x + 1
        recent = [*recent[1:], x]  # type: ignore[list-item]  # the user's way
    return recent


@refused("SG203", X)
def one_list_in_two_places(x: Tensor) -> Any:
    first: list[Any] = [x]
    second: list[Any] = [x]
    while x.sum() < 10:
        x = x + 1
        first = second = [x]
    return first, second


@refused("SG203", X)
def a_string_becomes_a_dict(x: Tensor) -> Any:
    best: Any = "none"
    while x.sum() < 10:
        best = {"x": x} if isinstance(best, str) else x * 2
        x = x + 1
    return best


@refused("SG203", X)
def an_array_in_a_list_that_a_handler_would_see(x: Tensor) -> Any:
    log: list[Any] = []
    step = 0
    while step < x[0]:
        step += 1
        try:
            log.append((x + step).numpy())
            z = x + 1
            if z.sum() > 5:
                raise ValueError("too much")
        except ValueError:
            pass
    return len(log)
