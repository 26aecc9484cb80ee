"""Whatever happens during a save: the file there was is as it was, and nothing else is left."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExampleTimeout, refuse
from stillgraph.deploy import archive
from stillgraph.deploy.pt2 import pt2

X = torch.tensor([1.0, 2.0])


def doubled(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


class Full(io.FileIO):
    """A file on a disk that is full after some bytes."""

    left = 300

    def write(self, data: Any) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Path.open

    def opened(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        return Full(self, mode) if mode == "wb" else whole(self, mode, *rest, **options)

    monkeypatch.setattr(Path, "open", opened)


def failing_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(*rest: Any, **options: Any) -> None:
        raise refuse("SG403", "output 0 differs")

    monkeypatch.setattr(pt2, "check_artefact", differs)


def failing_move(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*rest: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(archive.os, "replace", denied)


@pytest.mark.parametrize(
    ("fail", "error"),
    [(full_disk, OSError), (failing_verification, sg.ExportError), (failing_move, PermissionError)],
)
@pytest.mark.parametrize("several", [False, True])
def test_the_old_file_stays(
    fail: Callable[[pytest.MonkeyPatch], None],
    error: type[Exception],
    several: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "doubled.pt2"
    sg.save(doubled, path, args=(X,))
    before = path.read_bytes()
    fail(monkeypatch)
    target: Any = {"a": doubled, "b": doubled} if several else doubled
    with pytest.raises(error):
        sg.save(target, path, args={"a": (X,), "b": (X,)} if several else (X,))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["doubled.pt2"]
    torch.testing.assert_close(sg.load(path)(X), X * 2)


def test_the_disk_is_full_by_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left on device") as raised:
        sg.save(doubled, tmp_path / "doubled.pt2", args=(X,))
    assert raised.value.errno == errno.ENOSPC


def test_a_file_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.pt2"
    path.write_bytes(b"as it was")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda name, mode: Path(name) != path and allowed(name, mode))  # root may always
    with pytest.raises(PermissionError, match=r"no permission to write '.*kept\.pt2'"):
        sg.save(doubled, path, args=(X,))
    assert path.read_bytes() == b"as it was"


@pytest.mark.slow
def test_a_process_that_is_killed(tmp_path: Path) -> None:
    path, mine = tmp_path / "doubled.pt2", tmp_path / ".doubled-mine.pt2"
    path.write_bytes(b"as it was")
    mine.write_bytes(b"mine")
    script = f"""
        import os, signal, torch, stillgraph as sg
        from stillgraph.deploy.pt2 import pt2
        pt2.check_artefact = lambda *rest, **options: os.kill(os.getpid(), signal.SIGKILL)
        sg.save(torch.nn.Linear(2, 2), {str(path)!r}, args=(torch.ones(2),))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.read_bytes() == b"as it was"
    (left,) = set(tmp_path.iterdir()) - {path, mine}
    assert left.name.startswith(".doubled-")
    sg.save(doubled, path, args=(X,))
    assert set(tmp_path.iterdir()) == {path, mine, left}
    assert mine.read_bytes() == b"mine"
    torch.testing.assert_close(sg.load(path)(X), X * 2)


# ---- names
class Named:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


