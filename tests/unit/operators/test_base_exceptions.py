"""What is raised and is no `Exception`: the user's, as any other; of what comes from outside, the call ends at once."""

from __future__ import annotations

import itertools
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.trace.graph.recorder import Recorder
from tests.sampling import few


class Own(BaseException):
    pass


class Coded(SystemExit):
    def __init__(self, text: str, code: Any) -> None:
        super().__init__(text)
        self.code = code


KINDS = [Own, KeyboardInterrupt, SystemExit, GeneratorExit, ValueError]
UP, DOWN = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -4.0])


def with_finally(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append(1)
        x.add_(1)
        try:
            raise kind("always")
        finally:
            seen.append("finally")

    return f


def on_one_path(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append(1)
        x.add_(1)
        if x.sum() > 0:
            raise kind("positive")
        seen.append(2)
        return x * 2

    return f


def on_one_path_with_finally(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append(1)
        try:
            x.add_(1)
            if x.sum() > 0:
                raise kind("positive")
        finally:
            seen.append("finally")
        return x * 2

    return f


def holding_values(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append(1)
        if x.sum() > 0:
            raise kind(f"sum {x.sum().item()}", x.sum().item())
        raise kind(x.sum().item())

    return f


def caught_as_what_it_is(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        try:
            x.add_(1)
            if x.sum() > 0:
                raise kind("positive")
            x.add_(2)
        except kind:
            seen.append("caught")
            x = x * 3
        return x

    return f


def caught_as_anything(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        try:
            x.add_(1)
            if x.sum() > 0:
                raise kind("positive")
        except BaseException:
            seen.append("caught")
            raise
        finally:
            seen.append("finally")
        return x

    return f


def not_caught_as_exceptions(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        try:
            x.add_(1)
            if x.sum() > 0:
                raise kind("positive")
        except Exception:
            seen.append(1)
            x = x - 1
        seen.append(2)
        return x

    return f


def caught_where_it_is_known(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        try:
            raise kind("always")
        except BaseException as error:
            seen.append(type(error).__name__)
        return x + 1

    return f


def from_a_callee(kind: Any) -> Any:
    def refuse(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append("callee")
        x.mul_(2)
        if x.sum() > 0:
            raise kind("positive")
        return x

    def f(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append(1)
        return refuse(x, seen) + 1

    return f


def from_a_generator(kind: Any) -> Any:
    def values(x: Tensor, seen: list[Any]) -> Iterator[Tensor]:
        yield x
        seen.append("generator")
        if x.sum() > 0:
            raise kind("positive")
        yield x + 1

    def f(x: Tensor, seen: list[Any]) -> Tensor:
        total = x * 0
        for each in values(x, seen):
            seen.append("value")
            total = total + each
        return total

    return f


def in_a_loop(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append(1)
        while x.sum() < 5:
            x = x + 1
            if x[0] > 2:
                raise kind("far")
        return x

    return f


class Manager:
    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def __enter__(self) -> None:
        self.seen.append("enter")

    def __exit__(self, kind: Any, *others: Any) -> None:
        self.seen.append("exit")


def in_a_with(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        with Manager(seen):
            x.add_(1)
            raise kind("always")

    return f


def on_one_path_in_a_with(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        with Manager(seen):
            x.add_(1)
            if x.sum() > 0:
                raise kind("positive")
        return x

    return f


def behind_a_break(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append(1)
        print("break")
        seen.append(2)
        x.add_(1)
        raise kind("always")

    return f


def behind_a_break_on_one_path(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        print("break")
        seen.append(2)
        x.add_(1)
        if x.sum() > 0:
            raise kind("positive")
        print("break")
        return x * 2

    return f


def around_a_break(kind: Any) -> Any:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        try:
            print("break")
            x.add_(1)
            if x.sum() > 0:
                raise kind("positive")
        except BaseException:
            seen.append("caught")
            print("break")
            raise
        return x

    return f


FUNCTIONS = [
    with_finally,
    on_one_path,
    on_one_path_with_finally,
    holding_values,
    caught_as_what_it_is,
    caught_as_anything,
    not_caught_as_exceptions,
    caught_where_it_is_known,
    from_a_callee,
    from_a_generator,
    in_a_loop,
    in_a_with,
    on_one_path_in_a_with,
    behind_a_break,
    behind_a_break_on_one_path,
    around_a_break,
]


def outcome(function: Any, x: Tensor) -> Any:
    x, seen = x.clone(), []
    result: Any = None
    try:
        result = function(x, seen).tolist()
    except (KeyboardInterrupt, SystemExit, GeneratorExit, Own, ValueError) as error:
        own = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == __file__][1:]
        others = [each.filename for each in traceback.extract_tb(error.__traceback__) if each.filename != __file__]
        kinds = [type(each) for each in error.args]
        result = (
            *(type(error), error.args, kinds, getattr(error, "code", None), [(each.name, each.lineno) for each in own]),
            *(others, type(error.__context__), type(error.__cause__)),
        )
    return result, x.tolist(), seen


def agrees(function: Any, **options: Any) -> None:
    static = sg.to_static(function, backend="eager", **options)
    for x in (UP, DOWN, UP, DOWN, DOWN, UP):
        expected, actual = outcome(function, x), outcome(static, x)
        assert actual == expected


@pytest.mark.parametrize(
    ("make", "kind", "full_graph"), few(itertools.product(FUNCTIONS, KINDS, [True, False]), 5)
)
def test_what_came_before_is_done(make: Callable[[Any], Any], kind: Any, full_graph: bool) -> None:
    agrees(make(kind), full_graph=full_graph)


def with_a_number(x: Tensor, seen: list[Any]) -> None:
    seen.append(1)
    sys.exit(int(x.sum()))


def with_a_text(x: Tensor, seen: list[Any]) -> None:
    x.add_(1)
    sys.exit(f"bad {x.sum().item()}")


def with_one_of_two_on_each_path(x: Tensor, seen: list[Any]) -> Tensor:
    x.add_(1)
    if x.sum() > 0:
        sys.exit(int(x.sum()))
    elif x.sum() < -100:
        sys.exit(f"bad {x.sum().item()}")
    return x


def with_one_that_is_chosen(x: Tensor, seen: list[Any]) -> Tensor:
    status = "good" if x.sum() > 0 else 3
    if x.sum() < 10:
        sys.exit(status)
    return x


def with_one_that_is_given(x: Tensor, seen: list[Any]) -> Tensor:
    seen.append(1)
    if x.sum() > 0:
        sys.exit(SystemExit("given", 2))
    sys.exit((1, 2))


def without_any(x: Tensor, seen: list[Any]) -> Tensor:
    seen.append(1)
    if x.sum() > 0:
        sys.exit()
    return x


def with_one_that_is_caught(x: Tensor, seen: list[Any]) -> Tensor:
    try:
        x.add_(1)
        if x.sum() > 0:
            sys.exit(4)
    except SystemExit:
        seen.append("caught")
        x = x * 2
    return x


def by_another_name(x: Tensor, seen: list[Any]) -> None:
    seen.append(1)
    leave(int(x.sum()))


leave = sys.exit


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        with_a_number,
        with_a_text,
        with_one_of_two_on_each_path,
        with_one_that_is_chosen,
        with_one_that_is_given,
        without_any,
        with_one_that_is_caught,
        by_another_name,
    ],
)
def test_sys_exit(function: Any, full_graph: bool) -> None:
    agrees(function, full_graph=full_graph)


def test_a_status_of_the_users_own_is_refused_or_pythons() -> None:
    def f(x: Tensor, seen: list[Any]) -> Tensor:
        seen.append(1)
        if x.sum() > 0:
            raise Coded("positive", x.sum().item())
        return x

    with pytest.raises(sg.CaptureError, match="a Coded that holds staged values is raised") as refused:
        sg.to_static(f, backend="eager")(UP, [])
    assert refused.value.reason.code == "SG302"
    agrees(f, full_graph=False)


@pytest.mark.parametrize("make", [on_one_path, holding_values, from_a_callee, in_a_loop])
@pytest.mark.parametrize("kind", [Own, SystemExit])
def test_checked(make: Callable[[Any], Any], kind: Any) -> None:
    agrees(make(kind), check=6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("example", [UP, DOWN])
@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_saved(kind: Any, example: Tensor, suffix: str, tmp_path: Path) -> None:
    def f(x: Tensor) -> Tensor:
        if x.sum() > 0:
            raise kind("positive")
        return x * 2

    path = tmp_path / f"saved{suffix}"
    sg.save(f, path, args=(example,))
    if suffix == ".py":
        assert f'raise {kind.__name__}("positive")' in path.read_text()
        return
    loaded = sg.load(path)
    assert torch.equal(loaded(DOWN), f(DOWN))
    with pytest.raises(kind if issubclass(kind, Exception) else RuntimeError, match="positive"):
        loaded(UP)  # which nothing but an `Exception` leaves, whatever the file says


# ---- from outside
class Interrupting:
    """Has a signal come when the capture records its next operation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
        emit = Recorder.emit
        self.waiting = False

        def emitting(*args: Any, **kwargs: Any) -> Any:
            if self.waiting:
                self.waiting = False
                signal.raise_signal(number)
            return emit(*args, **kwargs)

        monkeypatch.setattr(Recorder, "emit", emitting)


def handling_everything(x: Tensor, seen: list[Any]) -> Tensor:
    seen.append(1)
    x.add_(1)
    try:
        x = x * 2
    except:  # noqa: E722
        seen.append("caught")
    return x


def handling_interrupts(x: Tensor, seen: list[Any]) -> Tensor:
    seen.append(1)
    try:
        x.add_(1)
    except (KeyboardInterrupt, Own):
        seen.append("caught")
        return x
    return x * 2


def handling_in_an_arm(x: Tensor, seen: list[Any]) -> Tensor:
    seen.append(1)
    if x.sum() > 0:
        try:
            x.add_(1)
        except (KeyboardInterrupt, Own):
            seen.append("caught")
    return x * 2


def handling_nothing(x: Tensor, seen: list[Any]) -> Tensor:
    seen.append(1)
    if x.sum() > 0:
        x.add_(1)
    return x * 2


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM])
@pytest.mark.parametrize(
    "function", [handling_everything, handling_interrupts, handling_in_an_arm, handling_nothing]
)
def test_a_signal_ends_the_call(
    function: Any, number: signal.Signals, full_graph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*_: Any) -> None:
        raise Own

    before = signal.signal(signal.SIGALRM, raising)
    try:
        interrupting = Interrupting(monkeypatch, number)
        static = sg.to_static(function, backend="eager", full_graph=full_graph)
        for _ in range(2):
            x, seen = UP.clone(), []
            interrupting.waiting = True
            with pytest.raises(KeyboardInterrupt if number is signal.SIGINT else Own):
                static(x, seen)
            assert (x.tolist(), seen) == (UP.tolist(), [])
            assert not interrupting.waiting
        for x in (UP, DOWN, UP):
            assert outcome(static, x) == outcome(function, x)
    finally:
        signal.signal(signal.SIGALRM, before)
