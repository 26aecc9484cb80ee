"""What a traceback of an error in a static function shows: the user's lines, as eager PyTorch would, and no others."""

from __future__ import annotations

import gc
import inspect
import logging
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
import tests.unit.runtime.raising as module
from stillgraph.core.tracebacks import SWITCH
from stillgraph.runtime.native.native import lower
from tests.unit.runtime.programs import X, program_of, static
from tests.unit.runtime.raising import (
    Net,
    Stepped,
    TooLarge,
    always_wrong,
    as_it_stands,
    asserted,
    checking,
    compared,
    counted_down,
    differentiated,
    divided,
    fails,
    from_another,
    gathered,
    halved,
    hooked,
    in_an_arm,
    modes_left,
    named,
    of_a_size_only_the_run_knows,
    of_a_table,
    picked,
    refuse_large_steps,
    refused,
    stepped,
    table_args,
    table_twice,
    with_a_value_of_the_run,
    written_before,
    wrong_in_a_block,
)

HERE = Path(__file__)
THERE = Path(module.__file__)


def raised(function: Callable[..., Any], *args: Any) -> BaseException:
    try:
        function(*args)
    except Exception as error:  # of any kind: the tests say which
        return error
    raise AssertionError("nothing is raised")


def lines(error: BaseException) -> list[tuple[str, str]]:
    """The functions and the text of the lines below `raised`."""
    frames = traceback.extract_tb(error.__traceback__)
    assert all(Path(frame.filename) in (HERE, THERE) for frame in frames if "torch" not in frame.filename)
    return [(frame.name, str(frame.line)) for frame in frames[1:]]


def marked(error: BaseException) -> list[str]:
    """What is underlined in each line below `raised`."""
    frames = list(traceback.extract_tb(error.__traceback__))[1:]
    texts = [Path(frame.filename).read_text().splitlines()[(frame.lineno or 0) - 1] for frame in frames]
    return [text[frame.colno : frame.end_colno] for text, frame in zip(texts, frames, strict=True)]


def agree(function: Callable[..., Any], good: tuple[Any, ...], bad: tuple[Any, ...], backend: Any = "eager") -> Any:
    """The error of a later call of a static function; it is eager's, line by line."""
    static = sg.to_static(function, backend=backend)
    static(*good)
    given, wanted = raised(static, *bad), raised(function, *bad)
    assert static.cache_info().programs == 1
    assert (type(given), given.args, str(given)) == (type(wanted), wanted.args, str(wanted))
    assert lines(given) == lines(wanted)
    assert marked(given) == marked(wanted)
    return given


# ---- operations
def test_an_index_in_a_loop_of_a_function_called_in_an_arm() -> None:
    error = agree(in_an_arm, (torch.ones(4), torch.tensor(0)), (torch.ones(4), torch.tensor(2)))
    assert isinstance(error, IndexError)
    assert marked(error) == ["picked(x, i)", "x[i + offset]"]


def test_the_text_is_as_eager_has_it() -> None:
    function = sg.to_static(in_an_arm, backend="eager")
    args = (torch.ones(4), torch.tensor(9))
    given, wanted = ("".join(traceback.format_exception(raised(each, *args))) for each in (function, in_an_arm))
    assert given == wanted
    assert "~^^^^^^^^^^^^" in given
    assert "stillgraph/runtime" not in given


def test_a_size_only_the_run_knows() -> None:
    agree(of_a_size_only_the_run_knows, (torch.ones(3), torch.ones(3)), (torch.tensor([1.0, -1, 1]), torch.ones(3)))


def test_a_loop_and_a_line_that_goes_on() -> None:
    function = sg.to_static(counted_down, backend="eager")
    args = (torch.ones(2), torch.tensor(7))
    assert lines(raised(function, *args)) == [("counted_down", "x = x - torch.stack([x, x])[")]


def test_the_test_of_a_loop() -> None:
    static = sg.to_static(compared, backend="eager", input_spec=[sg.InputSpec([None])])
    static(torch.ones(1))
    error = raised(static, torch.ones(2))
    assert (type(error), lines(error)) == (RuntimeError, [("compared", "while x > 0:")])


