"""numpy in converted code."""

from __future__ import annotations

import operator
import queue
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import InternalError
from tests.importing import loaded
from tests.unit.trace.agreement import N, P, agree, refusal


def summed(x: Tensor) -> Tensor:
    return x + float(np.sum(x.detach().numpy()))


def returned(x: Tensor) -> Any:
    array = x.numpy()
    return array * 2, array.sum(), np.mean(array), array[0], array[1:], (array > 0)


def decided(x: Tensor) -> Any:
    array = x.numpy()
    if array.max() > 1:
        array = array - array.mean()
    steps = 0
    while np.abs(array).sum() > 1:
        array = array / 2
        steps += 1
    return torch.from_numpy(array), steps


def with_constants(x: Tensor) -> Any:
    weights = np.arange(3, dtype=np.float32)
    array = x.numpy()
    return weights + array, array + weights, np.dot(weights, array), array.astype(np.float64), array.dtype == np.float32


def many_functions(x: Tensor) -> Any:
    array = x.reshape(3, 1).numpy()
    return (
        np.concatenate([array, array], axis=1),
        np.where(array > 0, array, -array),
        np.linalg.norm(array),
        np.clip(array, -1, 2).T,
        np.argmax(array),
        np.maximum(array, 0.5),
        np.stack([array, array * 2]).shape,
    )


def interpolated(x: Tensor) -> Any:
    places = np.array(x.sort().values)
    known = np.linspace(-4, 4, 6, dtype=np.float32)
    given = np.interp(known, places, np.array(x * 2)), np.interp(x.numpy(), known, known**2)
    infinite = np.interp(x.numpy(), known, np.array([-np.inf, 1, 1, np.inf, np.inf, 2]))
    odd = np.array([np.nan, 1.0, np.inf, -np.inf])
    return given, infinite, np.interp(0.5, places, places), np.interp(odd, places, places)


def iterated(x: Tensor) -> Any:
    total = 0.0
    for value in x.numpy():
        if value > 0:
            total += float(value)
    return total, len(x.numpy())


def written(x: Tensor) -> Any:
    """The array is the tensor's own memory."""
    y = x.clone()
    array = y.numpy()
    array[0] = 7
    array += 1
    return y, array


def printed(x: Tensor) -> Tensor:
    print(x.numpy(), f"{x.numpy().sum():.2f}")
    return x


@pytest.mark.parametrize(
    "function", [summed, returned, decided, with_constants, many_functions, interpolated, iterated, written, printed]
)
def test_as_in_eager(function: Any) -> None:
    agree(function, P, N)


def test_what_eager_refuses() -> None:
    agree(lambda x: x.numpy(), P.clone().requires_grad_())


@pytest.mark.parametrize(
    "function", [lambda x: np.unwrap(x.numpy()), lambda x: np.float32(x.numpy()[0])]
)
def test_refused(function: Any) -> None:
    assert refusal(function, P).reason.code == "SG310"


# ---- numbers that only the run knows
class Counter:
    """Counts its calls."""

    def __init__(self, use: Any) -> None:
        self.n, self.use = 0, use

    def __call__(self, x: Tensor) -> Any:
        self.n += 1
        return self.use(self.n)


W = np.array([1.0, 2.0])


def stored_into(n: Any) -> Any:
    array = np.zeros(2)
    array[0] = n
    return array


def added_to(n: Any) -> Any:
    array = np.zeros(2)
    array += n
    return array


def held_as_an_object(n: Any) -> Any:
    array = np.empty(1, object)
    array[0] = n
    return array


