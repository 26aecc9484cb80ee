"""What is written in place to memory from before the capture: by the run, or refused and put back."""

from __future__ import annotations

import array
import contextvars
import queue
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import N, P, agree, refusal


def added(c: Any, x: Tensor) -> Any:
    np.add(c, 1, out=c)
    return x * float(c[0])


def named_anew(c: Any, x: Tensor) -> Any:
    a = c
    a += 1
    return x


def through_a_view(c: Any, x: Tensor) -> Any:
    c[1:].reshape(2, 1).fill(7)
    return x


def in_a_view(c: Any, x: Tensor) -> Any:
    c[1:] += 1
    return x


def in_both_arms(c: Any, x: Tensor) -> Any:
    if x.sum() > 0:
        np.add(c, 1, out=c)
    else:
        np.subtract(c, 1, out=c)
    return x * float(c[0])


def to_and_fro(c: Any, x: Tensor) -> Any:
    while x.sum() < 100:
        np.negative(c, out=c)
        x = x + 1
    return x


def one_after_the_other(c: Any, x: Tensor) -> Any:
    c.resize(5, refcheck=False)
    return x * len(c)


def protected(c: Any, x: Tensor) -> Any:
    c.setflags(write=False)
    return x


BY_THE_RUN: dict[str, Callable[[Any, Tensor], Any]] = {
    **{f.__name__: f for f in (added, named_anew, through_a_view, in_a_view, in_both_arms, to_and_fro)},
    "fill": lambda c, x: (c.fill(7), x)[1],
    "np.copyto": lambda c, x: (np.copyto(c, c + 1), x)[1],
    "np.put": lambda c, x: (np.put(c, [0], 7), x)[1],
    "sort": lambda c, x: (c.sort(), x)[1],
}
WRITES: dict[str, Callable[[Any, Tensor], Any]] = {
    **{f.__name__: f for f in (one_after_the_other, protected)},
    "np.add.at": lambda c, x: (np.add.at(c, [0], 1), x)[1],
    "by C code": lambda c, x: (memoryview(c).cast("B").__setitem__(slice(0, 2), b"ab"), x)[1],
}


@pytest.mark.parametrize("passed", [True, False], ids=["an argument", "a variable outside"])
@pytest.mark.parametrize("name", BY_THE_RUN)
def test_an_array_from_outside_is_written_by_each_call(name: str, passed: bool) -> None:
    write, mine, given = BY_THE_RUN[name], np.array([3.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0])
    static = sg.to_static(write if passed else lambda x: write(given, x), backend="eager")
    for x in (P, N, P):
        wanted = write(mine, x)
        assert torch.equal(wanted, static(given, x) if passed else static(x))
        assert given.tolist() == mine.tolist()
    assert static.cache_info().programs == 1


@pytest.mark.parametrize("name", WRITES)
def test_an_array_from_outside_is_not_written(name: str) -> None:
    write = WRITES[name]
    outer = np.array([3.0, 1.0, 2.0])

    def of_outer(x: Tensor) -> Any:
        return write(outer, x)

    for function, args in ((of_outer, (P,)), (write, (outer, P))):
        with pytest.raises(sg.CaptureError) as raised:
            sg.to_static(function, backend="eager")(*args)
        assert raised.value.reason.code == "SG305"
        assert outer.tolist() == [3.0, 1.0, 2.0]
        assert outer.flags.writeable


def test_the_line_that_writes_is_named() -> None:
    error = refusal(one_after_the_other, np.zeros(2), P)
    assert error.location is not None
    assert "c.resize(5, refcheck=False)" in str(error.location.source_line())


@pytest.mark.parametrize("dtype", [np.float32, "i1", "U3", "datetime64[s]", object, [("a", "f4"), ("b", "i4")]])
def test_an_array_of_any_dtype_is_put_back(dtype: Any) -> None:
    outer, other = np.zeros(3, dtype), np.ones(3, dtype)
    before = outer.copy()
    assert refusal(lambda x: (np.copyto(outer, other), outer.setflags(write=False), x), P).reason.code == "SG305"
    assert outer.flags.writeable
    assert outer.tolist() == before.tolist()
    assert outer.tolist() != other.tolist()


def test_the_array_of_a_helper_is_found_before_it_is_written() -> None:
    static = sg.to_static(lambda x: _count() * x, backend="eager")
    for number in range(1, 4):
        assert torch.equal(static(P), P * number)
        assert COUNT.tolist() == [number]


COUNT = np.zeros(1)


def _count() -> float:
    np.add(COUNT, 1, out=COUNT)
    return float(COUNT[0])


def test_a_call_that_raises_has_written_once() -> None:
    outer = np.zeros(1)

    def function(x: Tensor) -> Tensor:
        np.add(outer, 1, out=outer)
        raise ValueError

    with pytest.raises(ValueError):
        sg.to_static(function, backend="eager")(P)
    assert outer.tolist() == [1.0]


