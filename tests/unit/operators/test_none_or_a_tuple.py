"""A place that holds None or a tuple: set in a loop (``best = None``, then ``best = (score, index)``), or on paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree, refusal

CALLS = [
    torch.tensor(values)
    for values in (
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [-1.0, -1.0, -1.0, -1.0, -1.0],
        [-2.0, 3.0, 4.0, 5.0, 6.0],
        [0.5, 0.2, -1.0, 0.7, -1.2],
        [-1.0, 2.0, -1.0, 0.3, -5.0],
        [-4.0, 1.0, 1.0, 1.0, 1.0],
    )
]


class Scored(NamedTuple):
    score: Any
    index: Any


def the_last_positive(x: Tensor) -> Any:
    bm = None
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 0:
            bm = (x[k], k)
        k += 1
    return bm


def the_best_so_far(x: Tensor) -> Any:
    best = None
    k = 0
    while k < 5 and x[k] > -9:
        v = x[k] * 2
        if best is None or v > best[0]:
            best = (v, k)
        k += 1
    if best is None:
        return x.sum()
    return best[0] + best[1]


def given_up(x: Tensor) -> Any:
    best = (x[0], 0)
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 1:
            best = None
        elif best is not None:
            best = (best[0] + x[k], k)
        k += 1
    return best


def with_a_tuple_inside(x: Tensor) -> Any:
    best = None
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 1:
            best = None
        elif best is not None:
            best = (best[0] + x[k], (k, best[1][0]))
        else:
            best = (x[k], (k, k))
        k += 1
    return best


def with_a_text(x: Tensor) -> Any:
    best = None
    for v in x[x > 0]:
        if best is None or v < best[0]:
            best = (v, 'low' if v < 1 else 'high')
    return best


def of_the_iteration_before(x: Tensor) -> Any:
    last = None
    n = 0
    while x.sum() < 20:
        cur = (x.max(), x.argmax().item())
        if last is not None and last[1] == cur[1]:
            n += 1
        last = cur
        x = x + 1
    return (last, n)


def in_two_loops(x: Tensor) -> Any:
    best = None
    i = 0
    while i < 5:
        j = 0
        while j < i and x[j] > -1:
            if x[i] + x[j] > 1.0 and (best is None or x[i] + x[j] > best[0]):
                best = (x[i] + x[j], i, j)
            j += 1
        i += 1
        if x[0] > 100:
            break
    return best


def found_by_a_function(x: Tensor) -> Any:

    def find(x):
        best = None
        k = 0
        while k < 5:
            if x[k] > 0:
                best = (k, x[k])
                break
            if x[k] < -3:
                return None
            k += 1
        return best
    r = find(x)
    if r is None:
        return -1
    i, v = r
    return v * i


def viewed(x: Tensor) -> Any:
    y = x.clone()
    best = None
    k = 0
    while k < 5 and x[k] > -1.5:
        if y[k] > 0:
            best = (y[k], k)
        y += 1
        k += 1
    return (best, y)


def written(x: Tensor) -> Any:
    best = None
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 0:
            best = (x * 2, k)
        k += 1
    if best is not None:
        best[0].add_(1)
    return best


def a_named_tuple(x: Tensor) -> Any:
    best = None
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 0:
            best = Scored(x[k], k)
        k += 1
    return best if best is None else (best.score, best.index, best)


def asked_for_its_truth(x: Tensor) -> Any:
    best = None
    k = 0
    n = 0
    while k < 5 and x[k] > -1.5:
        if not best:
            n += 1
        if x[k] > 0:
            best = (k,)
        k += 1
    return (n, best)


def taken_apart(x: Tensor) -> Any:
    best = None
    k = 0
    while k < 5 and x[k] > -1.5:
        if best is not None:
            s, i = best
            if x[k] > s:
                best = (x[k], k)
        else:
            best = (x[k], k)
        k += 1
    s, i = best if best is not None else (x.sum(), -1)
    return s * i


def in_an_attribute(x: Tensor) -> Any:

    class Held:
        pass
    o = Held()
    o.best = None
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 0:
            o.best = (x[k], k)
        k += 1
    return o.best


def in_a_list(x: Tensor) -> Any:
    o = [None]
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 0:
            o[0] = (x[k], k)
        k += 1
    return o


def in_a_dict(x: Tensor) -> Any:
    o = {'b': None}
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 0:
            o['b'] = (x[k], k)
        k += 1
    return o


def of_lengths_of_the_run(x: Tensor) -> Any:
    best = None
    k = 1
    while k < 5 and x[k] > -1.5:
        if x[k] > 0:
            best = (x[:k], k)
        k += 1
    return best


def the_last_two(x: Tensor) -> Any:
    a = b = None
    k = 0
    while k < 5 and x[k] > -1.5:
        if x[k] > 0:
            b = a
            a = (x[k], k)
        k += 1
    return (a, b)


def exchanged(x: Tensor) -> Any:
    a = None
    b = (x[0], 0)
    k = 0
    while k < 5 and x[k] > -1.5:
        a, b = (b, a)
        k += 1
    return (a, b)


def behind_an_exception(x: Tensor) -> Any:
    best = None
    k = 0
    try:
        while k < 5:
            if x[k] > 0:
                best = (x[k], k)
            if x[k] < -1:
                raise ValueError('low')
            k += 1
    except ValueError:
        return (best, True)
    return (best, False)


FUNCTIONS = [
    *(the_last_positive, the_best_so_far, given_up, with_a_tuple_inside, with_a_text, of_the_iteration_before,),
    *(in_two_loops, found_by_a_function, viewed, written, a_named_tuple, asked_for_its_truth, taken_apart,),
    *(in_an_attribute, in_a_list, in_a_dict, of_lengths_of_the_run, the_last_two, exchanged, behind_an_exception),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("function", [the_best_so_far, a_named_tuple, the_last_two])
def test_in_files(tmp_path: Path, function: Callable[[Tensor], Any], suffix: str) -> None:
    sg.save(function, path := tmp_path / f"saved{suffix}", args=(CALLS[0],))
    loaded = sg.load(path)
    for x in CALLS:
        assert_same(function(x), loaded(x))


def scored(x: Tensor) -> Tensor:
    best, k = None, 0
    while k < 5 and x[k] > -1.5:
        v = x[k] * x.sum()
        if best is None or v > best[0]:
            best = (v, x[k])
        k += 1
    return x.sum() if best is None else best[0] * best[1]


@pytest.mark.parametrize("x", CALLS)
def test_gradients(x: Tensor) -> None:
    gradients = []
    for call in (scored, sg.to_static(scored, backend="eager")):
        given = x.clone().requires_grad_()
        gradients += torch.autograd.grad(call(given), given)
    assert torch.equal(*gradients)


def is_the_one_before(x: Tensor) -> int:
    best, k, n = None, 0, 0
    while k < 5 and x[k] > -1.5:
        before = best
        if x[k] > 0:
            best = (x[k], k)
        n += best is before
        k += 1
    return n


def is_still_itself(x: Tensor) -> bool:
    best = (x[0], 0)
    before = best
    if x[1] > 0:
        best = (x[1], 1)
    return best is before


def of_constants(x: Tensor) -> bool:
    made = [1]
    before = pair = tuple(made)
    if x[1] > 0:
        pair = tuple(made)
    return pair is before


def of_constants_in_a_loop(x: Tensor) -> bool:
    made = [1]
    before = pair = tuple(made)
    k = 0
    while k < 5 and x[k] > -1.5:
        pair = tuple(made)
        k += 1
    return pair is before


@pytest.mark.parametrize("function", [is_the_one_before, is_still_itself, of_constants, of_constants_in_a_loop])
def test_whether_it_is_one_tuple_is_refused(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, CALLS[0]).reason.code == "SG301"


def asked_in_a_function(x: Tensor) -> Any:
    out: list[Any] = []
    last, k = None, 0

    def goes_on(k: int, last: Any) -> Any:
        if last is not None:
            out.append(last)
        return k < 5 and x[k] > -1.5

    while goes_on(k, last):
        if x[k] > 0:
            last = x[k]
        k += 1
    return out


def asked_and_counted(x: Tensor) -> Any:
    n, k, seen = 0, 0, False
    while k < 5 and x[k] > -1.5 and (not seen or (n := n + 1)):
        if x[k] > 0:
            seen = True
        k += 1
    return n, k


def noted_first(x: Tensor) -> Any:
    out: list[Any] = []
    last, k = None, 0
    while k < 5 and x[k] > -1.5:
        if last is not None:
            out.append(last)
        if x[k] > 0:
            last = x[k]
        k += 1
    return out


@pytest.mark.parametrize("function", [asked_in_a_function, asked_and_counted, noted_first])
def test_what_a_condition_writes_in_a_later_iteration(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS)


def both_of_two(x: Tensor) -> Tensor:
    a = (x[0], 0) if x[0] > 0 else None
    b = (x[1], 1) if x[1] > 0 else None
    if a is not None and b is not None:
        return a[0] + b[1]
    if a is None or b is None or x[2] > 0:
        return x.sum()
    return a[0]


def both_in_a_loop(x: Tensor) -> Any:
    best, steps, k = None, [], 0
    while k < 5 and x[k] > -1.5:
        before = best
        if x[k] > 0:
            best = (x[k], k)
        if before is not None and best is not None:
            steps.append(best[1] - before[1])
        k += 1
    return steps, best


@pytest.mark.parametrize("function", [both_of_two, both_in_a_loop])
def test_where_two_are_there(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS)
