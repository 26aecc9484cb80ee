"""Arrays of numpy's from outside that the run writes to, and their views: who sees the write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import stillgraph as sg
from tests.unit.state.arrays import Args, Environment, agree, array, front_end, one, with_a_sign

__all__ = ["front_end"]


def in_arms(a: Any, x: Any) -> Any:
    if x.sum() > 0:
        a[0] = x.sum().item()
    else:
        a[1:] += 1
    return a.sum(), x * torch.from_numpy(a[:2])


def at_places_of_the_run(a: Any, x: Any) -> Any:
    steps = 0
    while x.sum() < 9:
        a[steps % 3] += 1
        x, steps = x + 1, steps + 1
    return x, a


def in_a_try(a: Any, x: Any) -> Any:
    try:
        a[0] = 1
        if x.sum() > 0:
            raise ValueError
        a[1] = 2
    except ValueError:
        a[2] = 7
    return a * 2


def by_a_tensor_too(a: Any, x: Any) -> Any:
    tensor = torch.from_numpy(a)
    tensor += 1
    a *= 2
    tensor.sub_(3)
    return tensor, a


def with_out(a: Any, x: Any) -> Any:
    np.multiply(a, 2, out=a)
    made = np.add(a, 1)
    a[:] = made
    return made


def by_a_mask(a: Any, x: Any) -> Any:
    a[a > 2] = 0
    a[[0, 2]] = 5
    return a[[1, 1]]


def shifted(a: Any, x: Any) -> Any:
    a[:-1] = a[1:]
    a[-1] = x.sum().item()
    a[1:] = a[:-1]
    return a.mean()


def mirrored(a: Any, x: Any) -> Any:
    square = a.reshape(2, 2)
    square[:] = square.T
    return a


def shifted_by_the_run(a: Any, x: Any) -> Any:
    by = int(x.sum().item() > 0) + 1
    a[by:] = a[:-by]
    return a


WRITES = (
    *(shifted, shifted_by_the_run, mirrored, in_arms, at_places_of_the_run, in_a_try, by_a_tensor_too, with_out),
    by_a_mask,
)


@pytest.mark.parametrize("function", WRITES)
def test_an_array_from_outside_is_written_by_the_run(front_end: None, function: Callable[..., Any]) -> None:
    agree(function, with_a_sign, 1)


def test_an_array_that_is_found_by_two_ways() -> None:
    def function(e: Any) -> Any:
        e.state[0] = 5
        return e.other.sum(), e.other is e.state

    def make(number: int) -> Args:
        made = array(number)
        return (Environment(made, made if number % 2 else made.copy()),)

    agree(function, make, 5)


def written_and_read(a: Any, x: Any) -> Any:
    a[0] = x.sum().item()
    return torch.from_numpy(a) * 2


@pytest.mark.parametrize("name", ["f.pt2", "f.onnx", "f.py"])
def test_a_file_takes_tensors_in_place_of_arrays_that_it_would_write(name: str, tmp_path: Any) -> None:
    with pytest.raises(sg.ExportError, match=r"takes the numpy array args\[0\] as an input"):
        sg.save(written_and_read, tmp_path / name, args=with_a_sign(0))
    assert not [*tmp_path.iterdir()]


# ---- what is a view and what is a copy
COPIES: dict[str, Callable[[Any], Any]] = {
    "flatten": lambda a: a.flatten(),
    "astype": lambda a: a.astype(np.float32),
    "array": np.array,
    "+a": lambda a: +a,
    "tile": lambda a: np.tile(a, 1),
    "a[[0, 1]]": lambda a: a[[0, 1]],
    "take": lambda a: a.take([0, 1]),
    "clip": lambda a: np.clip(a, -9, 9),
    "concatenate": lambda a: np.concatenate([a]),
    "times one": lambda a: a * 1,
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "ravel": lambda a: a.ravel(),
    "reshape": lambda a: a.reshape(2, 2),
    "a[None]": lambda a: a[None],
    "a[1:]": lambda a: a[1:],
    "asarray": np.asarray,
    "split": lambda a: np.split(a, 2)[0],
    "a row": lambda a: list(a.reshape(2, 2))[1],
    "squeeze": lambda a: a[None].squeeze(),
    "swapaxes": lambda a: a.reshape(2, 2).swapaxes(0, 1),
}
def test_an_array_that_is_not_contiguous_is_copied_to_be_so() -> None:
    def function(a: Any) -> Any:
        made = np.ascontiguousarray(a)
        made[0] = 1
        return a, made

    agree(function, lambda n: ((np.arange(6.0) + n).reshape(2, 3).T,), 2)
    agree(function, lambda n: (np.arange(8.0)[::2] + n,), 2)


NOBODYS: tuple[Callable[[Any], Any], ...] = (
    lambda a: np.broadcast_to(a, (2, 4)),
    lambda a: np.broadcast_to(a, (2, 4))[0],
    lambda a: a.reshape(2, 2).diagonal(),
)


@pytest.mark.parametrize("made", NOBODYS)
def test_a_view_that_nobody_may_write_to(made: Callable[[Any], Any]) -> None:
    """A copy of it, which anybody may write to, is not given out."""
    agree(lambda a: made(a) * 2, one, 2)
    static = sg.to_static(lambda a: (a.__setitem__(0, 1), made(a))[1], backend="eager")
    with pytest.raises(sg.CaptureError, match="SG306"):
        static(array(1))


BACKWARDS: dict[str, Callable[[Any], Any]] = {
    "a[::-1]": lambda a: a[::-1],
    "flip": np.flip,
    "a[:, ::-1]": lambda a: a.reshape(2, 2)[:, ::-1],
    "rot90": lambda a: np.rot90(a.reshape(2, 2)),
    "diagonal": lambda a: np.diagonal(a.reshape(2, 2)),
}


def _writing(made: Callable[[Any], Any], part: bool) -> Callable[[Any], Any]:
    def function(a: Any) -> Any:
        a[0] = a[0] + 1
        found = made(a)
        if part:
            found[...] = -5.0
        else:
            a[...] = -5.0
        return found, a

    return function


@pytest.mark.parametrize("part", [True, False], ids=["the part", "the whole"])
@pytest.mark.parametrize("name", [*COPIES, *VIEWS])
@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_writes_to_views_and_copies(name: str, part: bool, backend: str) -> None:
    function = _writing({**COPIES, **VIEWS}[name], part)
    agree(function, one, 1, sg.to_static(function, backend=backend))


@pytest.mark.parametrize("part", [True, False], ids=["the part", "the whole"])
@pytest.mark.parametrize("name", BACKWARDS)
def test_a_write_is_refused_where_torch_has_no_view(name: str, part: bool) -> None:
    given = array(1)
    with pytest.raises(sg.CaptureError, match="SG305"):
        sg.to_static(_writing(BACKWARDS[name], part), backend="eager")(given)
    assert given.tolist() == array(1).tolist()


@pytest.mark.parametrize("name", BACKWARDS)
def test_what_torch_has_no_view_of_may_be_read(name: str) -> None:
    made = BACKWARDS[name]
    agree(lambda a: made(a) * 2, one, 2)
