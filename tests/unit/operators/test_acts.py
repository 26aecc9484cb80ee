"""What functions do to the world outside is done by each call that comes by it, and never by a capture."""

from __future__ import annotations

import gc
import io
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.program.operations import act
from tests.unit.operators import acting
from tests.unit.trace.agreement import N, P, count, program_of, refusal

BATCH = torch.ones(2, 3)


class Records(logging.Handler):
    """Keeps what is logged: where it comes from, and its text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.seen: list[tuple[Any, ...]] = []

    def emit(self, record: logging.LogRecord) -> None:
        place = (Path(record.pathname).name, record.lineno, record.funcName)
        self.seen.append((record.name, record.levelname, record.getMessage(), *place, getattr(record, "who", None)))


@pytest.fixture
def records() -> Iterator[Records]:
    handler = Records()
    acting.LOG.addHandler(handler)
    before, acting.LOG.level = acting.LOG.level, logging.INFO
    acting.LOG.setLevel(logging.INFO)
    yield handler
    acting.LOG.removeHandler(handler)
    acting.LOG.setLevel(before)


def world(folder: Path) -> dict[str, Any]:
    """What is in a folder."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = None if path.is_dir() else path.stat().st_size if path.suffix == ".pt" else path.read_bytes()
    return found


def prepare(folder: Path) -> None:
    (folder / "tree").mkdir(parents=True)
    acting.said_once.cache_clear()
    (folder / "kept").write_text("kept")
    acting.FOLDER = folder
    acting.STREAM.seek(0)
    acting.STREAM.truncate()


def done(function: Callable[..., Any], folder: Path, records: Records, *calls: Any) -> list[Any]:
    """What each call gives or raises, and how it leaves the world."""
    steps: list[Any] = []
    for given in calls:
        records.seen.clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                result: Any = repr(function(given.clone()))
            except sg.CaptureError:
                raise
            except Exception as error:
                result = type(error)
        told = [(w.category, str(w.message), Path(w.filename).name, w.lineno) for w in warned]
        steps.append((result, world(folder), acting.STREAM.getvalue(), list(records.seen), told))
    return steps


FUNCTIONS = [
    acting.removes,
    acting.writes_text,
    acting.makes_folders,
    acting.copies,
    acting.runs_a_process,
    acting.saves_the_best,
    acting.saves_arrays,
    acting.removes_what_may_be_missing,
    acting.raises_at_a_missing_file,
    acting.in_a_loop,
    acting.writes_to_streams,
    acting.dumps,
    acting.writes_rows,
    acting.keeps_a_stream_of_its_own,
    acting.logs,
    acting.logs_for_its_caller,
    acting.logs_what_it_changes,
    acting.logs_once,
    acting.warns,
    acting.warns_for_its_caller,
    acting.warns_for_the_outermost,
    acting.catches_a_warning,
    acting.keeps_warnings_quiet,
    acting.Holder(),
]


def name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


@pytest.mark.parametrize("function", FUNCTIONS, ids=name)
def test_as_in_eager(
    function: Any, tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = (P, P, N, P, N) if function is not acting.copies else (P, P, N)
    (tmp_path / "either").mkdir()
    folder = tmp_path / "either" / "world"
    prepare(folder)
    expected, printed = done(function, folder, records, *calls), capsys.readouterr()
    folder.rename(tmp_path / "before")
    prepare(folder)
    static = sg.to_static(function, backend="eager")
    assert done(static, folder, records, *calls) == expected
    assert capsys.readouterr() == printed
    assert (static.forward if isinstance(static, torch.nn.Module) else static).cache_info().programs == 1


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (acting.opens_for_writing, "SG305"),
        (acting.opens_a_path, "SG305"),
        (acting.pickles_an_object, "SG305"),
        (acting.uses_what_a_process_gives, "SG305"),
        (acting.reads_what_it_writes, "SG305"),
        (acting.reads_its_stream, "SG305"),
        (acting.changes_the_environment, "SG305"),
        (acting.logs_the_stack, "SG305"),
        (acting.prints_to_a_file_of_its_own, "SG305"),
    ],
    ids=lambda each: name(each) if callable(each) else each,
)
def test_refused_before_anything_is_done(function: Any, code: str, tmp_path: Path, records: Records) -> None:
    folder = tmp_path / "world"
    prepare(folder)
    before = world(folder)
    error = refusal(function, P)
    assert error.reason.code == code
    assert error.location is not None
    assert error.location.file == acting.__file__
    assert world(folder) == before
    assert acting.STREAM.getvalue() == ""
    assert records.seen == []
    assert "STILLGRAPH_TEST" not in os.environ


