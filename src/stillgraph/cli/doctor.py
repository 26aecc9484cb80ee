"""The command `doctor`: which versions are here, and what works with them."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import click
import torch

import stillgraph as sg
from stillgraph.cli.usage import first_line
from stillgraph.runtime.native.backends import cpp_compiler

_EXTRAS = {
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "report": ("jinja2",),
}
_OTHERS = ("numpy", "transformers")


@dataclass(frozen=True)
class Finding:
    """What was looked at, and how it is. ``works`` is None for what is told alone, or not to be had."""

    what: str
    how: str
    works: bool | None = None


def doctor() -> None:
    """See `commands.doctor`."""
    for finding in _versions():
        _tell(finding)
    click.echo()
    findings = [_tried(what, check) for what, check in _checks().items()]
    sys.exit(1 if any(finding.works is False for finding in findings) else 0)


def _tell(finding: Finding) -> None:
    mark = {True: "ok     ", False: "FAILS  ", None: ""}[finding.works]
    click.echo(f"{finding.what:<24}{mark}{finding.how}".rstrip())


# ---- what is here
def _versions() -> list[Finding]:
    python = f"{platform.python_version()} ({platform.system()} {platform.machine()}, {os.cpu_count()} cores)"
    found = [
        Finding("stillgraph", sg.__version__),
        Finding("Python", f"{python}{_support('Python', _release(platform.python_version()), (3, 11), (3, 13))}"),
        Finding("torch", f"{torch.__version__}{_support('torch', _release(torch.__version__), (2, 11), (2, 14))}"),
        Finding("accelerator", _accelerator()),
        Finding("C++ compiler", cpp_compiler() or "none: the backend 'inductor' runs as 'eager'"),
    ]
    for name in _OTHERS:
        found.append(Finding(name, _version(name) or "not installed"))
    for extra, names in _EXTRAS.items():
        versions = [f"{name} {_version(name)}" for name in names if _version(name)]
        missing = [name for name in names if not _version(name)]
        install = f"pip install 'stillgraph[{extra}]'" if missing else ""
        found.append(Finding(f"extra {extra}", ", ".join([*versions, *([install] if install else [])])))
    return found


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _support(what: str, found: tuple[int, ...], least: tuple[int, int], most: tuple[int, int]) -> str:
    if least <= found <= most:
        return ""
    low, high = (".".join(map(str, bound)) for bound in (least, most))
    return f" (supported are {what} {low} to {high})"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _accelerator() -> str:
    found = torch.accelerator.current_accelerator(check_available=True)
    if found is None:
        return "none"
    name = torch.cuda.get_device_name() if found.type == "cuda" else ""
    return f"{found.type} {name}".strip()


# ---- what works
def _halve(x: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor, int]:
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return x, steps


def _check_call(backend: str, full_graph: bool = True) -> None:
    x, limit = torch.full((3,), 9.0, requires_grad=True), torch.tensor(1.0)
    y, steps = sg.to_static(_halve, backend=backend, full_graph=full_graph)(x, limit)
    y.sum().backward()
    (expected, count), gradient = _halve(x, limit), x.grad
    assert steps == count and gradient is not None, "the loop ran another number of times than in eager PyTorch"
    torch.testing.assert_close(y, expected)


def _check_file(suffix: str) -> None:
    args = (torch.full((3,), 9.0), torch.tensor(1.0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"halve{suffix}"
        sg.save(_halve, path, args=args)
        if suffix != ".py":
            y, steps = sg.load(path)(args[0] * 9, args[1])
            expected, count = _halve(args[0] * 9, args[1])
            torch.testing.assert_close(y, expected)
            assert int(steps) == count, "the loop ran another number of times than in eager PyTorch"


def _checks() -> dict[str, Callable[[], None] | str]:
    """What is tried, or why it is not."""
    has_onnx = all(map(_version, _EXTRAS["onnx"]))
    return {
        "call and train": partial(_check_call, "eager"),
        "without a full graph": partial(_check_call, "eager", full_graph=False),
        "backend inductor": partial(_check_call, "inductor") if cpp_compiler() else "not tried: no C++ compiler",
        "save .pt2": partial(_check_file, ".pt2"),
        "save .py": partial(_check_file, ".py"),
        "save .onnx": partial(_check_file, ".onnx") if has_onnx else "not tried: the extra is missing",
    }


def _tried(what: str, check: Callable[[], None] | str) -> Finding:
    if isinstance(check, str):
        finding = Finding(what, check)
    else:
        try:
            check()
            finding = Finding(what, "", works=True)
        except Exception as error:  # of any kind: this command says what does not work
            finding = Finding(what, f"{type(error).__name__}: {first_line(error)}", works=False)
    _tell(finding)
    return finding
