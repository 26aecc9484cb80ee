"""What Python's own code does with values that only the run knows, and what to write instead."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

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