@pytest.mark.parametrize("name", ["with spaces", "größe-模型-🙂", "n" * 251, "-o", "a'\"b", "~"])
def test_names(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name += ".pt2"
    sg.save(doubled, name, args=(X,))
    assert [p.name for p in tmp_path.iterdir()] == [name]
    for path in (name, Path(name), Named(tmp_path / name)):
        torch.testing.assert_close(sg.load(path)(X), X * 2)
    torch.testing.assert_close(torch.export.load(name).module()(X)[0], X * 2)


def test_a_name_that_is_too_long_is_refused_before_the_work(tmp_path: Path) -> None:
    def never(x: Tensor) -> Tensor:
        raise AssertionError("it is captured")

    with pytest.raises(OSError, match="name too long"):
        sg.save(never, tmp_path / ("n" * 300 + ".pt2"), args=(X,))


def test_a_home_is_not_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder '~'"):
        sg.save(doubled, "~/doubled.pt2", args=(X,))


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.pt2", tmp_path / "link.pt2"
    link.symlink_to(real)
    sg.save(doubled, link, args=(X,))
    assert link.is_symlink()
    assert not real.is_symlink()
    torch.testing.assert_close(sg.load(real)(X), X * 2)


@pytest.mark.parametrize("suffix", [".pt2", ".onnx", ".py"])
def test_what_is_no_regular_file_is_neither_replaced_nor_read(suffix: str, tmp_path: Path) -> None:
    def never(x: Tensor) -> Tensor:
        raise AssertionError("it is captured")

    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    device = tmp_path / f"device{suffix}"
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with pytest.raises(OSError, match="is no regular file"):
            sg.save(never, path, args=(X,))
        if suffix != ".py":
            with pytest.raises(OSError, match="is no regular file"):
                sg.load(path)
    assert pipe.is_fifo()
    assert device.is_symlink()


def test_threads_that_save_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        paths = [tmp_path / f"{index}.pt2" for index in range(3)]
        list(pool.map(lambda path: sg.save(doubled, path, args=(X,)), paths))
        loaded = list(pool.map(sg.load, paths))
    for each in loaded:
        torch.testing.assert_close(each(X), X * 2)


def test_a_thread_that_captures_while_another_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sg.save(doubled, tmp_path / "before.pt2", args=(X,))
    loaded = sg.load(tmp_path / "before.pt2")
    seen: list[Any] = []
    run_node = torch.fx.Interpreter.run_node

    def capture_and_run() -> None:
        seen.append(torch._ops._len_torch_dispatch_stack_pre_dispatch())  # modes that the process shares
        seen.append(sg.to_static(lambda x: doubled(x) + 1, backend="eager")(X))
        seen.append(loaded(X))

    def interrupted(interpreter: torch.fx.Interpreter, node: torch.fx.Node) -> Any:
        if node.op == "call_function" and not seen:
            monkeypatch.undo()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(capture_and_run).result()
        return run_node(interpreter, node)

    monkeypatch.setattr(torch.fx.Interpreter, "run_node", interrupted)
    sg.save(doubled, tmp_path / "file.pt2", args=(X,))
    torch.testing.assert_close(seen, [0, X * 2 + 1, X * 2])
    torch.testing.assert_close(sg.load(tmp_path / "file.pt2")(X), X * 2)


# ---- a disk that is full
class Weighted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(300, 300))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight if x.sum() > 0 else x


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".pt2", ".onnx", ".py"])
def test_a_full_disk_in_every_format(suffix: str, tmp_path: Path) -> None:
    """By a limit on the size of files, in a process of its own: torch's writers used to end theirs."""
    script = f"""
        import errno, os, resource, signal, sys, torch, stillgraph as sg
        from tests.unit.deploy.test_safe_saving import Weighted
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            sg.save(Weighted(), {str(tmp_path / ("model" + suffix))!r}, args=(torch.ones(2, 300),))
        except OSError as error:
            sys.exit(0 if error.errno == errno.EFBIG else repr(error))
        sys.exit("saved")
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_full_disk_for_what_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left on device"):
        sg.save(doubled, tmp_path / "doubled.aoti.pt2", args=(X,))
    assert not list(tmp_path.iterdir())


# ---- a program that does not end
def halved(x: Tensor, limit: Tensor) -> Tensor:
    while x.norm() > limit:
        x = x / 2
    return x


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
def test_a_loop_that_does_not_end_on_the_example(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(ExampleTimeout, match=r"runs for more than 0\.2 s on the example arguments"):
        sg.save(halved, tmp_path / f"halved{suffix}", args=(X, torch.tensor(-1.0)), time_limit=0.2)
    assert not list(tmp_path.iterdir())
    sg.save(halved, tmp_path / f"halved{suffix}", args=(X, torch.tensor(1.0)), time_limit=60)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_limit_that_is_none(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="time_limit is a number of seconds above 0"):
        sg.save(doubled, tmp_path / "doubled.pt2", args=(X,), time_limit=seconds)
