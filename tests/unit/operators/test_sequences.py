from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from stillgraph.operators.containers.iterables import as_sequence
from stillgraph.operators.containers.ranges import Range
from stillgraph.operators.containers.sequences import Enumerated, Listed, StagedReversed, Zipped
from tests.unit.trace.agreement import N, P, agree, refusal

RANGES = [(5,), (0,), (2, 7), (7, 2), (1, 8, 3), (8, 1, -3), (1, 8, -1), (-3, 3, 2), (5, 5, -1)]


@pytest.mark.parametrize("bounds", RANGES)
def test_range(bounds: tuple[int, ...]) -> None:
    plain = range(*bounds)
    ours = Range(plain.start, plain.stop, plain.step)
    assert ours.length() == len(plain)
    assert list(ours) == list(plain)
    assert [ours.at(i) for i in range(len(plain))] == list(plain)


def test_compositions() -> None:
    inner = Range(2, 8, 2)
    assert list(Enumerated(inner, 5)) == list(enumerate(range(2, 8, 2), 5))
    assert list(StagedReversed(inner)) == [6, 4, 2]
    assert list(Zipped((inner, Range(0, 2, 1)))) == [(2, 0), (4, 1)]
    assert list(Listed(("a", "b"))) == ["a", "b"]
    assert next(iter(Enumerated(inner))) == (0, 2)


@pytest.mark.parametrize(
    ("value", "kind", "stageable"),
    [
        ([1, 2], Listed, True),
        ([1, "a"], Listed, False),
        ([], Listed, False),
        (range(3), Range, True),
        (nn.ModuleList([nn.Identity()]), Listed, False),
        (iter([1]), type(None), None),
        ({1: 2}, type(None), None),
        ("ab", type(None), None),
    ],
)
def test_what_a_loop_can_run_over_more_than_once(value: object, kind: type, stageable: bool | None) -> None:
    sequence = as_sequence(value)
    assert isinstance(sequence, kind)
    assert getattr(sequence, "stageable", None) is stageable


def all_at_once(x: Tensor) -> tuple[Any, ...]:
    a, b, c = x
    first, *others = x
    return list(x), tuple(x), [*x], a + b + c, first, others, (lambda *r: r)(*x), dict(enumerate(x))


def rows_of_two_dimensions(x: Tensor) -> tuple[Any, ...]:
    rows = x.reshape(3, 1)
    return [r.sum() for r in rows], list(zip(rows, range(3))), list(reversed(rows)), list(enumerate(rows, 1))


def strict_zip(x: Tensor) -> list[Any]:
    return list(zip(x, [1, 2, 3], strict=True))


def mixed_zip(x: Tensor) -> list[Any]:
    return list(zip(x, "ab", [x, 1, None]))


def numbers_in_a_list(x: Tensor) -> tuple[Tensor, int]:
    y, w = x * 0, 0
    for w in [3, 1, 2]:
        if x.sum() > w:
            y = y + w
    return y, w


def length_of_range(x: Tensor) -> tuple[Any, ...]:
    n = x.argmax().item()
    return len(range(n)), list(range(3)), range(3)[1], range(2, 9, 3)[-1]


@pytest.mark.parametrize(
    "function", [all_at_once, rows_of_two_dimensions, strict_zip, mixed_zip, numbers_in_a_list, length_of_range]
)
def test_in_a_capture(function: Any) -> None:
    agree(function, P, N)


def scalar(x: Tensor) -> list[Tensor]:
    return [v + 1 for v in x.sum()]


def test_a_scalar_cannot_be_iterated() -> None:
    agree(scalar, P)


@pytest.mark.parametrize(
    "function",
    [
        lambda n: [i + 1 for i in range(n)],
        lambda n: list(range(n)),
        lambda n: sorted(range(n)),
        lambda n: [i for i in range(5) if i < n],
    ],
)
def test_lists_whose_length_only_the_run_knows(function: Any) -> None:
    agree(function, torch.tensor(3), torch.tensor(1), torch.tensor(5))


def test_a_part_of_a_range_whose_length_only_the_run_knows_is_refused() -> None:
    assert refusal(lambda n: list(range(n)[1:]), torch.tensor(3)).reason.code == "SG206"


# ---- zip of what is known and what the run counts
LAYERS = [nn.Linear(3, 3), nn.Identity(), nn.Tanh()]


def texts_beside_a_range(x: Tensor) -> Any:
    names, out, said = ["a", "b", "c"], [], ""
    for i, name in zip(range(int(x.abs().sum())), names):
        out.append((i, name))
        if i == 0:
            names.append("z")
    for name, i in zip("abcd", range(int(x.abs().max()))):
        if x[i % 3] < 0:
            break
        said += name
    else:
        said += "!"
    return out, said, dict(zip(range(int(x.abs().max())), ("p", "q"))), names


def rows_beside_texts(x: Tensor) -> Any:
    return [f"{name}={value.item()}" for value, name in zip(x[x > 1], ["a", "b", "c", "d"])]


def layers_beside_a_range(x: Tensor) -> Any:
    for _, layer in zip(range(int(x.abs().max())), LAYERS):
        x = layer(x)
    return x


@pytest.mark.parametrize("function", [texts_beside_a_range, rows_beside_texts, layers_beside_a_range])
def test_zip_of_what_is_known_and_what_the_run_counts(function: Any) -> None:
    agree(function, P, N, P / 10, P * 2)
