"""Where one of torch's operations fails in the run, everything else is as eager PyTorch leaves it."""

from __future__ import annotations

import contextlib
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.runtime.native.repeating import regions_that_act


class Notes:
    """State that functions change before they fail."""

    def __init__(self) -> None:
        self.n, self.log, self.buffer = 0, [], torch.zeros(3)

    def state(self) -> Any:
        return self.n, list(self.log), self.buffer.tolist()


class Noting:
    """A context manager that notes how its block ends."""

    def __init__(self, notes: Notes, swallows: bool) -> None:
        self.notes, self.swallows = notes, swallows

    def __enter__(self) -> None:
        self.notes.log.append("in")

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> bool:
        self.notes.log.append("out" if kind is None else kind.__name__)
        return self.swallows


class Bracketing:
    """A context manager that notes that its block ends, however that is."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def __enter__(self) -> None:
        self.notes.log.append("in")

    def __exit__(self, *error: object) -> None:
        self.notes.log.append("out")


class Silent:
    """A context manager that lets no error pass, and leaves no trace."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> bool:
        return True


@contextlib.contextmanager
def counting(notes: Notes) -> Iterator[None]:
    notes.n += 5
    try:
        yield
    finally:
        notes.n += 100


def before_and_behind(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    notes.n += 1
    notes.log.append("before")
    y = x[int(i)]
    notes.log.append("behind")
    return y


def in_a_block(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    with Noting(notes, False):
        return x[int(i)]


def swallowed(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    y = x
    with Noting(notes, True):
        y = x[int(i)]
    return y


def swallowed_silently(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    y = x
    with Silent():
        y = x[int(i)]
    return y


def at_last(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    notes.n += 1
    try:
        return x[int(i)]
    finally:
        notes.n += 10


def in_a_loop(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    for k in range(3):
        notes.n += 1
        if x.sum() > k:
            notes.buffer = notes.buffer + x[int(i)]
    return notes.buffer * 2


def in_a_generator(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    with counting(notes):
        return x[int(i)]


def raised_again_in_a_block(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    with Bracketing(notes):
        try:
            return x[int(i)]
        except IndexError:
            notes.n += 1
            raise


def raised_again_and_at_last(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    try:
        x = x[int(i)]
    except IndexError as error:
        notes.n += 1
        raise error
    finally:
        notes.n += 10
    return x


def raised_again_in_a_call(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    try:
        return raised_again_and_at_last(notes, x, i)
    finally:
        notes.n += 100


FUNCTIONS = [
    *(before_and_behind, in_a_block, swallowed, swallowed_silently, at_last, in_a_loop, in_a_generator),
    *(raised_again_in_a_block, raised_again_and_at_last, raised_again_in_a_call),
]


def outcome(function: Callable[..., Any], index: int) -> Any:
    notes = Notes()
    try:
        result = function(notes, torch.arange(3.0) + 1, torch.tensor(index)).tolist()
    except IndexError as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        result = type(error), str(error), [(frame.filename, frame.lineno) for frame in frames]
    return result, notes.state()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for index in (1, 7, 2, -9):
        assert outcome(static, index) == outcome(function, index)
    assert static.cache_info().programs == 1


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_check_finds_no_difference(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager", check=9)
    for index in (1, 7, 2):
        assert outcome(static, index) == outcome(function, index)


def test_what_has_done_something_is_not_done_twice(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
        print("once")
        notes.n += 1
        return x[int(i)]

    static = sg.to_static(prints, backend="eager")
    outcome(static, 1)
    capsys.readouterr()
    with pytest.raises(IndexError):
        static(Notes(), torch.ones(3), torch.tensor(9))
    assert capsys.readouterr().out == "once\n"


def acting_in_an_arm(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    with Bracketing(notes):
        if i > 5:
            print("large")
        if x.sum() > 0:
            x = x[int(i)]
        return x * 2


def acting_in_each_iteration(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    with Bracketing(notes):
        for k in range(int(i) - 1):
            print(k)
        return x[int(i) if i < 5 else 7 - int(i)]


@pytest.mark.parametrize("function", [acting_in_an_arm, acting_in_each_iteration])
@pytest.mark.parametrize("full_graph", [True, False])
def test_a_call_that_has_not_acted_is_made_once_more(
    function: Callable[..., Any], full_graph: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for index in (1, -9, 2, -4):
        assert outcome(static, index) == outcome(function, index)
    assert "large" not in capsys.readouterr().out


def test_a_call_that_has_acted_acts_once(capsys: pytest.CaptureFixture[str]) -> None:
    static = sg.to_static(acting_in_an_arm, backend="eager")
    outcome(static, 1)
    capsys.readouterr()
    assert outcome(static, 9)[0] == outcome(acting_in_an_arm, 9)[0]
    assert capsys.readouterr().out == "large\n" * 2  # once in each


def acting_then_putting_back(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    notes.n = 1
    try:
        if i > 5:
            print("large")
        return x[int(i)]
    finally:
        notes.n = 0


def drawing_in_an_arm(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    with Bracketing(notes):
        if i > 5:
            x = x + torch.rand(3, generator=GENERATOR)
        return x[int(i)]


GENERATOR = torch.Generator()


@pytest.mark.parametrize("function", [acting_in_an_arm, acting_then_putting_back, drawing_in_an_arm])
@pytest.mark.parametrize("first", [1, 9])
def test_without_a_full_graph_blocks_are_told_of_what_fails_behind_an_arm_that_acts(
    function: Callable[..., Any], first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    for index in (first, 9, 1, -9, 8):
        found = []
        for each in (function, static):
            GENERATOR.manual_seed(3)
            found.append((outcome(each, index), capsys.readouterr().out, GENERATOR.get_state().tolist()))
        assert found[0] == found[1]


def warning_in_an_arm(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    notes.n = 1
    try:
        if i > 5:
            warnings.warn("large", stacklevel=1)
        notes.log.append("warned")
        return x[int(i)]
    finally:
        notes.n = 0


def logging_in_an_arm(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    with Bracketing(notes):
        for k in range(int(i)):
            logging.getLogger("stillgraph_repeating").warning("step %d", k)
        return x[int(i)]


@pytest.mark.parametrize("function", [warning_in_an_arm, logging_in_an_arm])
@pytest.mark.parametrize("full_graph", [True, False])
def test_blocks_are_told_of_what_fails_behind_an_arm_that_only_warns_or_logs(
    function: Callable[..., Any], full_graph: bool
) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for index in (1, 9, 2, -9):
            assert outcome(static, index) == outcome(function, index)
    assert static.cache_info().programs == 1


LIBRARY = torch.library.Library("stillgraph_repeating", "DEF")
LIBRARY.define("taken(Tensor(a!) x) -> Tensor")
LIBRARY.define("tell(Tensor x) -> Tensor")
W = torch.ones(3, requires_grad=True)
TOLD: list[float] = []


@torch.library.impl(LIBRARY, "taken", "CPU")
def _taken(x: Tensor) -> Tensor:
    x.add_(1)
    return x.clone()


@torch.library.impl(LIBRARY, "tell", "CPU")
def _tell(x: Tensor) -> Tensor:
    TOLD.append(float(x.sum()))
    return x.clone()


for name in ("taken", "tell"):
    torch.library.register_fake(f"stillgraph_repeating::{name}", Tensor.clone)


class Told(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.ops.stillgraph_repeating.tell(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def calls_an_operator_that_writes(x: Tensor) -> None:
    torch.ops.stillgraph_repeating.taken(x)


def calls_an_operator_that_tells(x: Tensor) -> None:
    torch.ops.stillgraph_repeating.tell(x)


def calls_a_function_of_autograds(x: Tensor) -> None:
    Told.apply(x)


def differentiates(x: Tensor) -> None:
    torch.autograd.grad((W * W * x).sum(), W)


def differentiates_what_is_given(x: Tensor) -> None:
    torch.autograd.grad(x.sum(), W)


def registers_a_hook(x: Tensor) -> None:
    y = W * x
    y.register_hook(lambda gradient: TOLD.append(float(gradient.sum())))
    torch.autograd.grad(y.sum(), W)


def draws_from_the_generator(x: Tensor) -> None:
    torch.binomial(torch.full((3,), 10.0), torch.full((3,), 0.5))


def draws_by_a_recurrent_layer(x: Tensor) -> None:
    LSTM(x.detach().reshape(1, 1, 3))


LSTM = torch.nn.LSTM(3, 3, 2, dropout=0.5)


@pytest.mark.parametrize(
    "does",
    [
        *(calls_an_operator_that_writes, calls_an_operator_that_tells, calls_a_function_of_autograds),
        *(differentiates, differentiates_what_is_given, registers_a_hook),
        *(draws_from_the_generator, draws_by_a_recurrent_layer),
    ],
)
def test_what_may_leave_something_is_done_once(does: Callable[[Tensor], None]) -> None:
    def function(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
        notes.n += 1
        does(x)
        return x[int(i)]

    def all_that_is_left(function: Callable[..., Any]) -> Any:
        TOLD.clear()
        torch.manual_seed(0)
        x = W * 3 if does is differentiates_what_is_given else torch.ones(3)
        handle = W.register_hook(lambda gradient: TOLD.append(float(gradient.sum())))
        with pytest.raises(IndexError):
            function(Notes(), x, torch.tensor(9))
        handle.remove()
        return x.tolist(), list(TOLD), torch.get_rng_state().tolist()

    static = sg.to_static(function, backend="eager")
    static(Notes(), torch.ones(3) if does is not differentiates_what_is_given else W * 3, torch.tensor(0))
    assert all_that_is_left(static) == all_that_is_left(function)


def test_a_call_under_hooks_for_saved_tensors_is_made_once() -> None:
    def multiplies(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
        notes.n += 1
        return (W * W)[int(i)]

    def packed(function: Callable[..., Any]) -> int:
        saved: list[Tensor] = []

        def pack(tensor: Tensor) -> Tensor:
            saved.append(tensor)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), pytest.raises(IndexError):
            function(Notes(), torch.ones(3), torch.tensor(9))
        return len(saved)

    static = sg.to_static(multiplies, backend="eager")
    static(Notes(), torch.ones(3), torch.tensor(0))
    assert packed(static) == packed(multiplies)


@pytest.mark.parametrize("full_graph", [True, False])
def test_blocks_are_told_of_what_fails_under_hooks_for_saved_tensors(full_graph: bool) -> None:
    def brackets(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
        with Bracketing(notes):
            return (W * W)[int(i)]

    static = sg.to_static(brackets, backend="eager", full_graph=full_graph)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        for index in (1, 9, 2, -9):
            assert outcome(static, index) == outcome(brackets, index)


def test_what_cleans_up_behind_a_handler_that_raises_again(capsys: pytest.CaptureFixture[str]) -> None:
    def function(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
        try:
            x = x[int(i)]
        except IndexError:
            notes.n += 1
            raise
        finally:
            print("cleaned up")
        return x

    static = sg.to_static(function, backend="eager")
    for index in (1, 7):
        assert outcome(static, index) == outcome(function, index)
    assert capsys.readouterr().out == "cleaned up\n" * 4


def test_what_writes_in_place_is_not_written_twice() -> None:
    def adds(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
        x.add_(1)
        notes.n += 1
        return x[int(i)]

    static, x = sg.to_static(adds, backend="eager"), torch.zeros(3)
    with pytest.raises(IndexError):
        static(Notes(), x, torch.tensor(9))
    assert x.tolist() == [1, 1, 1]


def copied_and_written(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    y = torch.zeros(3)
    with Bracketing(notes):
        try:
            y[0] = x[int(i)]
        except IndexError:
            y[1] = 5.0
        y.add_(1)
        return y + x[i + 1]


def given_and_written(notes: Notes, x: Tensor, i: Tensor) -> Tensor:
    y = x
    with Bracketing(notes):
        try:
            y = y + x[int(i)]
        except IndexError:
            pass
        y.add_(1)
        return y + x[i + 1]


@pytest.mark.parametrize(("function", "repeats"), [(copied_and_written, True), (given_and_written, False)])
def test_memory_is_followed_through_a_try(function: Callable[..., Any], repeats: bool) -> None:
    static = sg.to_static(function, backend="eager")
    for index in (0, 2, 5, -9):
        notes, expected = Notes(), Notes()
        given, wanted = torch.arange(3.0), torch.arange(3.0)
        with contextlib.suppress(IndexError):
            static(notes, given, torch.tensor(index))
        with contextlib.suppress(IndexError):
            function(expected, wanted, torch.tensor(index))
        assert torch.equal(given, wanted)
        assert not repeats or notes.state() == expected.state()
    assert (regions_that_act(static.programs[0]) is not None) == repeats
