from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from stillgraph.operators.conditions.branches import continue_, if_, if_exp, result_of
from stillgraph.trace.heap.exits import BREAK, CONTINUE, Exit, Return
from tests.unit.trace.agreement import IF, N, P, agree, count, program_of, refusal

CALLS = (P, N, P * 5)


# ---- plain
@pytest.mark.parametrize(
    ("test", "then", "orelse", "rest", "ran", "exit"),
    [
        (True, None, None, None, ["then"], None),
        (False, None, None, None, ["else"], None),
        (1, BREAK, None, None, ["then"], BREAK),
        ([], None, CONTINUE, None, ["else"], CONTINUE),
        (True, None, None, BREAK, ["then", "rest"], BREAK),
        (True, CONTINUE, None, BREAK, ["then"], CONTINUE),
        (False, CONTINUE, None, None, ["else", "rest"], None),
    ],
)
def test_plain_if(
    test: object, then: Exit | None, orelse: Exit | None, rest: Exit | None, ran: list[str], exit: Exit | None
) -> None:
    done: list[str] = []

    def block(name: str, result: Exit | None) -> Callable[[], Exit | None]:
        def run() -> Exit | None:
            done.append(name)
            return result

        return run

    assert if_(test, block("then", then), block("else", orelse), block("rest", rest)) is exit
    assert [name for name in done if name != "rest" or "rest" in ran] == ran


def test_plain_if_without_else() -> None:
    assert if_(False, lambda: BREAK) is None
    assert if_(False, lambda: BREAK, rest=lambda: CONTINUE) is CONTINUE


def test_plain_rest_and_results() -> None:
    assert continue_(None, lambda: BREAK) is BREAK
    assert continue_(CONTINUE, lambda: BREAK) is CONTINUE
    assert result_of(None) is None
    assert result_of(Return(3)) == 3
    assert if_exp(0, lambda: 1, lambda: 2) == 2