WITH_NUMBERS: dict[str, Any] = {
    **{f.__name__: f for f in (stored_into, added_to, held_as_an_object)},
    "array * n": lambda n: W * n,
    "n - array": lambda n: n - W,
    "comparisons": lambda n: (operator.eq(W, n), operator.eq(n, W), operator.lt(W, n), operator.lt(n, W)),
    "np.multiply": lambda n: np.multiply(W, n),
    "np.sqrt": np.sqrt,
    "np.array": lambda n: np.array([n, 1]),
    "np.asarray": np.asarray,
    "np.mean": lambda n: np.mean([n, 2.0]),
    "np.full": lambda n: np.full(2, n),
    "np.linspace": lambda n: np.linspace(0, n, 3),
    "np.float32": np.float32,
    "np.float16": np.float16,
    "dot": lambda n: W.dot(n),
    "clip": lambda n: W.clip(0, n),
    "float64 * n": lambda n: np.float64(2) * n,
    "n * float32": lambda n: n * np.float32(0.1),
    "int64 + n": lambda n: np.int64(2) + n,
    "float64 == n": lambda n: np.float64(2) == n,
    "max": lambda n: max(np.float64(1), n),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_a_number_that_changes_is_a_constant_where_it_meets_numpy(name: str) -> None:
    use = WITH_NUMBERS[name]
    eager, static = Counter(use), sg.to_static(Counter(use), backend="eager")
    for _ in range(3):
        expected, actual = eager(P), static(P)
        assert type(actual) is type(expected)
        assert repr(actual) == repr(expected)


def put_into(array: Any, n: Any) -> Any:
    array[0] = n
    array[1:] = n * 2
    return array


HELD = ("held_as_an_object", "np.float16", "dot", "clip")
"""What would put a number of the run in an array that holds none."""

OPERATIONS = {
    **{name: use for name, use in WITH_NUMBERS.items() if name not in HELD},
    **{name: getattr(np, name) for name in ("log", "exp", "negative", "isnan", "floor")},
    "np.maximum": lambda n: np.maximum(np.float32(2), n),
    "nested lists": lambda n: np.array([[n, 1], (2, 3.5)]),
    "of one kind": lambda n: np.array([n, n + 1])[::-1].copy(),
    "flags": lambda n: np.asanyarray([n > 1, True]),
    "in a dtype": lambda n: (np.array([n, 2], dtype=np.float32), np.full((2, 1), n, dtype=np.float64)),
    "of a float": lambda n: np.linspace(0.5, float(n), 4, endpoint=False),
    "of whole numbers": lambda n: np.linspace(n, 7, 4, dtype=np.int64).round()[::-1],
    "of one point": lambda n: (np.linspace(n, 7, 1), np.linspace(n, n, 3)),
    "the largest": lambda n: (np.argmax([n, 4, 2]), np.max([n, 4.0]), np.cumsum([n, n])),
    "put in an array": lambda n: put_into(W * n, n),
    "a float again": lambda n: float(np.exp(np.log(n) * 2)) + 1,
    "a condition": lambda n: 1 if np.log(n) > 0.5 else 2,
    "an element": lambda n: (np.arange(6.0) / n)[1],
}


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("name", OPERATIONS)
@np.errstate(all="ignore")
def test_a_number_of_the_run_beside_numpy(name: str, kind: Any) -> None:
    def used(x: Tensor) -> Any:
        return OPERATIONS[name](kind(x.sum()))

    static: Any = sg.to_static(used, backend="eager")
    for x in (P, P * 3, N, P * 0):
        expected, actual = used(x), static(x)
        assert type(actual) is type(expected)
        assert repr(actual) == repr(expected)
    assert len(static.programs) == 1


class Metres(np.float64):
    def __mul__(self, other: Any) -> Any:
        return "metres"


OF_OTHER_KINDS = {
    "masked": np.ma.masked_less(W, 1.5),
    "few bits": np.float16(2),
    "objects": W.astype(object),
    "derived": W.view(type("Derived", (np.ndarray,), {})),
}


@pytest.mark.parametrize("name", OF_OTHER_KINDS)
@pytest.mark.parametrize("use", [lambda array, n: array * n, lambda array, n: n - array, np.maximum])
def test_arrays_and_scalars_of_other_kinds_are_refused(name: str, use: Any) -> None:
    error = refusal(lambda x: use(OF_OTHER_KINDS[name], x.sum().item()), P)
    assert error.reason.code == "SG301"


def test_a_scalar_of_a_class_of_the_users_answers_itself() -> None:
    static = sg.to_static(lambda x: Metres(2.0) * x.sum().item(), backend="eager")
    assert static(P) == "metres"
    assert refusal(lambda x: x.sum().item() - Metres(2.0), P).reason.code == "SG301"


def test_a_flag_of_the_run_alone_is_not_computed_with_by_numpy() -> None:
    error = refusal(lambda x: np.sqrt(bool(x.sum() > 0)), P)  # numpy: in half precision
    assert error.reason.code == "SG301"


def test_an_array_from_outside_beside_a_number_of_the_run_is_read_in_each_call() -> None:
    array = np.array([1.0, 2.0])
    static = sg.to_static(lambda x: array * x.sum().item(), backend="eager")
    for x in (P, N):
        assert (static(x) == array * x.sum().item()).all()
        array += 1


@pytest.mark.parametrize("name", HELD)
def test_a_number_of_the_run_that_numpy_would_hold_is_refused(name: str) -> None:
    use = WITH_NUMBERS[name]
    error = refusal(lambda x: use(x.sum().item()), P)
    assert error.reason.code == "SG301"
    assert "a staged number meets a numpy array or scalar" in error.message


@pytest.mark.parametrize(
    "use",
    [
        lambda n: np.array([n, "a"]),
        lambda n: np.array([n, 1], dtype=object),
        lambda n: np.linspace(np.zeros(2), n, 3),
        lambda n: np.tile([1, 2], int(n)),
        lambda n: put_into(np.arange(2) * int(n), n),
        np.int64,
        lambda n: np.array([int(n)], dtype=np.uint8),
        lambda n: np.full(2, int(n), np.int32),
        lambda n: np.asarray([n], dtype="int64"),
        lambda n: np.array([int(n)], copy=False),
    ],
    ids=[
        *("a text", "objects", "of arrays", "a count", "a float for a whole number", "a whole number of a float"),
        *("few bits", "fewer bits", "a float in a dtype", "the same memory"),
    ],
)
def test_what_numpy_makes_of_a_number_by_its_value_is_refused(use: Any) -> None:
    assert refusal(lambda x: use(x.sum().item()), P).reason.code in ("SG301", "SG310")


def test_a_tensor_of_an_array_is_made_without_a_warning() -> None:
    def made(x: Tensor) -> Any:
        array = x.numpy() * 2
        same = torch.tensor(array, requires_grad=True)
        turned = torch.tensor(np.array([[int(x.sum()), 1], [2, 3]]).T)
        return torch.tensor(array), torch.tensor(array[::-1].copy(), dtype=torch.float64), same, turned.stride()

    static: Any = sg.to_static(made, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (P, N):
            assert repr(static(x)) == repr(made(x))


def test_a_scalar_of_numpys_is_no_number_of_pythons() -> None:
    class Scale:
        def __init__(self) -> None:
            self.total, self.count = np.float64(0), np.int64(0)

        def __call__(self, x: Tensor) -> Any:
            self.total += 1
            self.count += 1
            return x * self.total, self.count, np.float64(1) if x.sum() > 0 else np.float64(2)

    eager, own = Scale(), Scale()
    static = sg.to_static(own, backend="eager")
    for x in (P, N, P):
        expected, actual = eager(x), static(x)
        assert repr(actual) == repr(expected)
        assert (type(own.total), type(own.count)) == (np.float64, np.int64)


def test_a_number_that_has_outlived_its_capture_says_so() -> None:
    kept: queue.SimpleQueue[Any] = queue.SimpleQueue()  # of which a capture cannot tell what it holds
    keep = sg.not_to_static(lambda value: kept.put(value))

    def function(x: Tensor) -> Tensor:
        keep(x.sum().item())
        return x

    sg.to_static(function, backend="eager")(P)
    number = kept.get()
    for use in (str, float, hash, lambda n: n + 1, lambda n: n == 1, lambda n: W * n):
        with pytest.raises(InternalError, match="is used after it"):
            use(number)


def classes(x: Tensor) -> Any:
    array = x.numpy()
    chosen = {np.ndarray: "an array"}.get(type(array))
    equal = type(array) == np.ndarray  # noqa: E721 - what user code writes, and is asked here
    same = equal, type(array) in (np.ndarray,), issubclass(type(array), np.ndarray)
    return chosen, same, type(array).__name__, array.__class__ is np.ndarray, type(array) is type(np.ones(1))


def test_the_class_of_an_array() -> None:
    agree(classes, (P,), (N,))
    static = sg.to_static(classes, full_graph=False, strict=True, backend="eager")
    assert static(P) == classes(P)
    agree(lambda x: (type(x.numpy()[0]), type(x.sum().numpy()), isinstance(x.numpy()[0], np.floating)), P)


# ---- arrays and scalars
def described(result: Any) -> Any:
    """A result with the classes of all that it holds; ``repr`` tells zeros apart by their signs."""
    if isinstance(result, (tuple, list)):
        return type(result), [described(each) for each in result]
    return type(result), getattr(result, "dtype", None), repr(result)


def of_scalars_beside_tensors(x: Tensor) -> Any:
    total, most, at = x.numpy().sum(), x.numpy().max(), x.numpy().argmax()
    sums = total * x, x * total, x - total, most / x, x**most, most // x, x % most, at * x, x + at
    return sums, x > total, total < x, total == x


def written_beside_scalars(x: Tensor) -> Any:
    total, y = x.numpy().sum(), x.clone()
    before, alias = total, y
    total += 1
    y += total
    total *= x
    return before, total, y, y is alias


def without_dimensions(x: Tensor) -> Any:
    array, none = x.numpy(), x.sum().numpy()
    views = array[..., 0], array[:1].squeeze(), none, none.T, none.copy(), none.astype(int), array[:1].reshape(())
    return views, array[0], none[()], none + 1, array.sum().copy(), -none


def views_and_numbers(x: Tensor) -> Any:
    array = (x * 1).numpy()
    view, number, rows = array[..., 0], array[0], []
    view += 5
    for each in array:
        array[1] = 9
        rows.append(each)
    same = array
    array += 1
    return array, view, number, rows, same is array


def tuples_and_lists(x: Tensor) -> Any:
    array = x.numpy()
    parts = np.meshgrid(array, array), np.split(array, 3), np.nonzero(array), np.unique(array)
    return parts, np.linalg.eigh(np.outer(array, array)).eigenvalues.shape


def remainders(x: Tensor) -> Any:
    array = x.numpy()
    written = (x * 1).numpy()
    written %= 2
    whole = x.int().numpy() % 2
    parts = array % 2, array % -2.0, np.mod(array, 2), np.remainder(3.0, array), 3 % array, array.sum() % 3
    return parts, written, whole, array % np.inf


def of_unknown_sizes(x: Tensor) -> Any:
    kept = x[x > -5].numpy()
    return kept * 2, kept.sum(), kept[..., 0], kept[0], kept.reshape(-1, 1)


def decided_by_scalars(x: Tensor) -> Any:
    found = x.numpy().sum() if x.sum() > 0 else x.numpy().max()
    while found < 9:
        found = found + 5
    return found, x.numpy().sum() if x.sum() > 0 else x.sum().numpy()


def of_tensors(x: Tensor) -> Any:
    return np.concatenate([x, x]), np.outer(x, x), np.dot(x.numpy(), x)


KINDS = [
    *(of_scalars_beside_tensors, written_beside_scalars, without_dimensions, views_and_numbers, tuples_and_lists),
    *(remainders, of_unknown_sizes, decided_by_scalars, of_tensors),
]


@pytest.mark.parametrize("function", KINDS)
@pytest.mark.parametrize("full_graph", [True, False])
def test_kinds_of_results(function: Any, full_graph: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for x in (P, N, torch.tensor([2.0, -4.0, 0.5])):
        assert described(static(x.clone())) == described(function(x.clone()))
    assert len(static.programs) == 1 or not full_graph


@pytest.mark.parametrize(
    "function",
    [
        *(lambda x: x.numpy() + x, lambda x: x * x.numpy(), lambda x: x.sum().numpy() * x, np.abs),
        *(lambda x: np.maximum(x, 0), lambda x: np.mean(x), lambda x: (x.numpy() > 0).any() * x),
    ],
)
def test_arrays_beside_tensors_are_refused(function: Any) -> None:
    def calling(x: Tensor) -> Any:
        return function(x)

    assert refusal(calling, P).reason.code == "SG310"


def test_an_array_without_dimensions_in_python_source(tmp_path: Path) -> None:
    def both(x: Tensor) -> Any:
        return x.numpy()[..., 0], x.numpy()[0]

    sg.save(both, tmp_path / "both.py", args=(P,))
    module = loaded(tmp_path / "both.py")
    assert described(module.both(N)) == described(both(N))


def seeds(x: Tensor) -> list[int]:
    words = np.random.SeedSequence(7, spawn_key=(1,)).generate_state(4)
    return [int(word) for word in words] if x.sum() > 0 else []


def test_a_seed_sequence_mixes_what_it_is_given() -> None:
    static = sg.to_static(seeds, backend="eager")
    for x in (P, N):
        assert static(x) == seeds(x)