def made_inside(x: Tensor) -> Any:
    c = np.zeros(2)
    c += 1
    np.add(c, 1, out=c)
    c[0] = 5
    c[1:].fill(float(c[0]))
    text = bytearray(b"a")
    text.append(3)
    return x * float(c[1]), c, len(text)


def test_what_the_function_makes_it_may_write() -> None:
    agree(made_inside, P, N)


def _of_its_own(x: Tensor) -> Any:
    c = np.zeros(2)
    if x.sum() > 0:
        np.add(c, 1, out=c)
    else:
        np.add(c, 5, out=c)
    return x * float(c[0])


def test_an_array_of_the_functions_own_is_written_in_an_arm() -> None:
    agree(_of_its_own, P, N, P)


def test_a_loop_that_turns_out_staged_begins_with_the_array_it_found() -> None:
    def function(x: Tensor) -> Any:
        c = np.zeros(2)
        for _ in range(3):
            np.add(c, 1, out=c)
            if x.sum() > 5:
                break
            x = x + 1
        return x * float(c[0])

    agree(function, P, N, P)


class Key:
    """Something to refer to weakly."""


KEY = Key()


def _weak(make: Callable[[], Any]) -> Any:
    made = make()
    made[KEY] = 0
    return made


def _counts(counts: Any, x: Tensor) -> Any:
    counts[KEY] = counts.get(KEY, 0) + 1
    return x * counts[KEY]


def _sets(variable: Any, x: Tensor) -> Any:
    variable.set(variable.get(0) + 1)
    return x * variable.get()


def _appends(items: Any, x: Tensor) -> Any:
    items.append(1)
    return x * len(items)


