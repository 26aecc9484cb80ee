"""Assertions as results of a file: what each tells, in every format that has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.deploy.exporting.checks import original
from stillgraph.deploy.onnx.onnx_session import run_onnx
from tests.cases.harness import python_module
from tests.unit.deploy.alone import alone

X = torch.ones(3)
LEFT_OUT = "(a file leaves out values that only the run knows)"


class OwnError(Exception):
    """An exception that is not Python's."""


class Guarded(nn.Module):
    """Checks at the top, in an arm and in a loop, besides state that the call writes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.calls = 0

    def forward(self, x: Tensor, n: Tensor) -> dict[str, Any]:
        self.seen += x
        self.calls += 1
        assert x.sum() < 100, "too large"
        if n > 2:
            if x.sum() < 0:
                raise ValueError("negative")
            x = x * 2
        k = n
        while k != 0:
            assert x.max() < 50
            x = x + 1
            k = k - 1
        if x.sum() == 33:
            raise OwnError("thirty-three")
        return {"x": x, "k": k}


LINE = Guarded.forward.__code__.co_firstlineno + 10
NAMES = ("AssertionError: too large", "ValueError: negative", f"AssertionError (line {LINE})", "OwnError: thirty-three")
CALLS: list[tuple[float, int, int | None, type[Exception]]] = [
    (1.0, 3, None, Exception),
    (1000.0, 3, 0, AssertionError),
    (1000.0, -1, 0, AssertionError),  # the loop would never end
    (-1.0, 3, 1, ValueError),
    (-1.0, 1, None, Exception),  # the arm with the check is not taken
    (20.0, 40, 2, AssertionError),  # in one iteration of many
    (10.0, 1, 3, RuntimeError),
]
"""The value in ``x``, ``n``, which check fails, and the exception of it that a loaded program raises."""


def held(failing: int | None) -> list[bool]:
    return [number != failing for number in range(len(NAMES))]


@pytest.fixture(scope="module")
def pt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checks") / "guarded.pt2"
    sg.save(Guarded(), path, args=(X, torch.tensor(3)), assertions="return")
    return path


@pytest.mark.parametrize(("value", "n", "failing", "error"), CALLS)
def test_a_loaded_program_raises_what_the_original_does(
    pt2: Path, value: float, n: int, failing: int | None, error: type[Exception]
) -> None:
    loaded = sg.load(pt2)
    assert loaded.checks == NAMES
    x, count = X * value, torch.tensor(n)
    *_, checks = loaded.module(x, count)
    assert list(checks) == list(NAMES)
    assert [flag.item() for flag in checks.values()] == held(failing)
    assert torch.equal(loaded.module.seen, torch.zeros(3) if failing is not None else x)
    if failing is None:
        torch.testing.assert_close(loaded(x, count), Guarded()(x, count))
        return
    with pytest.raises(error) as raised:
        loaded(x, count)
    own = NAMES[failing].startswith("OwnError")
    assert str(raised.value) == (NAMES[failing] if own else NAMES[failing].partition(": ")[2])


def test_state_is_written_only_where_all_hold(pt2: Path) -> None:
    loaded, original = sg.load(pt2), Guarded()
    for value, n in ((1.0, 3), (2.0, 0)):
        loaded(X * value, torch.tensor(n))
        original(X * value, torch.tensor(n))
        with pytest.raises(AssertionError):
            loaded(X * 1000, torch.tensor(1))
    assert torch.equal(loaded.module.seen, original.seen)
    assert loaded.module.calls.item() == original.calls == 2
    written = torch.export.load(pt2).graph_signature.buffers_to_mutate
    assert sorted(written.values()) == ["calls", "seen"]


@pytest.mark.slow
def test_torch_alone_gives_a_dict_behind_the_results(pt2: Path) -> None:
    script = f"""
        module = torch.export.load({str(pt2)!r}).module()
        x, k, checks = module(torch.full((3,), -1.0), torch.tensor(3))
        print({{name: flag.item() for name, flag in checks.items() if not flag}})
    """
    assert alone(script) == "{'ValueError: negative': False}\n"


@pytest.mark.slow
def test_onnx_has_them_as_its_last_outputs(tmp_path: Path) -> None:
    path = tmp_path / "guarded.onnx"
    sg.save(Guarded(), path, args=(X, torch.tensor(3)), assertions="return")
    session = onnxruntime.InferenceSession(str(path))
    outputs = [output.name for output in session.get_outputs()]
    assert outputs[2:6] == ["check_1", "check_2", "check_3", "check_4"]
    described = session.get_modelmeta().custom_metadata_map["checks"]
    assert described == str(dict(zip(outputs[2:6], NAMES, strict=True))).replace("'", '"')
    for value, n, failing, _ in CALLS:
        given = run_onnx(path, (X * value, torch.tensor(n)))
        assert [flag.item() for flag in given[2:6]] == held(failing)


@pytest.mark.slow
def test_a_package_has_them(tmp_path: Path) -> None:
    class Stateless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: Tensor, n: Tensor) -> Tensor:
            self.seen += x
            assert x.sum() < 100, "too large"
            while n > 0:
                if x.sum() < 0:
                    raise ValueError("negative")
                x, n = x - 1, n - 1
            return x

    path = tmp_path / "checked.aoti.pt2"
    sg.save(Stateless(), path, args=(X, torch.tensor(1)), assertions="return")
    loaded = sg.load(path, native=True)
    assert loaded.checks == ("AssertionError: too large", "ValueError: negative")
    torch.testing.assert_close(loaded(X * 2, torch.tensor(3)), X * -1)
    with pytest.raises(ValueError, match="negative"):
        loaded(X, torch.tensor(9))
    with pytest.raises(AssertionError, match="too large"):
        loaded(X * 99, torch.tensor(1))
    *_, checks = torch._inductor.aoti_load_package(str(path))(X * 99, torch.tensor(1))
    assert {name: flag.item() for name, flag in checks.items()} == {
        "AssertionError: too large": False,
        "ValueError: negative": True,
    }


def test_several_entries(tmp_path: Path) -> None:
    def small(x: Tensor) -> Tensor:
        assert x.sum() < 5, "too large"
        return x

    def plain(x: Tensor) -> Tensor:
        return -x

    path = tmp_path / "two.pt2"
    sg.save({"small": small, "plain": plain}, path, args={"small": (X,), "plain": (X,)}, assertions="return")
    loaded = sg.load(path)
    assert (loaded.small.checks, loaded.plain.checks) == (("AssertionError: too large",), ())
    assert torch.equal(loaded.plain(X * 9), -X * 9)
    with pytest.raises(AssertionError, match="too large"):
        loaded.small(X * 9)


def twice(x: Tensor) -> Tensor:
    assert x.min() > 0, "no"
    for _ in range(2):
        x = x - 1
        assert x.min() > -5, "no"
    return x


def handled(x: Tensor) -> Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        y = x * 2
    except ValueError:
        y = -x
    assert y.sum() < 50, "too large"
    return y


def told_by_the_run(x: Tensor) -> Tensor:
    if x.sum() > 99:
        raise ValueError(f"{x.sum()} is too large")
    return x * 2


def test_a_text_that_only_the_run_knows_keeps_the_type(tmp_path: Path) -> None:
    sg.save(told_by_the_run, tmp_path / "told.pt2", args=(X,))
    with pytest.raises(ValueError, match=r"^\.\.\. is too large \(a file leaves out values that only the run knows\)$"):
        sg.load(tmp_path / "told.pt2")(X * 99)
    sg.save(told_by_the_run, tmp_path / "told.pt2", args=(X,), assertions="return")
    assert sg.load(tmp_path / "told.pt2").checks == (f"ValueError: ... is too large {LEFT_OUT}",)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (twice, ("AssertionError: no (line 1)", "AssertionError: no (line 4)", "AssertionError: no (line 4) #2")),
        (handled, ("AssertionError: too large",)),
    ],
)
def test_names(function: Callable[[Tensor], Tensor], names: tuple[str, ...], tmp_path: Path) -> None:
    start = function.__code__.co_firstlineno
    sg.save(function, tmp_path / "named.pt2", args=(X * 5,), assertions="return")
    expected = [name.replace(f"line {n}", f"line {start + n}") for name in names for n in (1, 4) if f"line {n}" in name]
    loaded = sg.load(tmp_path / "named.pt2")
    assert loaded.checks == tuple(expected or names)
    for value in (5.0, 3.0):
        torch.testing.assert_close(loaded(X * value), function(X * value))


def test_an_example_that_fails_is_saved_as_well(tmp_path: Path) -> None:
    sg.save(handled, tmp_path / "failing.pt2", args=(X * 50,), assertions="return")
    loaded = sg.load(tmp_path / "failing.pt2")
    assert torch.equal(loaded(-X), X)
    with pytest.raises(AssertionError, match="too large"):
        loaded(X * 50)


def test_python_source_does_as_the_original(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="prints, assertions and max_iterations are choices"):
        sg.save(handled, tmp_path / "no.py", args=(X,), assertions="return")


def test_no_loop_starts_behind_a_failure(tmp_path: Path) -> None:
    def counted(x: Tensor, n: Tensor) -> Tensor:
        if x.sum() > 0:
            assert n >= 0, "negative"
            if x.sum() > 1:
                while n != 0:  # never ends for less than 0
                    n = n - 1
        return n

    sg.save(counted, tmp_path / "counted.pt2", args=(X, torch.tensor(3)))
    loaded = sg.load(tmp_path / "counted.pt2")
    assert loaded(X, torch.tensor(5)).item() == 0
    with pytest.raises(AssertionError, match="negative"):
        loaded(X, torch.tensor(-1))


class Total(torch.nn.Module):
    """Writes to its state, and then may find that it must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.total += x
        self.calls += 1
        if self.total.sum() > 5:
            raise ValueError("too much")
        return x * 2


