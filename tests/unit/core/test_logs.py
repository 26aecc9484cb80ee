import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.logs import TOPICS, configure


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    yield
    sg.set_verbosity(0)


def halve(x: Tensor, n: int) -> Tensor:
    while x.sum() > 1:
        x = x / n
    return x


def hear(caplog: pytest.LogCaptureFixture, topics: str) -> None:
    configure(topics)
    caplog.handler.setLevel(logging.INFO)


def events(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    told = [(r.name.removeprefix("stillgraph."), r.event) for r in caplog.records if r.name.startswith("stillgraph.")]
    caplog.clear()
    return told


def test_each_topic_has_a_logger_whose_records_carry_data(caplog: pytest.LogCaptureFixture) -> None:
    hear(caplog, "all")
    static = sg.to_static(halve, backend="eager", cache_size=1)
    static(torch.ones(3), 2)
    captured = next(r for r in caplog.records if r.event == "captured")
    assert captured.data | {"seconds": 0} == {
        "function": "halve", "seconds": 0, "operations": 3, "regions": 3, "inputs": 1,
        "guards": len(static.programs[0].guards),
    }
    assert events(caplog) == [
        ("cache", "miss"), ("capture", "begins"), ("code", "rewritten"), ("capture", "captured"),
        ("guards", "guards"), ("code", "driver"), ("cache", "added"),
    ]
    static(torch.ones(3), 2)
    assert events(caplog) == []
    with pytest.warns(RuntimeWarning, match="already has 1 programs"):
        static(torch.ones(4), 2)
    miss = next(r for r in caplog.records if r.event == "miss")
    assert "(4,)" in miss.data["why"]
    told = events(caplog)
    assert ("cache", "dropped") in told
    assert ("code", "rewritten") not in told  # told before


def test_a_refusal_is_told_with_its_code(caplog: pytest.LogCaptureFixture) -> None:
    def refused(x: Tensor) -> Tensor:
        return x * hash(str(x.sum()))

    hear(caplog, "capture")
    with pytest.raises(sg.CaptureError) as raised:
        sg.to_static(refused, backend="eager")(torch.ones(3))
    (record,) = [r for r in caplog.records if r.event == "refused"]
    assert record.data["code"] == raised.value.reason.code
    assert record.data["at"].startswith(__file__)


def test_verbosity_says_which_topics_are_told() -> None:
    heard = []
    for level in range(4):
        sg.set_verbosity(level)
        heard.append([t for t in TOPICS if logging.getLogger(f"stillgraph.{t}").isEnabledFor(logging.INFO)])
    assert heard == [[], ["capture"], ["capture", "cache", "runtime", "deploy"], list(TOPICS)]


def test_blanks_separate_topics_as_commas_do(caplog: pytest.LogCaptureFixture) -> None:
    hear(caplog, "plan  Cache,guards")
    heard = {t for t in TOPICS if logging.getLogger(f"stillgraph.{t}").isEnabledFor(logging.INFO)}
    assert heard == {"plan", "cache", "guards"}


def test_an_unknown_topic_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no topic is called guard; there are capture, guards, cache, code"):
        configure("capture,guard")


PROGRAM = """
import torch, stillgraph as sg
def double(x):
    return x * 2 if x.sum() > 0 else x
sg.to_static(double, backend="eager")(torch.ones(2))
"""


def run(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "double.py"
    script.write_text(PROGRAM)
    paths = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env={**paths, **environment}, check=True
    )


@pytest.mark.slow
def test_the_environment_says_what_is_shown(tmp_path: Path) -> None:
    shown = run(tmp_path, STILLGRAPH_LOG="capture,cache").stderr.splitlines()
    assert shown[0] == "[stillgraph.cache] no program of double fits: nothing has been captured yet"
    assert shown[1] == f"[stillgraph.capture] double ({tmp_path / 'double.py'}:3) is being captured"
    assert shown[2].startswith("[stillgraph.capture] double is one program: operations 3, regions 3, inputs 1, guards")
    assert shown[3] == "[stillgraph.cache] double has 1 of 8 programs"
    assert len(shown) == 4

    assert run(tmp_path).stderr == ""
    assert "no topic is called captures" in run(tmp_path, STILLGRAPH_LOG="captures").stderr


@pytest.mark.slow
def test_a_mistake_in_one_variable_leaves_the_rest_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    shown = run(tmp_path, STILLGRAPH_LOG="Capture,cach", STILLGRAPH_ARTEFACTS=str(folder)).stderr
    assert "STILLGRAPH_LOG: no topic is called cach; there are capture" in shown
    assert "[stillgraph.capture] double is one program" in shown
    assert (folder / "0001-double").is_dir()
    shown = run(tmp_path, STILLGRAPH_LOG="capture", STILLGRAPH_ARTEFACTS="/proc/nope").stderr
    assert "STILLGRAPH_ARTEFACTS: no files are written: " in shown
    assert "'/proc/nope" in shown
    assert "[stillgraph.capture] double is one program" in shown


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise RuntimeError("broken")


@pytest.mark.parametrize("kind", ["closed", "broken", "absent"])
def test_no_call_fails_where_nothing_can_be_told(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    stream = {"closed": io.StringIO(), "broken": Broken(), "absent": None}[kind]
    if kind == "closed":
        assert stream is not None
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    sg.set_verbosity(3)
    sg.set_code_level(100)
    try:
        result = sg.to_static(halve, backend="eager")(torch.ones(3), 2)
    finally:
        sg.set_code_level(0)
    assert result.equal(halve(torch.ones(3), 2))


@pytest.mark.parametrize("level", ["x", 1.5, None, True])
@pytest.mark.parametrize("setter", ["set_verbosity", "set_code_level"])
def test_a_level_is_an_integer(setter: str, level: object) -> None:
    with pytest.raises(TypeError, match=rf"^{setter} takes an integer, not "):
        getattr(sg, setter)(level)


def test_the_environment_asks_for_artefacts_and_for_lines_of_json(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    shown = run(tmp_path, STILLGRAPH_ARTEFACTS=str(folder), STILLGRAPH_LOG="capture,json").stderr
    lines = [json.loads(line) for line in shown.splitlines()]
    assert [(line["topic"], line["event"]) for line in lines] == [("capture", "begins"), ("capture", "captured")]
    assert lines[1]["regions"] == 3
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == [
        "0001-double/driver.py", "0001-double/explanation.txt", "0001-double/guards.py", "0001-double/program.txt",
        "code/__main__.double.3.py",
    ]
    assert "if_exp(" in (folder / "code/__main__.double.3.py").read_text()
    assert (folder / "0001-double/driver.py").read_text().startswith("def double(x):")
    assert (folder / "0001-double/guards.py").read_text().startswith("def ")
    assert (folder / "0001-double/program.txt").read_text().startswith("program double(x: f32[2])")


def test_artefacts_of_what_is_refused_and_of_further_captures(tmp_path: Path) -> None:
    def refused(x: Tensor) -> Tensor:
        return x * hash(str(x.sum()))

    sg.set_artefacts(tmp_path / "made")
    try:
        sg.export(halve, (torch.ones(3), 2))
        with pytest.raises(sg.CaptureError) as raised:
            sg.export(refused, (torch.ones(3),))
    finally:
        sg.set_artefacts(None)
    sg.export(halve, (torch.ones(3), 2))
    folders = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert [name.split("-")[0] for name in folders] == ["0001", "0002", "code"]
    assert (tmp_path / "made" / folders[1] / "refused.txt").read_text() == f"{raised.value}\n"


def test_a_directory_that_cannot_be_written_to_is_told_once_and_no_call_fails(tmp_path: Path) -> None:
    sg.set_artefacts(tmp_path / "made")
    try:
        (tmp_path / "made" / "code").rmdir()
        (tmp_path / "made").rmdir()
        with pytest.warns(RuntimeWarning, match="no more artefacts are written"):
            result = sg.to_static(halve, backend="eager")(torch.ones(3), 2)
        assert result.equal(halve(torch.ones(3), 2))
    finally:
        sg.set_artefacts(None)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        sg.set_artefacts(tmp_path / "file")


def test_rewritten_code_is_printed_once_step_by_step(capfd: pytest.CaptureFixture[str]) -> None:
    sg.set_code_level(2)
    try:
        static = sg.to_static(halve, backend="eager", dynamic=False)
        static(torch.ones(3), 2)
        steps = capfd.readouterr().err
        static(torch.ones(4), 2)
        again = capfd.readouterr().err
        sg.set_code_level(100)
        static(torch.ones(5), 2)
        whole = capfd.readouterr().err
    finally:
        sg.set_code_level(0)
    static(torch.ones(6), 2)
    assert steps.count("After step ") == 2
    assert steps.count("def halve(x: Tensor, n: int)") == 2
    assert again == ""
    assert whole.count("After step ") > 2
    assert whole.endswith(f"\nThe final code:\n{static.code}\n")
    assert capfd.readouterr().err == ""


def test_json_alone_means_all_topics(caplog: pytest.LogCaptureFixture) -> None:
    hear(caplog, "json")
    sg.to_static(lambda x: x * 2, backend="eager")(torch.ones(3))
    assert {"capture", "guards", "code"} <= {topic for topic, _ in events(caplog)}
