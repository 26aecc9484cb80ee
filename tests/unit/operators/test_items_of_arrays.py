"""Items of numpy's arrays, from outside and of the run, by numbers and tensors that only the run knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.harness import python_module

FLOATS, WHOLE = np.array([1.5, 2.5, 3.5]), np.array([2, 0, 1])
TABLE, FLAGS = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.array([True, False, True])
READ_ONLY = np.array([1.0, 2.0, 4.0])
READ_ONLY.flags.writeable = False
BACKWARDS, NAMES = np.arange(3.0)[::-1], np.array(["a", "b", "c"])


def number(x):
    return int(x.sum())


def an_element(x):
    return FLOATS[number(x)]


def beside_a_tensor(x):
    return x * FLOATS[number(x)] + WHOLE[number(x)]


def as_a_number(x):
    return float(FLOATS[number(x)]), WHOLE[number(x)].item() + 1


def as_a_condition(x):
    return x if FLAGS[number(x)] else -x


def as_an_index(x):
    return ["a", "b", "c"][WHOLE[number(x)]], x[WHOLE[number(x)] % 2], FLOATS[WHOLE[number(x)]]


def a_row(x):
    return TABLE[number(x)], torch.from_numpy(TABLE[number(x)]) + x


def two_numbers(x):
    return TABLE[number(x), number(x) % 2], TABLE[number(x), 1], TABLE[0, number(x)], TABLE[number(x)][1]


def of_more(x):
    return TABLE[..., number(x) % 2], TABLE[None, number(x)], TABLE[number(x), None, ...], FLOATS[..., number(x)]


def slices(x):
    n = number(x)
    return FLOATS[n:], FLOATS[:n], FLOATS[-n:], FLOATS[n : n + 2 : 2], TABLE[n:, 1], TABLE[n, ::2], TABLE[:, :n]


def by_tensors(x):
    return FLOATS[x.argmax()], TABLE[x.argmax()], TABLE[x.argmax() : 2], TABLE[x.argmax(), 1], FLOATS[x.argmax()[None]]


def of_several(x):
    return FLOATS[x.argsort()], TABLE[x.argsort()]


def of_the_run(x):
    array = x.numpy()
    return array[number(x)], array[number(x) :], array[None, number(x)], type(array[number(x)])


def by_the_run(x):
    return FLOATS[x.numpy().argmax()], TABLE[x.numpy().argmax()]


def summed(x):
    total, n = 0.0, 0
    while x.sum() + n < 3:
        total += float(FLOATS[n % 3]) * 2
        n += 1
    for i in range(number(x.abs())):
        total += float(FLOATS[i])
    return total


def on_a_path(x):
    if x.sum() > 0:
        return FLOATS[number(x)] * 2
    return FLOATS[0] * 3


def caught(x):
    try:
        return x * FLOATS[number(x)], "there"
    except IndexError:
        return x, "not there"


def too_many(x):
    return FLOATS[number(x), 0]


def outside_beside(x):
    return TABLE[7, number(x)]


def made_inside(x):
    array = np.arange(3.0) * 2
    array[0] = 9
    return array[number(x)], np.zeros((2, 2))[number(x) % 2]


def of_read_only(x):
    return READ_ONLY[number(x)]


FUNCTIONS = [
    *(an_element, beside_a_tensor, as_a_number, as_a_condition, as_an_index, a_row, two_numbers, of_more, slices),
    *(by_tensors, of_several, of_the_run, by_the_run, summed, on_a_path, caught, too_many, outside_beside),
    *(made_inside, of_read_only),
]
INPUTS = [torch.tensor(each) for each in ([1.0, 1.0], [1.0, 0.0], [0.0, -1.0], [0.0, 0.0], [4.0, 3.0], [-2.0, -3.0])]


def _shown(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.shape, value.tolist()
    return type(value), repr(value)


def outcome(function: Callable[..., Any], x: Tensor) -> Any:
    try:
        return _shown(function(x.clone()))
    except IndexError as error:
        return type(error), str(error)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_as_in_eager(function: Callable[..., Any]) -> None:
    for inputs in (INPUTS, INPUTS[::-1]):
        found = sg.to_static(function, backend="eager")
        for x in inputs:
            assert outcome(found, x) == outcome(function, x)
        assert len(found.programs) <= 1


def test_a_row_is_a_view() -> None:
    table = np.zeros((3, 2))

    def row(x: Tensor) -> Any:
        return table[number(x)]

    found = sg.to_static(row, backend="eager")
    for x in INPUTS[:3]:
        assert np.shares_memory(found(x), table)
        assert np.shares_memory(found(x), table[number(x)])


def test_another_content_is_another_program() -> None:
    array = np.array([1.0, 2.0, 3.0])

    def element(x: Tensor) -> Any:
        return array[number(x)]

    found = sg.to_static(element, backend="eager")
    assert found(INPUTS[0]) == 3
    array[2] = 7
    assert found(INPUTS[0]) == 7


def written(x):
    row = TABLE[number(x)]
    row += 1
    return row


def backwards(x):
    return BACKWARDS[number(x)]


def a_text(x):
    return NAMES[number(x)]


def a_read_only_row(x):
    return READ_ONLY[number(x) :]


def steps_back(x):
    return FLOATS[number(x) :: -1]


def with_a_list(x):
    return TABLE[[0, 1], number(x)]


@pytest.mark.parametrize("function", [backwards, a_text, a_read_only_row, steps_back, with_a_list])
def test_what_torch_has_not_is_refused(function: Callable[..., Any]) -> None:
    before = TABLE.copy()
    with pytest.raises(sg.CaptureError) as raised:
        sg.to_static(function, backend="eager")(INPUTS[1])
    assert raised.value.reason.code in ("SG301", "SG305")
    assert np.array_equal(TABLE, before)


def test_a_row_that_the_run_picks_is_written() -> None:
    before, static = TABLE.copy(), sg.to_static(written, backend="eager")
    try:
        for times in (1, 2, 3):
            given = static(INPUTS[1])
            wanted = before.copy()
            wanted[number(INPUTS[1])] += times
            assert np.array_equal(TABLE, wanted)
            assert np.array_equal(given, wanted[number(INPUTS[1])])
    finally:
        TABLE[...] = before


def filed(x):
    if x.sum() > 0:
        return x * FLOATS[number(x)], torch.from_numpy(TABLE[number(x)]) + x
    return x, x


@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"filed{suffix}"
    sg.save(filed, path, args=(INPUTS[0],))
    loaded = python_module(path).load() if suffix == ".py" else sg.load(path)
    for x in INPUTS[:4]:
        torch.testing.assert_close(loaded(x), filed(x))
