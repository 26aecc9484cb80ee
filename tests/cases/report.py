"""The score board: ``python -m tests.cases.report [--pt2 | --onnx | --python | --partial] [--device D] [-v] [-j N]
[--timeout S] [NAME …]``.

Each case runs in a process of its own, so a crash or a hang costs one line and not the board. A NAME selects the cases
whose name contains it; with ``-v`` the tracebacks are printed too.
"""
from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from tests.cases import pending
from tests.cases.case import Case, all_cases
from tests.cases.devices import checked_on
from tests.cases.harness import check_onnx, check_partial, check_pt2, check_python, check_static

_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Verdict:
    """How one case went: `problem` is None when it holds, else one line; `detail` is the whole traceback."""

    name: str
    seconds: float
    problem: str | None = None
    detail: str = ""


def main() -> int:
    """Run the selected cases and print the board; the exit status is 1 if one fails that is not pending."""
    options = _parser().parse_args()
    check, expected = _check(options)
    selected = [c for n, c in all_cases().items() if not options.names or any(part in n for part in options.names)]
    torch.set_num_threads(1)  # a fork must not inherit a pool of threads
    _warm_up(all_cases()["A01_if_tensor"], check if options.device is None else check_static)  # forks take over no GPU
    passed, surprises = 0, 0
    run = _isolated if options.jobs else _verdict
    with ThreadPoolExecutor(options.jobs) if options.jobs else contextlib.nullcontext() as pool:
        for verdict in (map if pool is None else pool.map)(lambda case: run(case, check, options.timeout), selected):
            passed += verdict.problem is None
            surprises += (verdict.problem is None) == (verdict.name in expected)
            _print(verdict, expected.get(verdict.name), options.verbose)
    print(f"{passed} of {len(selected)} hold")
    return 1 if surprises else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cases.report", description="The conformance score.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only cases whose name contains one of these")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--pt2", action="store_true", help="save as .pt2 and load instead")
    kind.add_argument("--onnx", action="store_true", help="save as .onnx and run in onnxruntime instead")
    kind.add_argument("--python", action="store_true", help="save as Python source and import it instead")
    kind.add_argument("--partial", action="store_true", help="without a full graph: Python may take steps")
    parser.add_argument("--device", help="where modules and inputs are, the default device as well")
    parser.add_argument("-v", "--verbose", action="store_true", help="print tracebacks")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="cases at a time; 0: all in this process")
    parser.add_argument("--timeout", type=int, default=20, help="seconds for one case")
    return parser


def _check(options: argparse.Namespace) -> tuple[Callable[[Case], None], dict[str, str]]:
    if options.device is not None:
        check = check_partial if options.partial else check_static
        return functools.partial(checked_on, options.device, check=check), {}
    if not (options.pt2 or options.onnx or options.python):
        return check_partial if options.partial else check_static, pending.STATIC
    export, expected = (check_pt2, pending.PT2) if options.pt2 else (check_onnx, pending.ONNX)
    if options.python:
        export, expected = check_python, pending.PYTHON

    def check(case: Case) -> None:
        with tempfile.TemporaryDirectory() as folder:
            export(case, Path(folder))

    return check, expected


def _print(verdict: Verdict, pending_reason: str | None, verbose: bool) -> None:
    if verdict.problem is None:
        mark, text = "ok", "" if pending_reason is None else "no longer pending"
    else:
        mark, text = "FAIL" if pending_reason is None else "pending", verdict.problem
    print(f"{mark:8}{verdict.seconds:5.1f}s  {verdict.name:32} {text}", flush=True)
    if verbose and verdict.detail:
        print(verdict.detail, flush=True)


def _warm_up(case: Case, check: Callable[[Case], None]) -> None:
    """Let torch import what it imports lazily, once and before the forks, however the case itself goes."""
    with contextlib.suppress(Exception):
        check(case)


# ---- one process per case
def _isolated(case: Case, check: Callable[[Case], None], timeout: int) -> Verdict:
    """Run a check in a forked process; whatever happens to that process becomes a verdict."""
    ours, theirs = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_child, args=(case, check, timeout, theirs), daemon=True)
    begun = time.perf_counter()
    process.start()
    theirs.close()
    try:
        if ours.poll(timeout + 5):  # the child's own alarm comes first, and knows the line
            verdict: Verdict = ours.recv()
            return verdict
        return Verdict(case.name, time.perf_counter() - begun, f"hangs outside Python ({timeout} s)")
    except EOFError:
        process.join()
        return Verdict(case.name, time.perf_counter() - begun, f"the process died (exit status {process.exitcode})")
    finally:
        process.kill()
        process.join()


def _child(case: Case, check: Callable[[Case], None], timeout: int, answer: Connection) -> None:
    answer.send(_verdict(case, check, timeout))


def _verdict(case: Case, check: Callable[[Case], None], timeout: int) -> Verdict:
    signal.signal(signal.SIGALRM, _on_alarm)
    signal.alarm(timeout)
    warnings.simplefilter("ignore")
    begun = time.perf_counter()
    problem, detail = None, ""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        try:
            check(case)
        except BaseException as error:  # a board must show every way to fail
            text = " ".join(str(error).split())
            kind = "" if isinstance(error, (AssertionError, _Hang)) else f"{type(error).__name__}: "
            problem, detail = (kind + text)[:200] or type(error).__name__, traceback.format_exc()
    signal.alarm(0)
    return Verdict(case.name, time.perf_counter() - begun, problem, detail)


class _Hang(BaseException):
    """Out of the reach of ``except Exception`` in what hangs."""


def _on_alarm(number: int, frame: object) -> None:
    raise _Hang("it hangs")


if __name__ == "__main__":
    sys.exit(main())
