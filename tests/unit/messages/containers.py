"""Lists and dicts that differ from path to path, and what to write instead."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from tests.unit.messages.case import mends, refused

X = torch.tensor([1.0, 2.0, 3.0])


@refused("SG305", X)
def appended_to_one_or_the_other(x: Tensor) -> Any:
    positive: list[Tensor] = []
    negative: list[Tensor] = []
    for each in x:
        (positive if each > 1 else negative).append(each)
    return positive, negative


@mends(appended_to_one_or_the_other, X)
def appended_in_branches(x: Tensor) -> Any:
    positive: list[Tensor] = []
    negative: list[Tensor] = []
    for each in x:
        if each > 1:
            positive.append(each)
        else:
            negative.append(each)
    return positive, negative


@refused("SG305", X)
def keys_of_a_defaultdict(x: Tensor) -> Any:
    groups: defaultdict[str, list[Tensor]] = defaultdict(list)
    for each in x:
        groups["large" if each > 1 else "small"].append(each)
    return dict(groups)


@mends(keys_of_a_defaultdict, X)
def keys_made_before(x: Tensor) -> Any:
    groups: defaultdict[str, list[Tensor]] = defaultdict(list)
    groups["large"], groups["small"] = [], []
    for each in x:
        if each > 1:
            groups["large"].append(each)
        else:
            groups["small"].append(each)
    return groups["large"], groups["small"]


@refused("SG201", [torch.ones(3)], torch.tensor(1.0))
def elements_of_two_ranks(history: list[Tensor], loss: Tensor) -> Any:
    if loss > 0:
        history.append(loss)
    return torch.stack(history)


@mends(elements_of_two_ranks, X)
def elements_of_one_rank(x: Tensor) -> Any:
    history = [x]
    if x.sum() > 0:
        history.append(x.sum().expand(3))
    return torch.stack(history)


@refused("SG203", X)
def the_keys_as_a_list(x: Tensor) -> Any:
    found: dict[Any, Tensor] = {"all": x}
    if x.sum() > 5:
        found[2] = x * 2
    return [found[key] for key in list(found)]


@mends(the_keys_as_a_list, X)
def the_items_themselves(x: Tensor) -> Any:
    found: dict[Any, Tensor] = {"all": x}
    if x.sum() > 5:
        found[2] = x * 2
    return [value for _, value in found.items()]


@refused("SG203", X)
def an_empty_tuple_that_nests(x: Tensor) -> Any:
    path: tuple[Any, ...] = ()
    while x.sum() > 1:
        path = (x, path)
        x = x / 2
    return path


@mends(an_empty_tuple_that_nests, X)
def a_list_that_is_appended_to(x: Tensor) -> Any:
    path = []
    while x.sum() > 1:
        path.append(x)
        x = x / 2
    return path
