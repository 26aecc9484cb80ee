"""Arrays and numbers of numpy's from outside: what differs from call to call, or is written in place, is an input."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.bytecode.segmented import to_partial

Args = tuple[Any, ...]


@pytest.fixture(params=["source", "bytecode"])
def front_end(request: pytest.FixtureRequest) -> Iterator[None]:
    with through_bytecode() if request.param == "bytecode" else nullcontext():
        yield


def array(number: int, dtype: Any = np.float32) -> Any:
    return (np.arange(4) + number).astype(dtype)


def arrays_in(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in arrays_in(part)]
    if isinstance(value, dict):
        return arrays_in(list(value.values()))
    if isinstance(value, Environment):
        return arrays_in(vars(value))
    return [value] if isinstance(value, np.ndarray) else []


def assert_alike(wanted: Any, given: Any) -> None:
    assert type(wanted) is type(given)
    if isinstance(wanted, (np.ndarray, np.generic)):
        assert wanted.dtype == given.dtype
        assert wanted.shape == given.shape
        assert np.allclose(wanted, given, atol=1e-6, equal_nan=True)
    elif isinstance(wanted, torch.Tensor):
        assert wanted.requires_grad == given.requires_grad
        torch.testing.assert_close(wanted, given)
    elif isinstance(wanted, (list, tuple)):
        assert len(wanted) == len(given)
        for left, right in zip(wanted, given, strict=True):
            assert_alike(left, right)
    elif isinstance(wanted, dict):
        assert list(wanted) == list(given)
        assert_alike(list(wanted.values()), list(given.values()))
    elif isinstance(wanted, Environment):
        assert_alike(vars(wanted), vars(given))
    elif isinstance(wanted, float):
        assert wanted == pytest.approx(given, nan_ok=True)
    else:
        assert wanted == given


def called(function: Callable[..., Any], args: Args) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's own, of division by zero
        try:
            return function(*args), None
        except sg.CaptureError:
            raise
        except Exception as error:  # of any kind: it is compared
            return None, (type(error), str(error))


def agree(function: Callable[..., Any], make: Callable[[int], Args], programs: int, static: Any = None) -> None:
    """Assert that calls give, raise and write the same, with results that share memory with the same arguments."""
    static = static or sg.to_static(function, backend="eager")
    for number in range(5):
        mine, others = make(number), make(number)
        wanted, given = called(function, mine), called(static, others)
        assert_alike(wanted, given)
        assert_alike(mine, others)
        for eager, ours in zip(arrays_in(wanted), arrays_in(given), strict=True):
            pairs = [*zip(arrays_in(mine), arrays_in(others), strict=True)]
            assert [eager is each for each, _ in pairs] == [ours is each for _, each in pairs]
            assert [np.shares_memory(eager, each) for each, _ in pairs] == [np.shares_memory(ours, e) for _, e in pairs]
    assert static.cache_info().programs <= programs


def one(number: int) -> Args:
    return (array(number),)


def with_a_sign(number: int) -> Args:
    return array(number), torch.ones(2) * (1 if number % 2 else -1)


class Environment:
    def __init__(self, state: Any, other: Any = None) -> None:
        self.state, self.other = state, other


BOARD = np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
KEPT: dict[str, Any] = {}


def branches(a: Any) -> Any:
    if a.sum() > 8:
        return a * 2
    return a - 1


def loops(a: Any) -> Any:
    x, steps = torch.from_numpy(a), 0
    while x.sum() < 30:
        x, steps = x * 2, steps + 1
    for value in a:
        steps = steps + value
    return x, steps


def raises(a: Any) -> Any:
    if a[0] > 2:
        raise ValueError(f"{a[0]:.1f} is too much")
    return a


def methods(a: Any) -> Any:
    return a.copy(), a.astype(np.float64), a.mean(), a.max(), a.argmax(), a.tolist(), len(a), a.dtype, a.shape, a.T


def functions(a: Any) -> Any:
    return np.exp(a), np.where(a > 2, a, 0), np.concatenate([a, a]), np.stack([a, BOARD]), np.clip(a, 1, 2), a @ BOARD


def kinds(a: Any) -> Any:
    return isinstance(a, np.ndarray), type(a) is np.ndarray, isinstance(a[0], np.float32), a is None, a is BOARD


def tensors(a: Any) -> Any:
    first, second = torch.from_numpy(a), torch.from_numpy(a)
    made = torch.tensor(a), torch.tensor(a[0]), torch.tensor([a[0], a[1]]), torch.as_tensor(a) * 2
    return first is second, made


def gradients(a: Any) -> Any:
    weight = torch.from_numpy(a).requires_grad_()
    (weight * weight).sum().backward()
    return weight.grad, weight.requires_grad, torch.from_numpy(a).requires_grad


def containers(a: Any) -> Any:
    first, *rest = a
    return first, rest, list(a), max(a), sum(a), [*zip(a, a)], 3 in a, 99.0 in a


def kept(a: Any) -> Any:
    KEPT["a"] = a
    return KEPT["a"] + 1


DTYPES = (np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16, np.complex64)


def of_dtype(dtype: Any) -> Callable[[int], Args]:
    return lambda number: (array(number, dtype),)


def a_number(kind: Any) -> Callable[[int], Args]:
    return lambda number: (kind(number + 2),)


def used_as_a_number(s: Any) -> Any:
    return s * 2, torch.ones(2) * s, s + 1, float(s), s > 3, -s, abs(s), s if s > 2 else s - 1


CASES: dict[str, tuple[Callable[..., Any], Callable[[int], Args]]] = {
    "returned": (lambda a: (a, torch.from_numpy(a) + 1), one),
    "a view": (lambda a: (a[1:], a.reshape(2, 2), a.T), one),
    "numbers": (lambda a: (a[0], a[1] * 2, float(a[2]), int(a[3]), a[0].item()), one),
    **{f.__name__: (f, one) for f in (branches, loops, raises, methods, functions, kinds, tensors, containers, kept)},
    "gradients": (gradients, one),
    "an error of numpy's": (lambda a: a.reshape(3, 3), one),
    "two": (lambda a, b: (a + b, a is b), lambda n: (array(n), array(n + 1))),
    "one twice": (lambda a, b: (a + b, a is b), lambda n: (array(n),) * 2),
    "in containers": (lambda d: (d["x"][0] + d["x"][1], d["x"]), lambda n: ({"x": [array(n), array(n + 2)]},)),
    "an attribute": (lambda e: (e.state * 2, e.state), lambda n: (Environment(array(n)),)),
    "turned": (lambda a: (a, a.sum(axis=0)), lambda n: ((np.arange(6).reshape(2, 3) + n).T,)),
    "without dimensions": (lambda a: (a, a + 1), lambda n: (np.array(n, np.float32),)),
    **{np.dtype(each).name: (lambda a: (a, torch.from_numpy(a)), of_dtype(each)) for each in DTYPES},
    **{f"a number: {kind.__name__}": (used_as_a_number, a_number(kind)) for kind in (np.float32, np.float64, np.int64)},
}


def with_nan(number: int) -> Args:
    return (np.array([1.0, np.nan, -2.0, 0.0], np.float32) + number,)


def divided(a: Any, b: Any) -> Any:
    return a // b, a % b, 3 // a, 7 % a, a // 2, a % 3


def in_place_of_another_kind(a: Any) -> Any:
    a += 1
    a //= 2.5
    return a


class Metres(np.float64):
    def __mul__(self, other: Any) -> Any:
        return f"{float(self) * other} metres"


VALUES: dict[str, tuple[Callable[..., Any], Callable[[int], Args], int]] = {
    "cbrt": (np.cbrt, lambda n: (array(n - 3),), 2),
    "sign": (np.sign, with_nan, 2),
    "heaviside": (lambda a: np.heaviside(a, 0.5), with_nan, 2),
    "whole numbers by zero": (divided, lambda n: (array(n, np.int64), np.array([0, 1, 2, 0])), 2),
    "a number by zero": (lambda n: (n // 0, n % 0), lambda n: (np.int64(n + 1),), 2),
    "float32 in a text": (lambda n: f"{n} {n!r} {n!s} {n:.2f}", lambda n: (np.float32(n + 0.1),), 2),
    "float16 in a text": (lambda n: f"{n}", lambda n: (np.float16(n + 0.1),), 2),
    "numpy's truths": (lambda b: (b is np.True_, bool(b)), lambda n: (np.bool_(n % 2),), 2),
    "in place, of another kind": (in_place_of_another_kind, lambda n: (array(n, np.int64),), 1),
    "of a class of its own": (lambda n: (type(n).__name__, n * 2), lambda n: (Metres(n),), 5),
    "round to tens": (lambda a: np.round(a, -1), lambda n: (array(n + 7, np.int64),), 5),
    "floor of truths": (np.floor, lambda n: (array(n) > 2,), 5),
    "order of complex numbers": (lambda a: np.where(a > 2, a, 0), lambda n: (array(n, np.complex64),), 5),
    "heaviside of whole numbers": (lambda a: np.heaviside(a, 0.5), lambda n: (array(n, np.int64),), 5),
}
"""Where torch's layer differs: computed as numpy does, or the array stays a constant, of a program for each."""


