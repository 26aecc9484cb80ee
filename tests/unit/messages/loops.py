"""Loops and recursions that cannot be staged; lists and keys of which the run decides."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.unit.messages.case import refused

X = torch.ones(2)
heads = {"a": 1}


@refused("SG206", torch.ones(6), torch.tensor(2))
def a_step_of_the_run(x: Tensor, step: Tensor) -> Any:
    total = x.new_zeros(())
    for i in range(0, len(x), int(step)):
        total = total + x[i]
    return total


@refused("SG206", X)
def a_generator_left_half_way(x: Tensor) -> Any:
    values = (x * i for i in range(5))
    for value in values:
        if value.sum() > 2:
            break
    for value in values:
        x = x + value
    return x


@refused("SG207", torch.full((2,), 4.0))
def another_structure_at_each_depth(x: Tensor) -> Any:
    if x.norm() > 1:
        return (x, another_structure_at_each_depth(x / 2))
    return x


@refused("SG207", torch.full((2,), 4.0))
def another_rank_at_each_depth(x: Tensor) -> Any:
    if x.norm() > 1:
        return another_rank_at_each_depth(x.unsqueeze(0) / 2) + 1
    return x


@refused("SG207", X)
def it_never_ends(x: Tensor) -> Any:
    if x.sum() > 0:
        return it_never_ends(x + 1) + 1
    return it_never_ends(x - 1)


@refused("SG209", X)
def none_has_no_mean(x: Tensor, offset: Any = None) -> Any:
    if x.mean() > 1:
        x = x - offset.mean()
    return x


@refused("SG209", X)
def a_dimension_that_is_a_text(x: Tensor) -> Any:
    def project(y: Any) -> Any:
        return y.squeeze("rows")

    if x.sum() > 5:
        return project(x)
    return x


@refused("SG209", X)
def a_name_that_is_not_there(x: Tensor) -> Any:
    while x.sum() < 10:
        x = x.nothing + 1
    return x


@refused("SG209", X)
def a_tensor_is_no_text(x: Tensor) -> Any:
    if x.sum() > 5:
        print(", ".join([x]))  # type: ignore[list-item]  # the user's mistake
    return x


@refused("SG210", X)
def a_list_stacked_by_another_function(x: Tensor) -> Any:
    found = []
    while x.sum() < 10:
        x = x + 1
        found.append(x)
    return torch.vstack(found)


@refused("SG210", X)
def a_list_as_arguments(x: Tensor) -> Any:
    found = []
    while x.sum() < 10:
        x = x + 1
        found.append(x)
    return torch.broadcast_tensors(*found)


@refused("SG210", X)
def a_list_given_to_python(x: Tensor) -> Any:
    import itertools

    found = []
    while x.sum() < 10:
        x = x + 1
        found.append(x)
    return list(itertools.permutations(found))


@refused("SG210", X)
def a_slice_with_a_step_assigned(x: Tensor) -> Any:
    found = [x]
    while x.sum() < 10:
        x = x + 1
        found.append(x)
    found[::2] = [x]
    return found


@refused("SG210", X)
def a_method_of_a_list(x: Tensor) -> Any:
    found = [x]
    while x.sum() < 10:
        x = x + 1
        found.append(x)
    found.__imul__(2)
    return found


@refused("SG210", X)
def a_list_of_strings_as_a_tensor(x: Tensor) -> Any:
    found = []
    while x.sum() < 10:
        x = x + 1
        found.append((x, x))
    return torch.stack(found)  # type: ignore[arg-type]  # the user's way


@refused("SG210", X)
def one_object_repeated(x: Tensor) -> Any:
    return [[x]] * int(x.sum())


@refused("SG211", X)
def a_dict_given_to_python(x: Tensor) -> Any:
    import json

    options = {}
    if x.sum() > 0:
        options["alpha"] = 2
    return json.dumps(options)


@refused("SG211", X)
def a_set_hashed(x: Tensor) -> Any:
    kinds = {"a"}
    if x.sum() > 0:
        kinds.add("b")
    return {frozenset(kinds): x}