def test_a_capture_alone_does_nothing(tmp_path: Path, records: Records) -> None:
    prepare(tmp_path / "world")
    before = world(tmp_path / "world")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (acting.logs, acting.warns, acting.writes_to_streams, acting.makes_folders):
            assert count(program_of(function, P), act) > 0
    assert world(tmp_path / "world") == before
    assert records.seen == []


@sg.not_to_static
def left_alone(x: torch.Tensor) -> torch.Tensor:
    (acting.FOLDER / "kept").write_text("changed")
    return x


def test_code_that_is_not_rewritten_is_stopped(tmp_path: Path) -> None:
    prepare(tmp_path / "world")
    error = refusal(lambda x: left_alone(x) if x.sum() < 0 else x, P)
    assert error.reason.code == "SG305"
    assert "not rewritten" in error.message
    assert (acting.FOLDER / "kept").read_text() == "kept"


def test_levels_and_handlers_are_those_of_the_call(records: Records) -> None:
    static = sg.to_static(acting.logs, backend="eager")
    static(P)
    acting.LOG.setLevel(logging.CRITICAL)
    static(P)
    assert [message for _, _, message, *_ in records.seen] == ["step"]
    acting.LOG.setLevel(logging.DEBUG)
    static(P)
    assert [message for _, _, message, *_ in records.seen] == ["step", "step", "positive"]


def test_another_logger_makes_another_program(records: Records) -> None:
    module = sg.to_static(acting.Holder(), backend="eager")
    module(P)
    module.log = logging.getLogger("tests.acting.other")
    module(P)
    assert [logger for logger, *_ in records.seen] == ["tests.acting", "tests.acting.other"]


def test_filters_decide_when_the_warning_is_given() -> None:
    static = sg.to_static(acting.warns, backend="eager")
    with warnings.catch_warnings(record=True):
        static(P)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="negative"):
            static(N)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("once")
        for _ in range(3):
            static(P)
    assert len(warned) == 1


def written_to(x: torch.Tensor, stream: io.StringIO) -> torch.Tensor:
    stream.write(f"{x.sum().item()} ")
    return x


def test_the_stream_of_the_call_is_written_to() -> None:
    static = sg.to_static(written_to, backend="eager")
    first, second = io.StringIO(), io.StringIO()
    static(P, first)
    static(N, second)
    static(P, first)
    assert (first.getvalue(), second.getvalue()) == ("6.0 6.0 ", "-6.0 ")


def test_a_program_keeps_no_stream() -> None:
    static = sg.to_static(written_to, backend="eager")
    stream = io.StringIO()
    static(P, stream)
    gc.collect()
    assert not [owner for owner in gc.get_referrers(stream) if type(owner).__name__ == "Method"]


def test_what_is_told_is_left_out_of_files(tmp_path: Path) -> None:
    sg.save(acting.Holder(), tmp_path / "told.pt2", args=(P,))
    assert torch.equal(sg.load(tmp_path / "told.pt2")(N), N)
    for function in (acting.makes_folders, acting.saves_the_best, acting.writes_to_streams):
        with pytest.raises(sg.ExportError) as raised:
            sg.save(function, tmp_path / "made.pt2", args=(P,))
        assert raised.value.reason.code == "SG402"
