"""What Python's own code does with values that only the run knows, and what to write instead."""

from __future__ import annotations

import collections
import functools
import itertools
import json
import re
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.messages.case import mends, refused

X = torch.tensor([1.0, 2.0, 3.0])


# ---- code that takes no stand-in
@refused("SG301", X)
def made_into_json(x: Tensor) -> Any:
    print(json.dumps({"mean": x.mean().item()}))
    return x


@mends(made_into_json, X)
def printed_as_it_is(x: Tensor) -> Any:
    print({"mean": x.mean().item()})
    return x


@sg.not_to_static
def write(mean: float) -> None:
    print(json.dumps({"mean": mean}))


@refused("SG301", X)
def given_to_what_is_not_rewritten(x: Tensor) -> Any:
    write(x.mean().item())
    return x


@refused("SG301", X)
def in_hexadecimal(x: Tensor) -> Any:
    print(float(x.sum()).hex())
    return x


@refused("SG302", X)
def a_text_searched(x: Tensor) -> Any:
    print(re.sub("a", "b", f"a{int(x.sum())}"))
    return x


@mends(a_text_searched, X)
def a_text_printed(x: Tensor) -> Any:
    print(f"b{int(x.sum())}")
    return x


@refused("SG301", X)
def no_handler_sees_it(x: Tensor) -> Any:
    try:
        text = json.dumps(x.mean().item())
    except TypeError:
        text = ""
    return x * len(text)


@functools.lru_cache
def factor(step: int) -> int:
    print("computed")
    return step + 1


@refused("SG305", X)
def a_cache_that_prints(x: Tensor) -> Any:
    return x * factor(3)


@mends(a_cache_that_prints, X, 4)
def handed_in(x: Tensor, factor: int) -> Any:
    return x * factor


# ---- generators that Python runs
def halves(v: Tensor) -> Iterator[Tensor]:
    while v.sum() > 1:
        yield v
        v = v / 2


@refused("SG301", X)
def a_generator_defined_inside(x: Tensor) -> Any:
    def inner(v: Tensor) -> Iterator[Tensor]:
        while v.sum() > 1:
            yield v
            v = v / 2

    first, *_ = inner(x + 1)
    return first


@mends(a_generator_defined_inside, X)
def a_list_of_one_defined_inside(x: Tensor) -> Any:
    def inner(v: Tensor) -> Iterator[Tensor]:
        while v.sum() > 1:
            yield v
            v = v / 2

    first, *_ = list(inner(x + 1))
    return first


@refused("SG301", X)
def a_generator_unpacked(x: Tensor) -> Any:
    first, *_ = halves(x + 1)
    return first


@mends(a_generator_unpacked, X)
def a_list_unpacked(x: Tensor) -> Any:
    first, *_ = list(halves(x + 1))
    return first


@refused("SG301", X)
def generators_zipped(x: Tensor) -> Any:
    total = x.new_zeros(())
    for a, b in zip(halves(x), halves(x + 1)):
        total = total + a @ b
    return total


@mends(generators_zipped, X)
def lists_zipped(x: Tensor) -> Any:
    total = x.new_zeros(())
    for a, b in zip(list(halves(x)), list(halves(x + 1))):
        total = total + a @ b
    return total


# ---- Python's own functions
@refused("SG301", X)
def looked_for_in_a_list(x: Tensor) -> Any:
    return x * collections.deque((x * 0 + 1).tolist()).index(1.0)


@mends(looked_for_in_a_list, X)
def looked_for_in_a_loop(x: Tensor) -> Any:
    where = -1
    for i, each in enumerate((x * 0 + 1).tolist()):
        if each == 1.0:
            where = i
            break
    return x * where


@refused("SG301", X)
def a_mean_of_numbers(x: Tensor) -> Any:
    return x * statistics.mean(x.tolist())


@mends(a_mean_of_numbers, X)
def a_mean_of_a_tensor(x: Tensor) -> Any:
    return x * x.mean()


@refused("SG301", X)
def sliced_by_itertools(x: Tensor) -> Any:
    return list(itertools.islice(x, int(x[0])))


@mends(sliced_by_itertools, X)
def sliced_as_a_tensor(x: Tensor) -> Any:
    return list(x[: int(x[0])])


@refused("SG301", X)
def a_text_repeated(x: Tensor) -> Any:
    print("." * int(x.sum()))
    return x


@mends(a_text_repeated, X)
def printed_in_a_loop(x: Tensor) -> Any:
    for _ in range(int(x.sum())):
        print(".", end="")
    print()
    return x


@refused("SG210", X)
def parts_joined(x: Tensor) -> Any:
    return x * len("".join("a" for _ in halves(x)))


# ---- numpy
@refused("SG310", X)
def a_percentile_by_numpy(x: Tensor) -> Any:
    return x * float(np.percentile(x.numpy(), 50))


@mends(a_percentile_by_numpy, X)
def a_quantile_by_torch(x: Tensor) -> Any:
    return x * torch.quantile(x, 50 / 100)