@pytest.mark.parametrize("backend", ["eager", as_it_stands])
def test_a_layer_in_a_method(backend: Any) -> None:
    net = sg.to_static(Net(), backend=backend)
    net(torch.ones(3), torch.tensor(1))
    error = raised(net, torch.ones(3), torch.tensor(7))
    assert isinstance(error, IndexError)
    assert [name for name, _ in lines(error)] == ["_wrapped_call_impl", "_call_impl", "forward", "looked_up"]
    assert lines(error)[-2:] == [
        ("forward", "x = x + self.looked_up(i)"),
        ("looked_up", "return self.table(i)"),
    ]


def test_recursion() -> None:
    static = sg.to_static(halved, backend="eager")
    static(torch.ones(3), torch.tensor(2))
    error = raised(static, torch.ones(3), torch.tensor(-7))
    assert isinstance(error, IndexError)
    assert lines(error)[-1] == ("halved", "return x[depth]")


# ---- Python's own
def test_an_exception_of_the_users() -> None:
    error = agree(checking, (torch.zeros(2),), (torch.ones(2) * 2,))
    assert type(error) is TooLarge
    assert (error.what, error.limit) == ("the sum", 3)
    assert lines(error) == [("checking", "x = checked(x) + 1"), ("checked", 'raise TooLarge("the sum", 3)')]


def test_an_exception_that_holds_what_the_run_gave() -> None:
    error = agree(with_a_value_of_the_run, (torch.zeros(4),), (torch.ones(4),))
    assert (error.what, error.limit) == ("4.0", 1.0)


def test_an_assertion() -> None:
    agree(asserted, (torch.ones(2),), (-torch.ones(2),))


def test_a_division_of_numbers() -> None:
    assert isinstance(agree(divided, (torch.ones(2),), (torch.zeros(2),)), ZeroDivisionError)


def test_an_index_into_a_list_only_the_run_knows() -> None:
    args = [(torch.ones(2) * 3, torch.tensor(index)) for index in (1, 5)]
    assert isinstance(agree(gathered, *args), IndexError)


def test_a_key_that_is_not_there() -> None:
    assert isinstance(agree(named, (-torch.ones(2),), (torch.ones(2),)), KeyError)


def test_a_raise_from_another() -> None:
    error = agree(from_another, (torch.zeros(4),), (torch.ones(4),))
    assert type(error.__cause__) is TooLarge
    text = "".join(traceback.format_exception(error))
    assert "direct cause" in text
    assert "stillgraph" not in text.replace(str(HERE), "").replace(str(THERE), "")


def test_an_exception_that_is_being_handled_stays_the_context() -> None:
    static = sg.to_static(asserted, backend="eager")
    try:
        raise KeyError("first")
    except KeyError as error:
        first = error
        second = raised(static, -torch.ones(2))
    assert second.__context__ is first
    assert first.__traceback__ is not None
    assert first.__traceback__.tb_frame is inspect.currentframe()


# ---- code of the user's that the program calls
def test_a_function_of_autograds() -> None:
    static = sg.to_static(differentiated, backend="eager")
    static(torch.ones(2))
    error = raised(static, torch.ones(2) * 100)
    assert isinstance(error, TooLarge)
    assert lines(error) == [
        ("differentiated", "y.backward()"),
        ("backward", 'raise TooLarge("the gradient", 10)'),
    ]


def test_a_hook() -> None:
    static = sg.to_static(hooked, backend="eager")
    static(torch.ones(2))
    error = raised(static, torch.ones(2) * 100)
    assert isinstance(error, TooLarge)
    assert lines(error)[0] == ("hooked", "(x * x.detach()).sum().backward()")
    assert lines(error)[-1] == ("refuse_large", 'raise TooLarge("the gradient", 10)')
    assert len(lines(error)) == 2


def test_a_hook_of_an_optimizers() -> None:
    net = Stepped()
    net.optimizer.register_step_pre_hook(refuse_large_steps)
    static = sg.to_static(stepped, backend="eager")
    static(net, torch.ones(2))
    error = raised(static, net, torch.ones(2) * 100)
    assert (type(error), static.cache_info().programs) == (TooLarge, 1)
    assert lines(error) == [
        ("stepped", "net.optimizer.step()"),
        ("refuse_large_steps", 'raise TooLarge("a step", 10)'),
    ]


def logged(x: Tensor) -> Tensor:
    if x.sum() > 0:
        LOGGER.warning("a sum of %s", x.sum().item())
    return x


