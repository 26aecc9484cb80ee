"""The shadow check: correct programs pass and nothing of the check shows; what is broken on purpose is named."""

from __future__ import annotations

import copy
import threading
import time
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.runtime.calls.shadow import ShadowCheck
from tests.unit.runtime import checked
from tests.unit.runtime.checked import Layer, branched, in_place, line_of, looped, miscaptured, raising, unguarded


def refusal(call: Any, *args: Any) -> sg.CheckError:
    with pytest.raises(sg.CheckError) as raised:
        call(*args)
    return raised.value


def named_line(error: sg.CheckError) -> int:
    assert error.location is not None, str(error)
    assert error.location.file == checked.__file__
    return error.location.line


# ---- correct programs
def test_a_module_with_state_passes_and_its_effects_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(3)
    eager = Layer()
    static = sg.to_static(copy.deepcopy(eager), backend="eager", check=2)
    for seed in range(4):
        x = torch.randn(4, 3)
        torch.manual_seed(seed)
        expected = eager(x)
        printed = capsys.readouterr().out
        drawn = torch.get_rng_state()
        torch.manual_seed(seed)
        actual = static(x)
        assert capsys.readouterr().out == printed
        assert torch.equal(torch.get_rng_state(), drawn)
        torch.testing.assert_close(actual["y"], expected["y"])
        assert (actual["steps"], static.steps, static.log) == (expected["steps"], eager.steps, eager.log)
        torch.testing.assert_close(dict(static.named_buffers()), dict(eager.named_buffers()))


def test_globals_and_closures_are_written_once() -> None:
    before = checked.COUNT
    static = sg.to_static(checked.writes_globals, backend="eager", check=9)
    for _ in range(3):
        static(torch.ones(2))
    assert before + 3 == checked.COUNT
    assert checked.HISTORY[-3:] == [before + 1, before + 2, before + 3]

    total, seen = 0, []

    def counting(x: Tensor) -> Tensor:
        nonlocal total
        total += 1
        seen.append(total)
        return x + total

    static = sg.to_static(counting, backend="eager", check=9)
    assert [static(torch.zeros(())).item() for _ in range(3)] == [1.0, 2.0, 3.0]
    assert (total, seen) == (3, [1, 2, 3])


def test_arguments_written_in_place() -> None:
    static = sg.to_static(in_place, backend="eager", check=9)
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    assert static(x, y) is x
    assert x.tolist() == [4.0, 4.0]
    hidden = torch.ones(2, requires_grad=True) * 2
    assert static(hidden, y).tolist() == [6.0, 6.0]


def test_exceptions_are_those_of_eager() -> None:
    static, log = sg.to_static(raising, backend="eager", check=9), []  # type: ignore[var-annotated]
    static(torch.ones(2), log)
    with pytest.raises(ValueError, match=r"^negative$"):
        static(-torch.ones(2), log)
    assert log == [1, 1]


def test_static_functions_inside_run_as_their_originals() -> None:
    inner = sg.to_static(branched, backend="eager")

    def outer(x: Tensor) -> Tensor:
        return inner(x) + 1  # type: ignore[no-any-return]

    sg.to_static(outer, backend="eager", check=1)(torch.ones(2))
    assert inner.cache_info().programs == 0


def test_verify_leaves_everything_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    module = sg.to_static(Layer(), backend="eager")
    module(torch.ones(4, 3))
    capsys.readouterr()
    before, visits = copy.deepcopy(module.state_dict()), module.forward.visits
    random = torch.get_rng_state()
    assert module.forward.verify(torch.randn(4, 3, generator=torch.Generator().manual_seed(0))) is None
    assert torch.equal(torch.get_rng_state(), random)
    assert (module.steps, module.log) == (1, [1])
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert module.forward.visits == visits
    assert capsys.readouterr().out == ""


def test_which_calls_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, ...]] = []
    monkeypatch.setattr(ShadowCheck, "compare", lambda self, call, args, kwargs: compared.append(tuple(args[0].shape)))
    static = sg.to_static(branched, backend="eager", check=2)
    for size in (2, 2, 2, 3, 3, 2):
        static(torch.ones(size))
    assert compared == [(2,), (2,), (3,)]
    static = sg.to_static(branched, backend="eager")
    static(torch.ones(2))
    assert len(compared) == 3


@pytest.mark.parametrize("wrong", [True, -1, "shadow", 1.5])
def test_check_is_a_number_of_calls(wrong: Any) -> None:
    with pytest.raises(TypeError, match="check is a number of calls"):
        sg.to_static(branched, check=wrong)


