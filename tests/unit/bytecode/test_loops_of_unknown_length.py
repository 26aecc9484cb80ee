"""Loops over as many elements as only the run knows, in which Python has something to do: each is run over once."""

from __future__ import annotations

import collections
import heapq
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.sampling import few
from tests.unit.bytecode.segmented import agrees

NAMES = {1: "a", 2: "b", 3: "c", 0: "z", 4: "q"}


def a_dictionary(x: Tensor) -> Any:
    return {i: i * 2 for i in x.nonzero().flatten().tolist()}


def a_dictionary_of_a_variable(x: Tensor) -> Any:
    ks = x.nonzero().flatten().tolist()
    return {i: i * 2 for i in ks}


def lists_in_a_dictionary(x: Tensor) -> Any:
    return {i: [i] for i in x.nonzero().flatten().tolist()}


def stored(x: Tensor) -> Any:
    d = {}
    for i in x.nonzero().flatten().tolist():
        d[i] = i * 2
    return d


def added_to_a_set(x: Tensor) -> Any:
    s = set()
    for i in x.nonzero().flatten().tolist():
        s.add(i)
    return s


def texts(x: Tensor) -> Any:
    found = []
    for i in x.nonzero().flatten().tolist():
        found.append(f'{i:03d}')
    return found


def in_a_defaultdict(x: Tensor) -> Any:
    d = collections.defaultdict(list)
    for i in x.nonzero().flatten().tolist():
        d[i % 2].append(i)
    return d


def counted(x: Tensor) -> Any:
    ct = collections.Counter()
    for i in x.nonzero().flatten().tolist():
        ct[i % 2] += 1
    return ct


def looked_up(x: Tensor) -> Any:
    ks = x.nonzero().flatten().tolist()
    out = []
    for i in ks:
        out.append(NAMES[i])
    return out


def on_a_heap(x: Tensor) -> Any:
    ks = x.nonzero().flatten().tolist()
    h = []
    for i in ks:
        heapq.heappush(h, -i)
    return h


def tensors_by_key(x: Tensor) -> Any:
    ks = x.nonzero().flatten().tolist()
    return {i: x * i for i in ks}


def printed(x: Tensor) -> Any:
    ks = x.nonzero().flatten().tolist()
    d = {}
    for i in ks:
        print(i)
        d[i] = 1
    return d


def one_of_two_lists(x: Tensor) -> Any:
    ks = [2, 0, 1] if x.sum() > 2 else [1, 0]
    d = {}
    for i in ks:
        d[i] = [i]
    return d


def a_list_made_in_a_loop(x: Tensor) -> Any:
    ks = []
    for i in range(int(x.sum().item())):
        ks.append(i * 2)
    d = {}
    for i in ks:
        d[i] = i
    return d, ks


def numbered_and_paired(x: Tensor) -> Any:
    ks = x.nonzero().flatten().tolist()
    a = {}
    for i, k in enumerate(ks):
        a[k] = i
    for k, v in zip(ks, ks):
        a[k] += v
    return a


def keyed_by_what_is_computed(x: Tensor) -> Any:
    rows = []
    for i in range(int(x.sum().item())):
        rows.append(x * i)
    d = {}
    for n, r in enumerate(rows):
        d[n] = r
    for r in rows:
        d[r.sum().item()] = 2
    return d


def taken_off(x: Tensor) -> Any:
    ks = x.nonzero().flatten().tolist()
    while ks:
        k = ks.pop()
        print(NAMES[k])
    return x


def a_tuple(x: Tensor) -> Any:
    ks = tuple(x.nonzero().flatten().tolist())
    return [NAMES[k] for k in ks], [k for k in ks if k in NAMES]


def left_by_a_break(x: Tensor) -> Any:
    ks = x.nonzero().flatten().tolist()
    for k in ks:
        if k == 2:
            break
        print(f"{k}")
    else:
        return x
    return x + k


def keys_on_some_paths(x: Tensor) -> Any:
    d = {"z": x}
    if x.sum() > 2:
        d["a"] = x + 1
    out = {}
    for k in d:
        out[f"{k}"] = d[k] * 2
        print(k)
    return out


def entries_on_some_paths(x: Tensor) -> Any:
    d = {"z": x}
    if x.sum() > 2:
        d["a"] = x + 1
    for k, v in d.items():
        print(k, v.sum().item())
    return [*d]


def members_on_some_paths(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 2:
        s.add(2)
    for k in s:
        print(k)
    return s


def longer_on_some_paths(x: Tensor) -> Any:
    found = [1, 2]
    if x.sum() > 2:
        found.append(3)
    t = 0
    for k in found:
        print(k)
        t += k
    return t


def another_tuple_on_some_paths(x: Tensor) -> Any:
    found = (1, 2) if x.sum() > 2 else (3,)
    for k in found:
        print(k)
    for i, k in enumerate(found):
        print(i, k)
    return dict.fromkeys(found, 1)


def reversed_and_paired(x: Tensor) -> Any:
    found = [x] if x.sum() > 2 else [x, x]
    for k in reversed(found):
        print(k.sum().item())
    for a, b in zip(found, range(5)):
        print(a.sum().item(), b)
    return {i: k for i, k in enumerate(found)}  # noqa: C416 (a loop is meant)


def mapped_and_filtered(x: Tensor) -> Any:
    n = int(x.sum().item())
    rows = [x * i for i in range(n)]
    for k in map(torch.sum, rows):
        print(k.item())
    for k in filter(None, rows[1:]) if n == 2 else []:
        print(k)
    it = iter(rows)
    out = {}
    for r in it:
        out[len(out)] = r
        print("in")
    return out, sum(1 for _ in rows)


FUNCTIONS = [
    *(a_dictionary, a_dictionary_of_a_variable, lists_in_a_dictionary, stored, added_to_a_set, texts),
    *(in_a_defaultdict, counted, looked_up, on_a_heap, tensors_by_key, printed, one_of_two_lists),
    *(a_list_made_in_a_loop, numbered_and_paired, keyed_by_what_is_computed, taken_off, a_tuple),
    *(left_by_a_break, keys_on_some_paths, entries_on_some_paths, members_on_some_paths),
    *(longer_on_some_paths, another_tuple_on_some_paths, reversed_and_paired, mapped_and_filtered),
]
VALUES = ([0, 1, 1, 1], [1, 1, 0, 0], [1, 1], [0, 0], [1, 1, 1], [1, 1, 1, 1], [2, 1, 1])


@pytest.mark.parametrize("function", few(FUNCTIONS, 2, slow=(mapped_and_filtered,)), ids=lambda each: each.__name__)
def test_as_in_eager(function: Callable[..., Any]) -> None:
    agrees(lambda record: function, *((torch.tensor(each),) for each in VALUES), times=2, settled=2)
