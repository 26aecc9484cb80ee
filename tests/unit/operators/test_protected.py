"""``try`` statements whose exceptions only the run raises."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.operations import try_
from tests.unit.operators.asserting import asserted
from tests.unit.trace.agreement import N, P, agree, agree_fresh, count, program_of, refusal


class Odd(ValueError):
    """An exception of the user's."""


def check(x: Tensor) -> Tensor:
    if x.sum() > 5:
        raise Odd("too much")
    if x.sum() < -5:
        raise KeyError("too little")
    return x * 2


def simple(x: Tensor) -> Tensor:
    try:
        y = x + 1
        if x.sum() > 0:
            raise ValueError("positive")
    except ValueError:
        y = x - 1
    return y


def state_at_the_raise(x: Tensor) -> Any:
    """The handler sees what was assigned before the exception, whichever it was."""
    y, step = x, 0
    try:
        y = x * 2
        step = 1
        if x.sum() > 5:
            raise ValueError
        y = y + 1
        step = 2
        if x.sum() < -5:
            raise ValueError
        y = y * 3
        step = 3
    except ValueError:
        y = y - 100
    return y, step


def several_handlers(x: Tensor) -> Any:
    try:
        y = check(x)
        name = "fine"
    except Odd:
        y, name = x, "odd"
    except KeyError as error:
        print("caught", error)
        y, name = -x, "key"
    return y, len(name)


def a_tuple_of_kinds(x: Tensor) -> Any:
    try:
        return check(x)
    except (TypeError, Odd, KeyError):
        return x[:1]


def not_for_this_handler(x: Tensor) -> Any:
    try:
        return check(x)
    except KeyError:
        return x


def inner_and_outer(x: Tensor) -> Any:
    trace = 0
    try:
        try:
            y = check(x)
            trace += 1
        except KeyError:
            trace += 10
            y = x
        trace += 100
    except ValueError:
        trace += 1000
        y = -x
    return y, trace


def raised_again(x: Tensor) -> Any:
    seen = 0
    try:
        try:
            y = check(x)
        except Odd:
            seen += 1
            raise
        except KeyError as error:
            seen += 10
            raise RuntimeError("from another") from error
    except (Odd, RuntimeError) as error:
        print(f"outer {error}")
        y = x
    return y, seen


def raised_on(x: Tensor) -> Any:
    try:
        return check(x)
    except Odd:
        print("odd")
        raise


def with_else_and_finally(x: Tensor) -> Any:
    order = []
    try:
        order.append(1)
        y = check(x)
    except Odd:
        order.append(2)
        y = x
    else:
        order.append(3)
        y = y + 1
    finally:
        order.append(4)
        print("finally")
    return y, order


def only_finally(x: Tensor) -> Any:
    try:
        return check(x)
    finally:
        print("finally", x.sum())


def in_a_loop(x: Tensor) -> Any:
    total, failed = x * 0, 0
    for row in x:
        try:
            total = total + check(row * 4)
        except Odd:
            failed += 1
            continue
        except KeyError:
            break
        total = total + 1
    return total, failed


def around_a_loop(x: Tensor) -> Any:
    steps = 0
    try:
        while x.norm() < 50:
            x = x * 2
            steps += 1
            if x.sum() < -20:
                raise ValueError("gone")
    except ValueError:
        return x, steps, -1
    return x, steps, 1


def divided(x: Tensor) -> Any:
    n = int(x.sum())
    try:
        y = 10 // (n - 6)
    except ZeroDivisionError:
        y = -1
    return y


def looked_up(x: Tensor) -> Any:
    values = [1, 2, 3]
    index = int(x.abs().max())
    try:
        return values[index]
    except IndexError:
        return 0


def rooted(x: Tensor) -> Any:
    try:
        return math.sqrt(x.sum().item())
    except ValueError:
        return -1


def factored(x: Tensor) -> Any:
    """The operator itself fails, for some matrices."""
    a = torch.outer(x, x) + torch.eye(3) * x.sum()
    try:
        tries = 1
        y = torch.linalg.cholesky(a)
    except torch.linalg.LinAlgError:
        tries = 2
        y = torch.linalg.cholesky(a @ a.T + torch.eye(3))
    return y, tries


def asked_for_its_type(x: Tensor) -> Any:
    try:
        return check(x)
    except Exception as error:
        return x if isinstance(error, KeyError) else -x


