"""Values of many lanes: taken apart, and put together."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from stillgraph.runtime.batched.values import Batch, Lanes, Resists, Truths, chosen, gathered, lane, merged, selected

T = torch.arange(6.0).reshape(3, 2)


def shown(value: Any) -> Any:
    """A value as plain data: batches as ``("batch", rows)``, lanes as ``("lanes", values)``."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(shown, value))
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    if type(value) is Batch:
        return "batch", value.tensor.tolist()
    if type(value) is Truths:
        return "truths", value.tensor.tolist()
    if type(value) is Lanes:
        return "lanes", [each.tolist() if isinstance(each, torch.Tensor) else each for each in value.values]
    return value


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 1, 1], 1),
        ([1, 1.0, 1], ("lanes", [1, 1.0, 1])),
        ([0.0, -0.0], ("lanes", [0.0, -0.0])),
        ([True, 1], ("lanes", [True, 1])),
        ([None, None], None),
        ([(1, 2), (1, 3)], (1, ("lanes", [2, 3]))),
        ([[1], [1, 2]], ("lanes", [[1], [1, 2]])),
        ([{"a": 1}, {"a": 2}], {"a": ("lanes", [1, 2])}),
        ([T[0], T[1]], ("batch", [[0.0, 1.0], [2.0, 3.0]])),
        ([T[0], T[1, :1]], ("lanes", [[0.0, 1.0], [2.0]])),
    ],
)
def test_gathered(values: list[Any], expected: Any) -> None:
    assert shown(gathered(values)) == expected


def test_what_is_gathered_is_in_the_lanes() -> None:
    values = [({"a": T[0], "b": 1}, slice(0, 1)), ({"a": T[1], "b": 2}, slice(0, 2))]
    together = gathered(values)
    assert shown(lane(together, 1)[0]["b"]) == 2
    assert lane(together, 1)[0]["a"].tolist() == [2.0, 3.0]
    assert lane(together, 1)[1] == slice(0, 2)


def test_parts_are_merged_in_the_order_of_the_lanes() -> None:
    whole = (Batch(T), Lanes([1, 2, 3]), Truths(torch.tensor([True, False, True])), "alike", [Batch(T * 2)])
    pieces = [(positions, selected(whole, positions)) for positions in ([2, 0], [1])]
    assert shown(merged(pieces)) == shown(whole)


def test_tensors_of_other_shapes_stay_apart() -> None:
    together = merged([([1], Batch(T[:1])), ([0, 2], Batch(torch.ones(2, 1)))])
    assert shown(together) == ("lanes", [[1.0], [0.0, 1.0], [1.0]])
    assert shown(selected(together, [0, 2])) == ("batch", [[1.0], [1.0]])


def test_truth_values_stay_a_tensor() -> None:
    assert shown(merged([([1], True), ([0, 2], False)])) == ("truths", [False, True, False])


def test_chosen() -> None:
    mask = torch.tensor([True, False, True])
    left, right = (Batch(T), 1, True, "a"), (Batch(-T), 2, False, "a")
    expected = (("batch", [[0.0, 1.0], [-2.0, -3.0], [4.0, 5.0]]), ("lanes", [1, 2, 1]), ("truths", mask.tolist()), "a")
    assert shown(chosen(mask, left, right)) == expected
    with pytest.raises(Resists):
        chosen(mask, Batch(T), Batch(T[:, :1]))


@pytest.mark.parametrize("value", [Batch(T), Lanes([1, 2, 3]), Truths(T[:, 0] > 0)])
def test_python_cannot_look_into_them(value: Any) -> None:
    for look in (bool, len, iter, int, lambda v: v == 1, lambda v: v[0], torch.sin, lambda v: v in [1]):
        with pytest.raises((Resists, TypeError)):
            look(value)