# ---- staged: values
def both_arms(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y


def no_else(x: Tensor) -> Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    return y


def elif_chain(x: Tensor) -> tuple[Tensor, int]:
    s = x.sum()
    if s > 10:
        y, n = x * 2, 1
    elif s > 0:
        y, n = x + 100, 2
    else:
        y, n = -x, 3
    return y, n


def nested(x: Tensor) -> Tensor:
    if x.sum() > 0:
        if x.max() > 5:
            x = x * 2
        x = x + 1
    else:
        if x.min() < -2:
            return x * 100
    return x


def early_return(x: Tensor) -> Tensor:
    if x.sum() > 10:
        return x
    y = x * 2
    if x.sum() > 0:
        return y
    return y + 1


def returns_nothing_on_one_path(x: Tensor) -> Tensor | None:
    if x.sum() > 0:
        return x
    return None


def falls_off_the_end(x: Tensor) -> Any:  # noqa: RET503 - falling off the end is the point
    if x.sum() > 0:
        return x


def numbers(x: Tensor) -> tuple[Any, ...]:
    if x.sum() > 0:
        a, b, c, d = 1, True, 2, 0.5
    else:
        a, b, c, d = 2, 0, 3.5, 0.5
    return a, b, c, d


def promotion(x: Tensor) -> tuple[Any, ...]:
    n, f = 0, 0.5
    if x.sum() > 0:
        n, f = 5, 2.5
    ints = torch.ones(2, dtype=torch.int32)
    return x + n, ints * n, ints * f, x.half() + n, x.half() * f, n / 2, n // 2


def containers(x: Tensor) -> Any:
    if x.sum() > 0:
        r = {"a": [x, 1], "b": (x, None)}
    else:
        r = {"a": [-x, 2], "b": (-x, None)}
    return r


def texts(x: Tensor) -> str:
    return "pos" if x.sum() > 0 else "neg"


def three_unlike_returns(x: Tensor) -> Any:
    if x.sum() > 10:
        return "big"
    if x.sum() > 0:
        return x, 1
    return [x]


def unlike_returns(x: Tensor) -> Any:
    if x.sum() > 0:
        return x, 1
    return [x]


def argument_itself(x: Tensor) -> Tensor:
    return x if x.sum() > 0 else x * 2


def swapped(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x + 1, x - 1
    if x.sum() > 0:
        a, b = b, a
    return a, b


def ternaries(x: Tensor) -> tuple[Any, ...]:
    s = x.sum()
    return (1 if s > 10 else 2 if s > 5 else 3), x * (2 if s > 0 else 3)


def different_sizes(x: Tensor) -> Tensor:
    y = x[:2] if x.sum() > 0 else x
    return y.sum() * y.shape[0]


def same_join_twice(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x + 1
    if x.sum() > 0:
        x = y * 2
    return x


def matched(x: Tensor) -> int:
    match int(x.sum()):
        case 6:
            return 1
        case -6 | 7:
            return 2
        case _:
            return 3


@pytest.mark.parametrize(
    "function",
    [
        both_arms,
        no_else,
        elif_chain,
        nested,
        early_return,
        returns_nothing_on_one_path,
        falls_off_the_end,
        numbers,
        promotion,
        containers,
        texts,
        unlike_returns,
        three_unlike_returns,
        argument_itself,
        swapped,
        ternaries,
        different_sizes,
        same_join_twice,
        matched,
    ],
)
def test_staged_values(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", [both_arms, no_else, elif_chain, nested, early_return, argument_itself])
def test_gradients(function: Any) -> None:
    agree(function, P.clone().requires_grad_(), N.clone().requires_grad_())


def test_one_condition_becomes_one_branch() -> None:
    assert count(program_of(both_arms, P), IF) == 1
    assert count(program_of(elif_chain, P), IF) == 2


# ---- staged: in place
def in_place_in_one_arm(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 1
    z = y
    if x.sum() > 0:
        y += 1
    else:
        y = y + 1
    return y, z


def through_a_view(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 1
    v = y[:2]
    if x.sum() > 0:
        v.mul_(10)
    else:
        v += 1
    return y, v


def on_the_argument(x: Tensor) -> Tensor:
    if x.sum() > 0:
        x.mul_(2)
    else:
        x[0] = 5
    return x


@pytest.mark.parametrize("function", [in_place_in_one_arm, through_a_view, on_the_argument])
def test_in_place(function: Any) -> None:
    agree(function, *CALLS)


# ---- staged: what the arms may not do
def unlike_shapes_unpacked(x: Tensor) -> Tensor:
    y = x if x.sum() > 0 else x.unsqueeze(0)
    parts = [*y]
    return parts[0] * 2


def unlike_dtypes_unpacked(x: Tensor) -> Tensor:
    y = x if x.sum() > 0 else x.long()
    parts = [*y]
    return parts[0] * 2


def text_unpacked(x: Tensor) -> Tensor:
    mode = "ab" if x.sum() > 0 else "bc"
    return x * len([*mode])


@pytest.mark.parametrize(
    ("function", "code", "phrase"),
    [
        (unlike_shapes_unpacked, "SG201", "Shape Join Failed"),
        (unlike_dtypes_unpacked, "SG202", "outputs differ in dtype"),
        (text_unpacked, "SG203", "'ab' on one path, 'bc' on the other"),
    ],
)
def test_values_without_a_join_are_refused_where_python_wants_one_answer(function: Any, code: str, phrase: str) -> None:
    error = refusal(function, P)
    assert error.reason.code == code
    assert phrase in str(error)
    assert error.location is not None
    assert error.location.file == __file__


# ---- staged: effects
def prints(x: Tensor) -> Tensor:
    print("before", x.sum().item())
    if x.sum() > 0:
        print("positive")
        x = x + 1
    else:
        print(f"negative {x.sum().item():.1f}")
    print("after", x)
    return x


def raises(x: Tensor) -> Tensor:
    print("first")
    if x.sum() < 0:
        raise ValueError(f"negative: {x.sum().item():.1f}", 3)
    print("then")
    return x


def finally_runs(x: Tensor) -> Tensor:
    try:
        if x.sum() > 0:
            return x
        print("not yet")
    finally:
        print("finally")
    return x * 2


@pytest.mark.parametrize("function", [prints, raises, finally_runs])
def test_effects_happen_in_the_run_and_in_order(function: Any) -> None:
    agree(function, *CALLS, P * 20)