def test_state_in_an_onnx_file_stays_where_a_check_fails(tmp_path: Path) -> None:
    path = tmp_path / "total.onnx"
    sg.save(Total(), path, args=(torch.ones(2),), assertions="return")
    loaded = sg.load(path)
    loaded(torch.ones(2))
    with pytest.raises(ValueError, match="too much"):
        loaded(torch.full((2,), 9.0))
    assert loaded.module.state["total"].tolist() == [1, 1]
    session = onnxruntime.InferenceSession(path)
    names = [each.name for each in session.get_outputs()]
    for value, held in ((1.0, True), (9.0, False)):
        given = dict(zip(names, session.run(None, {"x": torch.full((2,), value).numpy()})))
        assert given["check_1"] == held
        assert given["total_out"].tolist() == ([1, 1] if held else [0, 0])
        assert given["calls_out"] == held


@pytest.mark.parametrize(
    "error",
    [
        ValueError("negative: -1"),
        KeyError("k: v"),
        KeyError(3, "b"),
        KeyError(),
        IndexError(),
        ZeroDivisionError("division by zero"),
        OSError(2, "gone"),
    ],
    ids=repr,
)
def test_an_exception_has_the_original_s_text(error: Exception) -> None:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    made = original(text, RuntimeError(text))
    assert type(made) is type(error)
    assert str(made) == str(error)