# ---- broken on purpose
def test_a_backend_that_miscompiles_is_named_with_the_operation() -> None:
    static = sg.to_static(branched, backend=checked.wrong_backend, check=1)
    error = refusal(static, torch.ones(3))
    assert error.reason.code == "SG502"
    assert named_line(error) == line_of(branched, "torch.sin")
    text = str(error)
    assert "the result differs from eager's in 3 of 3 elements by up to 3.39 (relative 8.02): -2.96998 instead" in text
    assert f"'sin' in 'then' of the if at checked.py:{line_of(branched, 'if y.sum')}, compiled, differs" in text


def test_a_node_that_is_not_what_the_function_does() -> None:
    error = refusal(miscaptured(branched, torch.exp, torch.sin, check=1), -torch.ones(3))
    assert named_line(error) == line_of(branched, "torch.exp")
    place = f"checked.py:{line_of(branched, 'torch.exp')}, in 'else' of the if at checked.py"
    assert f"the capture is not what the function does: 'sin' at {place}" in str(error)


def test_a_wrong_node_in_a_loop_says_which_time() -> None:
    error = refusal(miscaptured(looped, torch.sqrt, torch.square).verify, torch.zeros(2), torch.tensor(30.0))
    assert named_line(error) == line_of(looped, "torch.sqrt")
    assert "in 'body' of the while" in str(error)
    assert "value 3 of 6 (eager has 10 there) differs from eager's" in str(error)  # root and square of 1 are 1


def test_a_stale_program() -> None:
    scale = 2.0

    def scaled(x: Tensor) -> Tensor:
        if scale > 1:
            return torch.sin(x)
        return torch.cos(x)

    static = unguarded(scaled, check=9)
    static(torch.ones(2))
    scale = 0.5
    error = refusal(static, torch.ones(2))
    assert "the program computes 'sin' at" in str(error)
    assert "eager computes 'cos' at" in str(error)
    assert error.location is not None
    assert error.location.source_line() == "            return torch.sin(x)"


def test_a_driver_that_goes_wrong_by_itself() -> None:
    static = sg.to_static(branched, backend="eager")
    compile_program = static._compile_program
    static._compile_program = lambda program, backend: (
        lambda run: lambda *inputs: tuple(-each for each in run(*inputs))
    )(compile_program(program, backend))
    error = refusal(static.verify, torch.ones(2))
    assert "the program as it is run differs from what it means: no compiled region" in str(error)


def test_gradients_alone_differ() -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x.sin() * y

    def forgetful(module: Any, inputs: list[Any]) -> Any:
        return lambda x, y: module.forward(x.detach(), y)

    static = sg.to_static(product, backend=forgetful)
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    error = refusal(static.verify, x, y)
    assert "the gradient of args[0] is None, in eager a float32[2] tensor" in str(error)
    with torch.no_grad():
        static.verify(x, y)


def test_nothing_has_happened_where_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))
            self.steps = 0

        def forward(self, x: Tensor) -> Tensor:
            self.steps += 1
            print("here")
            self.total += torch.sin(x) + 1
            return x + torch.rand(())

    module, x = sg.to_static(Noisy(), backend=checked.wrong_backend, check=1), torch.ones(3)
    random = torch.get_rng_state()
    error = refusal(module, x)
    assert "args[0].total differs from eager's" in str(error)
    assert (module.steps, module.total.tolist(), x.tolist()) == (0, [0.0] * 3, [1.0] * 3)
    assert torch.equal(torch.get_rng_state(), random)
    assert capsys.readouterr().out == ""


# ---- what cannot be checked
def test_what_cannot_be_copied_is_said() -> None:
    class Locked:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.value = torch.ones(2)

    def read(holder: Locked) -> Tensor:
        return holder.value + 1

    error = refusal(sg.to_static(read, backend="eager", check=1), Locked())
    assert error.reason.code == "SG503"
    assert "args[0] (a test_what_cannot_be_copied_is_said.<locals>.Locked) cannot be copied" in str(error)


def test_what_acts_on_the_world_outside_is_said(tmp_path: Any) -> None:
    file = (tmp_path / "log.txt").open("w")

    def writes(x: Tensor) -> Tensor:
        file.write("called\n")
        return x + 1

    error = refusal(sg.to_static(writes, backend="eager", check=1), torch.ones(2))
    file.close()
    assert error.reason.code == "SG503"
    assert (tmp_path / "log.txt").read_text() == ""


def test_what_differs_in_eager_too_is_said() -> None:
    def timed(x: Tensor) -> Tensor:
        return x * (time.perf_counter_ns() % 1_000_000_007)  # so that a millisecond is no rounding error

    error = refusal(sg.to_static(timed, backend="eager", check=1), torch.ones(2, dtype=torch.float64))
    assert error.reason.code == "SG503"
    assert "eager PyTorch itself does not give the same twice: the result differs" in str(error)
