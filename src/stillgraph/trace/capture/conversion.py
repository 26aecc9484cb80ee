"""Conversion of functions: which a capture rewrites before they are called, and how it finds from them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from stillgraph.core.dataclasses import has_steps
from stillgraph.core.files import (
    is_container_class,
    is_distributions,
    is_library,
    is_ours,
    is_polyfill,
    is_standard_library,
    is_torch,
)
from stillgraph.core.rewritten import resumes
from stillgraph.trace.code.frames import surrounds_with_mode, unwrapped
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.effects import audits

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session


class Conversion:
    """What a capture does with functions that it may rewrite.

    Args:
        capture: the capture.
        convert: as of `Session`.
        turn_inside_out: likewise.
        skipped: whether a function is left as it is because the user says so.

    Attributes:
        generators: of rewritten code, with their twins.
        managers: those of `contextlib.contextmanager` that were made, with the user's function of each.
        made_functions: by the code that is captured.
        made_and_run: the code of those of them that were called, not only by autograd.
    """

    def __init__(
        self,
        capture: Session,
        convert: Callable[[FunctionType], FunctionType],
        turn_inside_out: Callable[[FunctionType, bool], tuple[FunctionType, str] | None],
        skipped: Callable[[Any], bool],
    ) -> None:
        self._capture = capture
        self._convert, self._turn_inside_out, self.skipped = convert, turn_inside_out, skipped
        self.generators: dict[FunctionType, tuple[FunctionType, str]] = {}
        self.managers: weakref.WeakKeyDictionary[Any, FunctionType] = weakref.WeakKeyDictionary()
        self.made_functions: weakref.WeakSet[FunctionType] = weakref.WeakSet()
        self.made_and_run: set[CodeType] = set()

    def convert(self, function: FunctionType) -> FunctionType:
        """The rewritten form of a function."""
        code = function.__code__
        if function not in self.made_functions and not resumes(code) and not is_polyfill(code.co_filename):
            self._find_from(function)
        return self._convert(function)

    def _find_from(self, function: FunctionType) -> None:
        """Walk from a function that is about to run; the walk is not watched: it may be a long one."""
        with self._capture.executed.paused():
            self._capture.finder.add_function(function)

    def resumes(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """To be called before a function is gone on with in its midst: what its code mentions it may read.

        Its own variables, and those of functions around it, are among the arguments.
        """
        with self._capture.executed.paused():
            self._capture.finder.add_code(code, namespace)
            self._capture.finder.complete()
        self._capture.executed.codes[code] = namespace

    def turn_inside_out(self, generator: FunctionType, manages: bool = False) -> tuple[FunctionType, str] | None:
        """A generator as a function that hands out what it yields, and its parameter for that; None if it has none.

        ``manages`` says that it is the function of a context manager.
        """
        if generator not in self.made_functions and not is_polyfill(generator.__code__.co_filename):
            self._find_from(generator)
        return self._turn_inside_out(generator, manages)

    def is_wanted(self, method: Any) -> bool:
        """Whether a method has to be converted although it is torch's."""
        return getattr(getattr(method, "__func__", method), "__code__", None) in self._capture.knowledge.convert

    def wants(self, function: FunctionType) -> bool:
        """Whether a function is rewritten before it is called: always user code, a library's only where needed."""
        code = function.__code__
        file = code.co_filename
        if self._capture.is_rewritten(code) or is_ours(file):
            return False
        if self.skipped(function):
            return False
        if code in self._capture.knowledge.convert or has_steps(code) or is_polyfill(file):
            return True
        if is_distributions(file):
            return self._capture.knowledge.distributions
        if self._capture.for_segments and surrounds_with_mode(code):
            inner = unwrapped(function)
            return inner is function or not is_library(inner.__code__.co_filename)  # `generate` is one call
        if is_torch(file) or (is_standard_library(file) and not is_container_class(file)):
            return False
        if self._capture.in_arm or self._capture.knowledge.convert_libraries or not is_library(file):
            return True
        is_of_project = audits.is_of_users_project  # code from a prompt, say
        return self._capture.for_segments and is_of_project(code, function.__globals__)

    def before_distribution(self) -> None:
        """To be called before code of `torch.distributions` runs: begin anew with that converted."""
        if not self._capture.knowledge.distributions:
            raise Restart("distributions", None)