@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_numpy(name: str) -> None:
    agree(*VALUES[name])


@pytest.mark.parametrize("name", CASES)
def test_what_differs_is_an_input(front_end: None, name: str) -> None:
    function, make = CASES[name]
    agree(function, make, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_without_a_full_graph(name: str) -> None:
    function, make = CASES[name]
    agree(function, make, 5, to_partial(function))


def test_lengths_that_differ_are_open() -> None:
    static = sg.to_static(branches, backend="eager")
    for length in range(2, 9):
        given = np.arange(length, dtype=np.float32)
        assert_alike(branches(given), static(given))
    assert static.cache_info().programs == 3


def test_one_array_that_is_an_input_and_another_that_is_not() -> None:
    """The second becomes the first: the program that took them for two does not serve."""
    other = array(0)

    def function(a: Any) -> Any:
        return a is other, a + other

    static = sg.to_static(function, backend="eager")
    for given in (array(1), array(2), array(3), other, array(4)):
        assert_alike(function(given), static(given))


@pytest.mark.parametrize("read_only", [lambda n: np.broadcast_to(np.float32(n), (4,)), lambda n: np.matrix([[n, 1]])])
def test_what_torch_cannot_share_is_constant(read_only: Callable[[int], Any]) -> None:
    agree(lambda a: (a, a + 1), lambda n: (read_only(n),), 5)


# ---- written in place
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
    with pytest.raises(sg.CaptureError):
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


# ---- arrays that the function makes
def filled(x: Any) -> Any:
    out = np.zeros(4)
    for index in range(4):
        out[index] = x[index].item() * 2
    return out


def in_one_arm(x: Any) -> Any:
    made = np.zeros(2)
    if x.sum() > 0:
        made += 1
    else:
        made[0] = 5
    return made, x * float(made[0])


def counted(x: Any) -> Any:
    counts = np.zeros(10, dtype=np.int64)
    for value in x:
        counts[int(value.abs()) % 10] += 1
    return counts, counts.sum(), counts.argmax()


def compacted(x: Any) -> Any:
    made, length = np.zeros((5, 2), dtype=np.float32), 0
    for value in x:
        if value > 0:
            made[length] = value.item()
            length += 1
    return made, length


def left_early(x: Any) -> Any:
    made = np.zeros(2)
    for _ in range(3):
        np.add(made, 1, out=made)
        if x.sum() > 5:
            break
        x = x + 1
    return x * float(made[0])


def shared(x: Any) -> Any:
    made = np.zeros(3)
    torch.from_numpy(made).add_(1)
    return x, made


def advantages(x: Any) -> Any:
    made, last, rewards = np.zeros(4, dtype=np.float32), 0.0, x.tolist()
    for index in reversed(range(4)):
        last = rewards[index] + 0.9 * last
        made[index] = last
    return torch.tensor(made), made.mean(), made.std()


def two_names(x: Any) -> Any:
    made = np.ones(3)
    other = made
    if x.sum() > 0:
        other *= 3
    return made, other is made


def masked(x: Any) -> Any:
    mask = np.zeros(4, dtype=bool)
    for index in range(4):
        if x[index] > 0:
            mask[index] = True
    return mask, x[torch.from_numpy(mask)]


def out_of_bounds(x: Any) -> Any:
    made = np.zeros(2)
    made[int(x.abs().sum())] = 1
    return made


def in_two_dimensions(x: Any) -> Any:
    made = np.zeros((2, 3))
    made[0, int(x.abs().sum()) % 3] = x[0].item()
    made[1] = [1, 2, 3]
    made[1, 1:] = x[1].item()
    return made


MADE = (filled, in_one_arm, counted, compacted, left_early, shared, advantages, two_names, masked, out_of_bounds)


@pytest.mark.parametrize("function", [*MADE, in_two_dimensions])
def test_an_array_that_the_run_fills(front_end: None, function: Callable[..., Any]) -> None:
    agree(function, lambda n: ((torch.arange(4.0) + 1) * (1 if n % 2 else -1) + n,), 1)


def test_what_does_not_fit_an_array_is_refused() -> None:
    def function(x: Any) -> Any:
        made = np.zeros(3, dtype=np.int32)
        made[0] = int(x.sum())
        return made

    with pytest.raises(sg.CaptureError, match="SG301"):
        sg.to_static(function, backend="eager")(torch.ones(2))