def test_a_handler_of_a_loggers() -> None:
    static = sg.to_static(logged, backend="eager")
    static(-torch.ones(2))
    error = raised(static, torch.ones(2))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "logging" not in frame.filename][1:]
    assert [frame.name for frame in frames] == ["logged", "emit"]


class Refuses(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise TooLarge(record.getMessage(), 0)


LOGGER = logging.getLogger("tests.tracebacks")
LOGGER.addHandler(Refuses())
LOGGER.propagate = False


# ---- compiled code
def test_an_operation_of_a_compiled_region() -> None:
    error = agree(table_twice, table_args(1), table_args(9), as_it_stands)
    assert marked(error) == ["torch.embedding(first, i)"]


@pytest.mark.slow
def test_an_operation_that_inductor_has_compiled() -> None:
    error = agree(table_twice, table_args(1), table_args(9), "inductor")
    assert isinstance(error, IndexError)


def test_a_fault_of_a_backends() -> None:
    error = raised(sg.to_static(table_twice, backend=fails), *table_args(1))
    assert error.args[0] == "a fault of the backend's"
    assert [name for name, _ in lines(error)] == ["table_twice", "run"]
    assert lines(error)[0] == ("table_twice", "scaled = table * 2")


def test_what_a_region_writes_is_written_once() -> None:
    static = sg.to_static(written_before, backend=as_it_stands)
    x = torch.zeros(2, 2)
    static(x, torch.tensor(1))
    error = raised(static, x, torch.tensor(9))
    assert (type(error), x.tolist()) == (IndexError, [[2.0, 2.0], [2.0, 2.0]])
    assert lines(error) == [("written_before", "return torch.embedding(y, i)")]


def test_random_numbers_are_drawn_once() -> None:
    def drawn(x: Tensor, i: Tensor) -> Tensor:
        y = torch.dropout(x, 0.5, True).cos()
        return torch.embedding(y, i)

    states = []
    for function in (drawn, sg.to_static(drawn, backend=as_it_stands)):
        torch.manual_seed(0)
        assert isinstance(raised(function, torch.ones(2, 2), torch.tensor(9)), IndexError)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_the_modes_are_as_they_were_after_a_region_has_failed() -> None:
    static = sg.to_static(modes_left, backend=as_it_stands)
    x = torch.ones(2, 2, requires_grad=True)
    static(x, torch.tensor(0))
    error = raised(static, x, torch.tensor(9))
    assert (type(error), torch.is_grad_enabled()) == (IndexError, True)
    assert lines(error) == [("modes_left", "z = torch.embedding(y, i)")]


# ---- where a call does not come to a program
def test_an_error_of_every_call() -> None:
    functions = (sg.to_static(always_wrong, backend="eager"), always_wrong)
    given, wanted = (raised(function, torch.ones(3)) for function in functions)
    assert (lines(given), marked(given), str(given)) == (lines(wanted), marked(wanted), str(wanted))


def test_arguments_that_do_not_fit() -> None:
    error = raised(sg.to_static(always_wrong, backend="eager"))
    assert (type(error), lines(error)) == (TypeError, [])


def test_switched_off() -> None:
    with sg.enable_to_static(False):
        error = raised(sg.to_static(always_wrong, backend="eager"), torch.ones(3))
    assert [name for name, _ in lines(error)] == ["always_wrong"]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: sg.to_static(refused, backend="eager")(x),
        lambda x: sg.to_static(refused, backend="eager").get_program(x),
        lambda x: sg.export(refused, (x,)),
        lambda x: sg.save(refused, "never.pt2", args=(x,)),
    ],
    ids=["call", "get_program", "export", "save"],
)
def test_a_refusal_shows_nothing_but_its_text(call: Callable[[Tensor], Any]) -> None:
    error = raised(call, torch.ones(2))
    assert isinstance(error, sg.CaptureError)
    assert [name for name, _ in lines(error)] == ["<lambda>"]
    text = "".join(traceback.format_exception(error))
    assert "x = x.apply_(lambda v: v)" in text
    assert "During handling" not in text
    assert "direct cause" not in text


