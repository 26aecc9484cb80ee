"""What is told of each capture: to the logs, and to a directory of artefacts where the user wants one."""

from __future__ import annotations

import contextlib
import time
import warnings
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.logs import is_logged, log, require_level, to_stderr
from stillgraph.core.lookup import stated
from stillgraph.program.program import Program
from stillgraph.report import later
from stillgraph.runtime.guards.checking import compile_guards
from stillgraph.runtime.native.native import lower


class Logbook:
    """Tells what becomes of calls.

    Attributes:
        artefacts: where files are written, if anywhere.
        code_level: how many rewrite steps of a function are printed; from 100 on, what comes of them, too.
    """

    def __init__(self) -> None:
        self.artefacts: later.Artefacts | None = None
        self.code_level = 0
        self._rewritten: weakref.WeakValueDictionary[int, CodeType] = weakref.WeakValueDictionary()

    def keep_artefacts(self, artefacts: later.Artefacts | None) -> None:
        """Write to another directory from now on, functions that were told before included."""
        self.artefacts = artefacts
        self._rewritten.clear()

    def print_code(self, level: int) -> None:
        """Print rewritten functions from now on, those that were told before included.

        Raises:
            TypeError: the level is no integer.
        """
        require_level("set_code_level", level)
        self.code_level = level
        self._rewritten.clear()

    def rewritten(self, function: FunctionType, converted: Any) -> None:
        """Tell of a rewritten function, once.

        Args:
            function: as the user wrote it.
            converted: with ``function``, the rewritten one; ``code``, its text; and ``steps``, on the way to it.
        """
        if self.artefacts is None and not self.code_level and not is_logged("code"):
            return
        code = converted.function.__code__
        if self._rewritten.get(id(code)) is code:
            return
        self._rewritten[id(code)] = code
        if self.code_level:
            _print_code(converted, self.code_level)
        name, line, text = function.__qualname__, function.__code__.co_firstlineno, converted.code
        log("code", "rewritten", f"{name}, rewritten:\n{text}", function=name, line=line, code=text)
        with self._writing() as artefacts:
            if artefacts is not None:
                artefacts.rewritten(function.__module__ or "", name, line, text)

    @contextlib.contextmanager
    def capturing(self, function: Any) -> Iterator[list[Program]]:
        """Around a capture: the body puts the program into the list that it is given."""
        name, code = stated(function, "__qualname__") or str(function), stated(function, "__code__")
        place = {} if code is None else {"file": code.co_filename, "line": code.co_firstlineno}
        where = f" ({place['file']}:{place['line']})" if place else ""
        log("capture", "begins", f"{name}{where} is being captured", function=name, **place)
        made: list[Program] = []
        begin = time.perf_counter()
        try:
            yield made
        except CaptureError as error:
            self._refused(name, error)
            raise
        for program in made:
            self._captured(name, program, time.perf_counter() - begin)

    def _refused(self, name: str, error: CaptureError) -> None:
        at = None if error.location is None else str(error.location)
        log("capture", "refused", f"{name} is refused: {error}", function=name, code=error.reason.code, at=at)
        with self._writing() as artefacts:
            if artefacts is not None:
                artefacts.refused(name, str(error))

    def _captured(self, name: str, program: Program, seconds: float) -> None:
        if is_logged("capture"):
            told = later.explain(program, seconds)
            sizes = {"operations": told.nodes, "regions": told.regions}
            sizes |= {"inputs": len(program.inputs), "guards": len(program.guards)}
            text = f"{name} is one program: {', '.join(f'{what} {count}' for what, count in sizes.items())}"
            data: dict[str, Any] = {"function": name, "seconds": told.seconds, **sizes}
            log("capture", "captured", f"{text}, in {told.seconds:.3f} s", **data)
        if is_logged("guards"):
            guards = [str(guard) for guard in program.guards]
            listed = "".join(f"\n  {guard}" for guard in guards)
            log("guards", "guards", f"{name} relies on:{listed}", function=name, guards=guards)
        if is_logged("code"):
            driver = lower(program, None).code
            log("code", "driver", f"the driver of {name}:\n{driver}", function=name, code=driver)
        with self._writing() as artefacts:
            if artefacts is not None:
                check: Any = compile_guards(program.inputs, program.guards)
                artefacts.captured(program, check.__source__, seconds)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[later.Artefacts | None]:
        """Around the writing of files. Where that fails, it is told once, and no more is written."""
        try:
            yield self.artefacts
        except OSError as error:
            self.artefacts = None
            warnings.warn(f"no more artefacts are written: {error}", RuntimeWarning, stacklevel=2)


def _print_code(converted: Any, level: int) -> None:
    for number, (step, code) in enumerate(converted.steps, 1):
        if number <= level:
            to_stderr(f"After step {number}, {step}:\n{code}")
    if level >= 100 or not converted.steps:
        to_stderr(f"The final code:\n{converted.code}")
