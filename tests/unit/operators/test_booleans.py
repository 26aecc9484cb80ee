from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from stillgraph.operators.objects.booleans import and_, not_, or_
from stillgraph.operators.objects.comparisons import in_
from stillgraph.operators.objects.identity import is_none
from tests.unit.trace.agreement import IF, N, P, agree, count, program_of, refusal

CALLS = (P, N, P * 0)


def fail() -> object:
    raise AssertionError("evaluated though the result was known")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (and_(0, fail), 0),
        (and_(1, lambda: 2), 2),
        (and_([1], lambda: "", fail), ""),
        (and_(1, lambda: 2, lambda: 3), 3),
        (or_(1, fail), 1),
        (or_(0, lambda: ""), ""),
        (or_(0, lambda: 2, fail), 2),
        (not_([]), True),
        (not_("a"), False),
        (in_(1, [1, 2]), True),
        (in_("c", {"a": 1}), False),
        (is_none(None), True),
        (is_none(0), False),
    ],
)
def test_plain_values(actual: object, expected: object) -> None:
    assert actual == expected
    assert type(actual) is type(expected)


def test_plain_tensors() -> None:
    left, right = torch.tensor(1.0), torch.tensor(0.0)
    assert and_(left, lambda: right) is right
    assert or_(left, fail) is left
    assert in_(left, torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum() > 0 and x.sum() < 10,
        lambda x: x.sum() > 0 or None,
        lambda x: x.sum() > 0 and x,
        lambda x: (x.sum() > 100) or (x.sum() < -5) or x,
        lambda x: (x.sum() > 100) or (x.sum() < -5) or "neither",
        lambda x: 0 or x.sum(),
        lambda x: [] or x.sum(),
        lambda x: 3 and x.sum() > 0,
        lambda x: x.sum().item() or 4.5,
        lambda x: x.sum().item() and 4.5,
        lambda x: bool(x.sum() > 0) or "no",
        lambda x: not x.sum(),
        lambda x: not x.sum().item(),
        lambda x: not (x.sum() > 0).item(),
        lambda x: -10 < x.sum() < 0 or 5 < x.sum() <= 6,
        lambda x: 0 < x.sum().item() < 10,
        lambda x: (x.sum() > 0) == True,  # noqa: E712
        lambda x: x.sum() > 0 and 3,
        lambda x: (x.sum() > 0) & (x.sum() < 7),
    ],
)
def test_staged_values_and_their_types(function: object) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum().item() in (6.0, 1),
        lambda x: x.sum().item() not in [6.0],
        lambda x: 2.0 in x,
        lambda x: x.sum() in [1, x.sum()],
        lambda x: x.sum() in [1, x.max() * 2],
        lambda x: x in [x, 1],
        lambda x: x in [x + 0, x],
        lambda x: x.sum() in [x.sum(), x.sum() + 1],
        lambda x: 1 in [x.sum().item(), 1],
        lambda x: 1 in [x.sum().item() > 0],
        lambda x: "a" in ["a", x],
        lambda x: None in [None],
    ],
)
def test_membership(function: object) -> None:
    agree(function, *CALLS)


def test_the_right_side_is_only_computed_where_eager_computes_it() -> None:
    def say(value: object) -> object:
        print("asked")
        return value

    def short_circuit(x: torch.Tensor) -> tuple[object, object]:
        return x.sum() > 0 and say(x.max() > 2), x.sum() > 0 or say(x.max() > 2)

    agree(short_circuit, *CALLS)


def test_an_index_out_of_range_is_not_evaluated() -> None:
    def guarded(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x + 1 if i < 3 and x[i] > 0 else x - 1

    agree(guarded, (P, torch.tensor(1)), (N, torch.tensor(1)), (P, torch.tensor(7)))


def test_a_constant_condition_is_decided_during_capture() -> None:
    def constant(x: torch.Tensor, flag: bool) -> torch.Tensor:
        return x * 2 if flag and x.dim() == 1 else x

    assert count(program_of(constant, P, True), IF) == 0


def test_none_on_one_path() -> None:
    def optional(x: torch.Tensor) -> tuple[bool, bool, object]:
        y = None
        if x.sum() > 0:
            y = x * 2
        return y is None, y is not None, x if y is None else y

    agree(optional, *CALLS)


@pytest.mark.parametrize("size", [0, 2])
def test_more_or_fewer_than_one_element(size: int) -> None:
    agree(lambda x: 1 if x > 0 else 2, torch.ones(size))


@dataclasses.dataclass(eq=False)
class ByIdentity:
    value: object


@dataclasses.dataclass
class ByFields:
    value: object


@dataclasses.dataclass
class ByItsOwn:
    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByItsOwn) and self.value is other.value


def test_dataclasses_with_and_without_the_generated_equality() -> None:
    def compared(x: torch.Tensor) -> tuple[object, ...]:
        a, b = ByIdentity(x), ByIdentity(x)
        c, d = ByFields(0.5 * x.numel()), ByFields(x.sum().item())
        return a == b, a == a, a != b, ByIdentity == ByFields, c == d, ByItsOwn(x) == ByItsOwn(x)

    agree(compared, P * 0 + 0.5, *CALLS)


def test_a_truth_value_of_the_run_meets_a_tensor() -> None:
    def function(x: Tensor) -> Tensor:
        steps, last = 0, x > 5
        while not last.all() and steps < 4:
            x = x + 1
            steps += 1
            last = (x > 2) | (steps == 3)
        return last & (steps > 1), last ^ (steps == 3), x

    agree(function, P, N, torch.tensor([9.0, 8.0, 7.0]))


def test_whether_two_truth_values_are_one() -> None:
    def function(x: Tensor) -> Any:
        big, any_big = bool(x.sum() > 5), bool((x > 2).any())
        return big is any_big, big is not any_big, big is x, x.sum().item() is x

    agree(function, P, N, torch.tensor([9.0, 8.0, 7.0]))


@pytest.mark.parametrize("other", [6, "6"])
def test_whether_a_number_or_text_is_one_object_is_refused(other: object) -> None:
    made = type(other)
    assert refusal(lambda x: made(x.sum()) is other, P).reason.code == "SG301"


def paired(x: Tensor) -> Tensor:
    """Behind the last element there is none: that is only seen to be left alone if the condition is known to hold."""
    out = []
    for t in range(len(x)):
        if x[t] < 0 or t + 1 == len(x):
            out.append(x[t])
        else:
            out.append(x[t] + x[t + 1])
    return torch.stack(out)


def counted_to_an_end(x: Tensor) -> Any:
    for step in itertools.count():
        x = x / 2
        if x.sum() < 1 or x.sum() < 0 or step >= 50:
            break
    return x, step


def never(x: Tensor) -> Any:
    found = [1, 2]
    if x.sum() > 0 and len(found) > 5:
        return found[5]
    return not (bool(x.sum() > 3) or True), bool(x.sum() > 0) and 0, (x.sum() > 0) or "a"


def written_behind(x: Tensor) -> Any:
    small = torch.ones(()) * x.sum() or 5
    if x.sum() != 0:
        small *= 0
    return 1 if small else 2


@pytest.mark.parametrize("function", [paired, counted_to_an_end, never, written_behind])
def test_a_constant_that_ends_a_condition_decides_it(function: Any) -> None:
    agree(function, *CALLS)