@pytest.mark.parametrize("text", ["UnicodeDecodeError: 'utf-8' codec", "OwnError: not Python's", "SystemExit: 1"])
def test_an_exception_that_a_text_does_not_make(text: str) -> None:
    otherwise = RuntimeError(text)
    assert original(text, otherwise) is otherwise


def test_a_key_that_cannot_be_read() -> None:
    assert str(original("KeyError: Point(1)", RuntimeError())) == "'Point(1)'"


def told(x: Tensor) -> Tensor:
    if x[0] > 1:
        raise ValueError(f"bad {int(x[0])} of {x.shape[0]}")
    if x[0] < -1:
        raise KeyError(int(x[0]))
    assert x[0] != 1, f"{{one}} {float(x[0]):.2f}"
    return x


@pytest.mark.parametrize(
    ("first", "error", "text"),
    [
        (5.0, ValueError, f"bad ... of ... {LEFT_OUT}"),
        (-3.0, KeyError, repr(f"... {LEFT_OUT}")),
        (1.0, AssertionError, f"{{one}} ... {LEFT_OUT}"),
    ],
)
def test_a_text_with_values_of_the_run_says_that_they_are_left_out(
    first: float, error: type[Exception], text: str, tmp_path: Path
) -> None:
    """A file for torch holds constant texts; one in Python makes the text."""
    x, options = torch.tensor([first, 0.0]), {"args": (torch.zeros(2),), "input_spec": [sg.InputSpec([None])]}
    sg.save(told, tmp_path / "told.pt2", **options)
    sg.save(told, tmp_path / "told.py", **options)
    with pytest.raises(error) as found:
        sg.load(tmp_path / "told.pt2")(x)
    assert str(found.value) == text
    with pytest.raises(error) as eager:
        told(x)
    with pytest.raises(error) as written:
        python_module(tmp_path / "told.py").told(x)
    assert str(written.value) == str(eager.value).partition("\n")[0]  # pytest adds to the text of an assertion