OTHERS: dict[str, tuple[Callable[[], Any], Callable[[Any, Tensor], Any], Callable[[Any], Any]]] = {
    "weak keys": (weakref.WeakKeyDictionary, _counts, dict),
    "a weak key that is there": (lambda: _weak(weakref.WeakKeyDictionary), _counts, lambda v: v[KEY]),
    "weak values": (weakref.WeakValueDictionary, lambda v, x: (v.setdefault(1, KEY), x), dict),
    "weak set": (weakref.WeakSet, lambda v, x: (v.add(KEY), x), len),
    "context variable": (lambda: contextvars.ContextVar("a", default=0), _sets, lambda v: v.get()),
    "unset context variable": (lambda: contextvars.ContextVar("b"), _sets, lambda v: v.get("nothing")),
    "bytearray": (lambda: bytearray(b"a"), _appends, bytes),
    "extended": (lambda: bytearray(b"a"), lambda v, x: (v.extend(b"bc"), x), bytes),
    "array": (lambda: array.array("i", [1]), _appends, list),
    "simple queue": (queue.SimpleQueue, lambda v, x: (v.put(1), x * v.qsize()), lambda v: v.qsize()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_memory_from_outside_is_not_written(name: str) -> None:
    make, write, read = OTHERS[name]
    outer = make()
    before = read(outer)
    with pytest.raises(sg.CaptureError) as raised:
        sg.to_static(lambda x: write(outer, x), backend="eager")(P)
    assert raised.value.reason.code == "SG305"
    assert read(outer) == before


def _both(make: Callable[[], Any]) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        made = make()
        return made, [made]

    return function


@pytest.mark.parametrize(
    "make",
    [lambda: np.zeros(2), lambda: bytearray(b"ab"), lambda: array.array("i", [0, 0])],
    ids=["numpy", "bytes", "array"],
)
def test_what_is_returned_is_made_anew_by_each_call(make: Callable[[], Any]) -> None:
    static = sg.to_static(_both(make), backend="eager")
    for _ in range(3):
        made, (again,) = static(P)
        assert made is again
        assert made[0] == make()[0]
        made[0] = 7


# ---- tensors made of arrays
OUTER = np.ones(3, np.float32)


def of_outer(x: Tensor) -> Any:
    return x + torch.from_numpy(OUTER), torch.as_tensor(OUTER[1:]), torch.tensor(OUTER), torch.tensor(OUTER).add_(1)


def of_its_own(x: Tensor) -> Any:
    made = torch.tensor(np.zeros(3, np.float32))
    made.add_(1)
    return x + made, torch.from_numpy(np.ones(3)), torch.as_tensor(np.ones(3), dtype=torch.float16).add_(1)


def with_a_gradient(x: Tensor) -> Any:
    made = torch.tensor(OUTER, requires_grad=True)
    (made * x).sum().backward()
    return made.grad


@pytest.mark.parametrize("function", [of_outer, of_its_own, with_a_gradient])
def test_a_tensor_made_of_an_array(function: Any) -> None:
    agree(function, P, N, P)


def test_a_tensor_made_of_an_array_is_made_anew_by_each_call() -> None:
    static = sg.to_static(lambda x: torch.from_numpy(np.zeros(3)), backend="eager")
    for _ in range(2):
        made = static(P)
        assert made.tolist() == [0.0, 0.0, 0.0]
        made.add_(1)


@pytest.mark.parametrize("convert", [torch.from_numpy, torch.as_tensor, torch.asarray])
def test_shared_memory_is_written_by_the_run(convert: Any) -> None:
    def by_the_tensor(x: Tensor) -> Any:
        made = np.zeros(3)
        convert(made).add_(1)
        return x, made

    def by_the_array(x: Tensor) -> Any:
        made = np.zeros(3)
        tensor = convert(made)
        made.fill(1)
        return x + tensor

    for function in (by_the_tensor, by_the_array):
        agree(function, P, N)

    outer = np.ones(3, np.float32)
    static = sg.to_static(lambda x: (convert(outer).add_(1), x * float(outer[0]))[1], backend="eager")
    for number in range(2, 5):
        assert torch.equal(static(P), P * number)
        assert outer.tolist() == [number] * 3


def _shared_array() -> tuple[Any, Tensor]:
    made = np.zeros(4, np.float32)
    return made, torch.from_numpy(made)


def _part_of_a_tensor() -> tuple[Any, Tensor]:
    tensor = torch.zeros(4)
    return tensor.numpy()[::-2], tensor


def _shared_buffer() -> tuple[Any, Tensor]:
    made = array.array("f", [0.0] * 4)
    return made, torch.frombuffer(made, dtype=torch.float32)


def _shared_bytes() -> tuple[Any, Tensor]:
    made = bytearray(16)
    return made, torch.frombuffer(made, dtype=torch.float32)


def in_place(held: Any, t: Tensor, x: Tensor) -> Any:
    t.add_(x.sum())
    return sum(held)


def an_item(held: Any, t: Tensor, x: Tensor) -> Any:
    t[1] = x.sum()
    return x + sum(held)


def past_autograd(held: Any, t: Tensor, x: Tensor) -> Any:
    t.data.fill_(2.0)
    return x + sum(held)


def by_a_view(held: Any, t: Tensor, x: Tensor) -> Any:
    t.view(2, 2)[0].copy_(x[:2])
    return x + sum(held)


def in_one_arm(held: Any, t: Tensor, x: Tensor) -> Any:
    if x.sum() > 0:
        t.mul_(3)
    return x + sum(held)


def in_a_loop(held: Any, t: Tensor, x: Tensor) -> Any:
    while t.sum() < x.sum():
        t += 1
    return x + sum(held)


def as_output(held: Any, t: Tensor, x: Tensor) -> Any:
    torch.add(t, 1, out=t)
    return x + sum(held)


SHARING = [_part_of_a_tensor, _shared_buffer, _shared_bytes]
WRITING = [in_place, an_item, past_autograd, by_a_view, in_one_arm, in_a_loop, as_output]


@pytest.mark.parametrize("make", SHARING)
@pytest.mark.parametrize("write", WRITING)
def test_an_array_is_not_read_whose_memory_a_tensor_writes(make: Callable[[], Any], write: Any) -> None:
    held, t = make()
    error = refusal(lambda x: write(held, t, x), P)
    assert error.reason.code == "SG305"
    assert "is read, whose memory is that of a tensor that is written" in str(error)
    assert not t.any()


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("write", WRITING)
def test_an_array_that_can_be_an_input_is_read(write: Any, backend: str) -> None:
    (mine, eager), (given, t) = _shared_array(), _shared_array()
    static = sg.to_static(lambda x: write(given, t, x), backend=backend)
    for x in (P, N, P):
        assert_same(write(mine, eager, x), static(x), "the result")
        assert given.tolist() == mine.tolist()


def test_nor_is_one_that_is_passed() -> None:
    held, t = _part_of_a_tensor()
    with pytest.raises(sg.CaptureError, match="SG305"):
        sg.to_static(in_place, backend="eager")(held, t, P)


def test_a_constant_array_whose_memory_a_later_call_writes() -> None:
    def function(a: Any, x: Tensor) -> Any:
        x += 1
        return a.sum()

    static = sg.to_static(function, backend="eager")
    for number in range(4):
        made, given = np.arange(4.0), np.arange(4.0)
        shares = number == 2
        wanted = function(made, torch.from_numpy(made if shares else made.copy()))
        assert static(given, torch.from_numpy(given if shares else given.copy())) == wanted
        assert given.tolist() == made.tolist()


@pytest.mark.parametrize("make", [_shared_array, *SHARING])
def test_an_array_may_share_memory_that_is_only_read_or_is_not_read_itself(make: Callable[[], Any]) -> None:
    held, t = make()
    other = torch.zeros(4)

    class Both:
        def __init__(self) -> None:
            self.held, self.t = held, t

    both = Both()

    def only_read(x: Tensor) -> Any:
        other.add_(x.sum())
        return x + sum(held) + t.sum()

    def only_written(x: Tensor) -> Any:
        both.t.add_(x.sum())
        return x + both.t.sum()

    agree(only_read, P, P)
    assert sg.to_static(only_written, backend="eager")(P).sum() > 0
    assert sum(held) > 0