@pytest.mark.parametrize("way", ["get_program", "explain"])
def test_an_error_of_the_functions_own_in_a_capture(way: str) -> None:
    error = raised(getattr(sg.to_static(always_wrong, backend="eager"), way), torch.ones(3))
    assert lines(error) == [("always_wrong", "return x @ torch.ones(7)")]


def test_blocks_of_a_function_are_one_frame() -> None:
    error = raised(sg.export, wrong_in_a_block, (torch.ones(3),))
    assert lines(error) == [("wrong_in_a_block", "x = always_wrong(x)"), ("always_wrong", "return x @ torch.ones(7)")]


def test_a_traced_function() -> None:
    traced = sg.trace(of_a_table, (torch.ones(3, 2), torch.tensor(1)))
    error = raised(traced, torch.ones(3, 2), torch.tensor(5))
    assert lines(error) == [("of_a_table", "return torch.embedding(table.cos(), i)")]


# ---- the frames themselves
def test_everything_as_it_was_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    static = sg.to_static(in_an_arm, backend="eager")
    args = (torch.ones(4), torch.tensor(9))
    raised(static, *args)
    monkeypatch.setenv(SWITCH, "1")
    frames = traceback.extract_tb(raised(static, *args).__traceback__)
    assert any(frame.filename.startswith("<stillgraph in_an_arm") for frame in frames)
    assert any(frame.filename.endswith("static_function.py") for frame in frames)
    monkeypatch.setenv(SWITCH, "0")
    assert not hasattr(raised(static, *args), "__notes__")
    assert len(lines(raised(static, *args))) == 2


def test_lines_of_the_driver_are_noted_with_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    static = sg.to_static(in_an_arm, backend="eager")
    monkeypatch.setenv(SWITCH, "1")
    error = raised(static, torch.ones(4), torch.tensor(9))
    (driver,) = (f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<stillgraph in_an_arm"))
    (note,) = error.__notes__
    head, stands, *users = note.splitlines()
    assert driver.line
    assert head == f'File "{driver.filename}", line {driver.lineno}: {driver.line}'
    monkeypatch.setenv(SWITCH, "0")
    shown = traceback.format_tb(raised(static, torch.ones(4), torch.tensor(9)).__traceback__)
    assert stands == "stands for"
    assert [line.strip(" ^~") for line in users if line.strip(" ^~")] == [
        line.strip(" ^~") for entry in shown[-2:] for line in entry.splitlines() if line.strip(" ^~")
    ]


def test_frames_know_their_function_and_its_globals() -> None:
    error = raised(sg.to_static(in_an_arm, backend="eager"), torch.ones(4), torch.tensor(9))
    assert error.__traceback__ is not None
    *_, last = traceback.walk_tb(error.__traceback__)
    frame = last[0]
    assert frame.f_globals is vars(module)
    assert frame.f_locals == {}
    assert frame.f_code.co_firstlineno == picked.__code__.co_firstlineno
    assert inspect.getsource(frame) == inspect.getsource(picked)


def test_a_program_without_places() -> None:
    """Written by hand, it has none: the error stays, its traceback has no lines."""
    program = program_of(lambda x: (x[7],), (X,))
    run = lower(program, None).run
    function = static(lambda x: x, lambda args, kwargs: program, compile_program=lambda program, backend: run)
    error = raised(function, torch.ones(2))
    assert (type(error), lines(error)) == (IndexError, [])


@pytest.mark.parametrize("backend", ["eager", as_it_stands])
def test_an_error_that_is_gone_holds_nothing(backend: Any) -> None:
    static = sg.to_static(table_twice, backend=backend)
    static(*table_args(0))
    gc.disable()
    try:
        args = table_args(9)
        held = weakref.ref(args[1])
        error = raised(static, *args)
        assert isinstance(error, IndexError)
        del args, error
        assert held() is None  # without a collection: there is no cycle
    finally:
        gc.enable()


def test_an_error_holds_no_values_of_the_run() -> None:
    static = sg.to_static(table_twice, backend="eager")
    static(*table_args(0))
    gc.collect()
    before = {id(each) for each in gc.get_objects() if issubclass(type(each), Tensor)}
    args = table_args(9)
    error = raised(static, *args)
    new = [id(each) for each in gc.get_objects() if issubclass(type(each), Tensor) and id(each) not in before]
    assert isinstance(error, IndexError)
    assert set(new) <= set(map(id, args))