def returns_everywhere(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError("a")
        return x
    except ValueError:
        return x * 2


def unbound_in_the_handler(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError
        y = x
    except ValueError:
        pass
    return y


def lists(x: Tensor) -> Any:
    seen = [x]
    try:
        for row in x:
            seen.append(row * x)
            if row > 2:
                raise ValueError
    except ValueError:
        seen.append(-x)
    return seen


def its_message(x: Tensor) -> Any:
    try:
        if x.sum() > 5:
            raise KeyError(f"{x.sum().item()}")
        return x
    except KeyError as error:
        return x * len(error.args[0])


def of_a_call_that_may_get_none(x: Tensor) -> Any:
    most = None if x[0] > 0.5 else 0.7
    try:
        y = torch.clamp(x, max=most)
    except RuntimeError as error:
        return str(error)
    try:
        return torch.stack([y, None if x[1] > 0 else x])  # type: ignore[list-item]  # it is to fail
    except TypeError:
        return y - 1


@pytest.mark.parametrize(
    "function",
    [
        *(simple, state_at_the_raise, several_handlers, a_tuple_of_kinds, not_for_this_handler, inner_and_outer),
        *(its_message, looked_up, raised_again, raised_on, with_else_and_finally, only_finally, in_a_loop),
        *(around_a_loop, asserted, divided, rooted, factored, asked_for_its_type, returns_everywhere),
        *(unbound_in_the_handler, lists, of_a_call_that_may_get_none),
    ],
)
def test_as_in_eager(function: Any) -> None:
    agree(function, P, N, P / 10)


def test_of_a_module() -> None:
    class Careful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.failures = 0
            self.last = 0.0

        def forward(self, x: Tensor) -> Tensor:
            try:
                self.last = x.sum().item()
                return self.linear(check(x))
            except ValueError:
                self.failures += 1
                return x

    agree_fresh(Careful, P, N / 10, P, P / 10)


def test_gradients() -> None:
    agree(state_at_the_raise, *(v.clone().requires_grad_() for v in (P, N, P / 10)))


def test_what_cannot_raise_in_the_run_stays_plain() -> None:
    def function(x: Tensor) -> Tensor:
        try:
            y = x + 1
            if x.dim() > 3:
                raise ValueError
        except ValueError:
            y = x
        return y

    assert count(program_of(function, P), try_) == 0


def test_a_refusal_is_not_for_the_users_handlers() -> None:
    def function(x: Tensor) -> Any:
        try:
            return hash(x.sum().item())
        except Exception:
            return -1

    assert refusal(function, P).reason.code == "SG301"


def test_an_export_says_why_not(tmp_path: Any) -> None:
    def by_torch(x: Tensor) -> Tensor:
        try:
            return torch.linalg.cholesky(x.diag())
        except RuntimeError:
            return x.diag()

    with pytest.raises(sg.CaptureError, match="linalg_cholesky in a try may itself raise RuntimeError"):
        sg.save(by_torch, tmp_path / "x.pt2", args=(P,))


# ---- which exception it is
SENTINEL = Odd("one and the same")


class Journal:
    def __init__(self) -> None:
        self.n = 0


def from_outside(x: Tensor, journal: Journal) -> Any:
    journal.n += 1
    try:
        check(x)
        raise SENTINEL
    except ValueError as error:
        journal.n += 10
        return x, error is SENTINEL, error is not SENTINEL, error == SENTINEL, error in (x, SENTINEL)


def test_which_exception_from_outside_it_is() -> None:
    agree_fresh(lambda: from_outside_of(Journal()), P, N, P / 10)
    assert not vars(SENTINEL)


def from_outside_of(journal: Journal) -> Any:
    return lambda x: (from_outside(x, journal), journal.n)


def test_an_exception_from_outside_is_raised_itself() -> None:
    def function(x: Tensor, journal: Journal) -> Tensor:
        journal.n += 1
        if x.sum() > 5:
            raise SENTINEL
        if x.sum() > 0:
            raise SENTINEL from KeyError("k")
        journal.n += 1
        return x

    SENTINEL.__cause__ = cause = None
    SENTINEL.__suppress_context__ = False
    static = sg.to_static(function, backend="eager")
    assert static(-P, Journal()) is not None
    assert SENTINEL.__cause__ is cause
    for value, caused in ((P, False), (P, False), (P / 10, True)):
        journal = Journal()
        with pytest.raises(Odd) as found:
            static(value, journal)
        assert found.value is SENTINEL
        assert isinstance(SENTINEL.__cause__, KeyError) is caused
        assert journal.n == 1
        assert not vars(SENTINEL)
    assert static.cache_info().programs == 1


def which_of_the_call(x: Tensor) -> Any:
    mine = Odd("mine")
    try:
        if x.sum() > 0:
            raise mine
    except Odd as error:
        return error is mine
    return None


def equal_to_one_of_the_call(x: Tensor) -> Any:
    mine = Odd("mine")
    try:
        if x.sum() > 0:
            raise mine
    except Odd as error:
        return error in [KeyError("k"), mine]
    return None


def looked_up_in_a_set(x: Tensor) -> Any:
    try:
        check(x)
    except Odd as error:
        return error in {SENTINEL}
    return None


def for_a_chosen_class(x: Tensor) -> Any:
    kind = KeyError if x[0] > 0 else ValueError
    try:
        raise KeyError("k")
    except kind:
        return x + 1


def for_one_of_a_chosen_class(x: Tensor) -> Any:
    kind = KeyError if x[0] > 0 else ValueError
    try:
        check(x)
    except (IndexError, kind):
        return x + 1
    return x


@pytest.mark.parametrize(
    ("function", "code"),
    [
        *((which_of_the_call, "SG301"), (equal_to_one_of_the_call, "SG301")),
        *((looked_up_in_a_set, "SG301"), (for_a_chosen_class, "SG203"), (for_one_of_a_chosen_class, "SG203")),
    ],
)
def test_refused(function: Any, code: str) -> None:
    assert refusal(function, P).reason.code == code
