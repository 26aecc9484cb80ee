"""Which Python code has run during a capture, rewritten or not: what it could have read is guarded."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

import torch

from stillgraph.core.faults import ends_capture
from stillgraph.core.files import is_our_module, is_torch
from stillgraph.polyfills.given import GIVEN
from stillgraph.trace.code.frames import stack


@dataclass(frozen=True)
class Calls:
    """Which calls of functions of Python's, written in C, somebody wants to know of.

    Attributes:
        functions: those of modules.
        kinds: of objects, whose methods are meant.
        tell: is told before such a call, and by which frame.
    """

    functions: frozenset[Any]
    kinds: tuple[type, ...]
    tell: Callable[[FrameType, Any], None]


@dataclass(frozen=True)
class _Looking:
    """What a trace function stands in the place of: of the thread, and of frames."""

    before: Any
    frames: list[tuple[FrameType, Any]]


class _Paused:
    """A pause of the noting; a class, for contexts of generators make calls of their own, which are noted."""

    __slots__ = ("_code", "_watching")

    def __init__(self, code: ExecutedCode) -> None:
        self._code = code

    def __enter__(self) -> None:
        self._watching = self._code.pause()

    def __exit__(self, *error: object) -> None:
        self._code.resume(self._watching)


class ExecutedCode:
    """Collects the code objects that run in this thread, with the namespaces they run in.

    Attributes:
        codes: by code object, the globals of a function that has it.
        reaching: told before a function that may change what is outside the program is called, and by which frame.
        beginning: told before code that may read the world runs for the first time, by its frame.
        waiting: told of code each time before it runs, by its frame, for as long as it says that it has to be.
        calling: which calls somebody wants to know of; None for none.
        giving: told of what code that is not rewritten gives for a special method, of which Python makes a number, a
            text or a length, by its frame.
        hashing: told of a tensor before it is looked up as a key, or becomes one or an element of a set.
        hashed: the tensors that were keys, elements of a set, or asked for their ids: told by identity, that is.
        refused: the first error by which somebody who was told ended the capture, or had it begin anew. It is raised in
            code that may have handlers of its own, for whatever it likes.
    """

    reaching: Callable[[FrameType], None] | None = None
    beginning: Callable[[FrameType], None] | None = None
    waiting: Callable[[FrameType], bool] | None = None
    calling: Calls | None = None
    giving: Callable[[FrameType, Any], None] | None = None
    hashing: Callable[[torch.Tensor], None] | None = None

    def __init__(self) -> None:
        self.codes: dict[CodeType, dict[str, Any]] = {}
        # By id, for a code object's hash is worked out anew each time, and its values keep it alive:
        self._known: dict[int, CodeType] = {}  # those of `codes`, of this package, or called by the garbage collector
        self._receivers: dict[int, tuple[type, bool]] = {}  # classes, and whether their methods are in `calling`
        self._at_service: dict[tuple[int, int], tuple[CodeType, CodeType]] = {}  # called for it or torch, and by what
        self.hashed: list[torch.Tensor] = []
        self.refused: BaseException | None = None
        self._raised = 0  # how often in such code
        self._looking: _Looking | None = None
        self._watching = False
        self._noting: Any = None

    def ran(self, code: CodeType) -> bool:
        """Whether code has run by itself, rather than step by step in the interpreter."""
        return id(code) in self._known

    @property
    def is_watching(self) -> bool:
        """Whether code of the user's is being run, and nothing of torch's on its account."""
        return self._watching

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Collect in the body. A profiler that is running goes without what happens there."""
        before = sys.getprofile()
        self._noting = self._note  # one object: Python calls it without a reference, and code may pause it just then
        sys.setprofile(self._noting)
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            self._look_no_more()
            resume = getattr(before, "enable", None)  # cProfile's profiler is no function before Python 3.12
            resume() if resume is not None else sys.setprofile(before)
            self._noting = None

    def pause(self) -> bool:
        """Collect nothing until `resume`; whether it collected before. Torch's own code makes thousands of calls."""
        if self._watching:
            sys.setprofile(None)
            self._watching = False
            return True
        return False

    def resume(self, watching: bool) -> None:
        """End a `pause`, given what it returned."""
        if watching:
            self._watching = True
            sys.setprofile(self._noting)

    def paused(self) -> AbstractContextManager[object]:
        """In the body nothing is noted: what runs there is at the capture's service, whatever it calls."""
        return _Paused(self)

    def noted(self, error: BaseException) -> BaseException:
        """An error that is about to be raised in code which is not rewritten: `require_none_refused` remembers it."""
        if self.refused is None and ends_capture(error):
            self.refused = error
        return error

    def require_none_refused(self) -> None:
        """To be called where code that is not rewritten has ended, by whatever it gives or raises.

        Raises:
            BaseException: what was refused there, whose handlers have kept it: they are for errors of their own.
        """
        held = self.refused
        if held is not None:
            try:
                raise held.with_traceback(None)
            finally:
                del held  # whose traceback leads here

    def _go_on_behind(self, frame: FrameType) -> None:
        """Watch the handlers of what is about to be raised in a frame: Python drops a profile function that raises.

        A trace function stays. The frame that the exception comes to tells it, and it puts back the other.
        """
        self._raised += 1
        if self._watching and self._looking is None and self._raised < _MOST:
            frames = [each for each in (frame, frame.f_back) if each is not None]
            self._looking = _Looking(sys.gettrace(), [(each, each.f_trace) for each in frames])
            for each in frames:
                each.f_trace = self._look
            sys.settrace(self._look)

    def _look(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            self._look_no_more()
            if self._watching:
                sys.setprofile(self._noting)

    def _look_no_more(self) -> None:
        looking, self._looking = self._looking, None
        if looking is not None:
            sys.settrace(looking.before)
            for frame, trace in looking.frames:
                frame.f_trace = trace

    def _require_silent(self, frame: FrameType) -> None:
        """To be called before something is logged or warned of.

        Raises:
            BaseException: what was refused before, which a handler of code that is not rewritten is about to tell of:
                Python will carry out all of it once more.
        """
        name = next((name for each in stack(frame) if not _is_standard(name := _module(each))), "")
        if not is_our_module(name) and _package(name) != "torch":
            self.require_none_refused()

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        try:
            if self.refused is not None and (argument is warnings.warn or frame.f_code is _LOGGING):
                self._require_silent(frame)
            if event == "call":
                code = frame.f_code
                if id(code) not in self._known:
                    self._note_call(code, frame)
            elif event == "c_call":
                kind = type(argument.__self__)
                if kind is ModuleType:
                    if argument in _REACHING and self.reaching is not None:
                        self.reaching(frame)
                    if self.calling is not None and argument in self.calling.functions:
                        self._note_c_call(frame, argument)
                elif self.calling is not None and (self._receivers.get(id(kind)) or self._note_receiver(kind))[1]:
                    self._note_c_call(frame, argument)
            elif event == "return" and frame.f_code.co_name in GIVEN and self.giving is not None:
                self.giving(frame, argument)
        except BaseException as error:
            self.noted(error)
            self._go_on_behind(frame)
            raise

    def _note_receiver(self, kind: type) -> tuple[type, bool]:
        """Whether the methods of a class are among the calls that somebody wants to know of."""
        wanted = self.calling is not None and issubclass(kind, self.calling.kinds)
        found = self._receivers[id(kind)] = kind, wanted
        return found

    def _note_c_call(self, frame: FrameType, function: Any) -> None:
        if self.calling is not None and not _is_of_collector(frame.f_code):
            self.calling.tell(frame, function)

    def _note_call(self, code: CodeType, frame: FrameType) -> None:
        if code is _HASH:
            if frame.f_back is not None and not is_torch(frame.f_back.f_code.co_filename):
                self.hashed.append(frame.f_locals["self"])
                if self.hashing is not None:
                    self.hashing(frame.f_locals["self"])
            return
        caller = frame.f_back
        called_by = code if caller is None else caller.f_code
        pair = id(code), id(called_by)
        if pair in self._at_service:
            return
        if is_our_module(_module(frame)) or _is_of_collector(code):
            self._known[id(code)] = code
            return
        if _is_for_user(frame):
            self.codes[code] = frame.f_globals
            if self.waiting is None or not self.waiting(frame):
                self._known[id(code)] = code
            if self.beginning is not None:
                self.beginning(frame)
        elif caller is not None and not _is_standard(_module(caller)):
            self._at_service[pair] = code, called_by  # to go down the stack at each of such calls takes long


def _is_of_collector(code: CodeType) -> bool:
    """Whether the garbage collector calls a function, whatever happens to run."""
    return any(getattr(each, "__code__", None) is code for each in gc.callbacks)


def _is_for_user(frame: FrameType) -> bool:
    """Whether it is not the standard library at the service of this package, or of torch.

    What the operators call, they call in the user's place; what they ask of abstract classes is their own affair. So is
    an import that happens on the way, for it happens once in a process.
    """
    here = _module(frame)
    if here in _ABSTRACT or _is_of_debugger(frame):
        return False
    caller = next((name for each in stack(frame) if not _is_standard(name := _module(each))), "")
    in_users_place = caller is here or caller.startswith(IN_USERS_PLACE)
    if not in_users_place and (is_our_module(caller) or _package(caller) == "torch"):
        return False
    # A capture may itself stand in a module that is being imported: what lies below it does not matter.
    in_capture = itertools.takewhile(lambda each: _module(each) != _CAPTURE, stack(frame))
    return all(_module(each) != _IMPORTING for each in in_capture)


def _is_of_debugger(frame: FrameType) -> bool:
    """Whether a frame belongs to a debugger that the user's code has called, not to one that it all runs under."""
    for each in stack(frame):
        name = _module(each)
        if is_our_module(name):
            return False
        if _package(name) in _DEBUGGERS:
            return True
    return False


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def is_of_named_tuple(code: CodeType, globals: Mapping[str, Any]) -> bool:
    """Whether code is the constructor of a named tuple, which the standard library has written."""
    return code.co_filename == "<string>" and str(globals.get("__name__")).startswith(_NAMED_TUPLE)


def _is_standard(module: str) -> bool:
    """Whether a module is the standard library's; the constructors of named tuples have one each, which it makes."""
    return _package(module) in _STANDARD_LIBRARY or module.startswith(_NAMED_TUPLE)


def _package(module: str) -> str:
    return module.partition(".")[0]


_STANDARD_LIBRARY = sys.stdlib_module_names
_DEBUGGERS = ("pdb", "bdb", "ipdb", "pudb", "pdbpp", "remote_pdb", "pydevd", "debugpy")
_IMPORTING = "importlib._bootstrap"
_CAPTURE = "stillgraph.trace.capture.capture"
IN_USERS_PLACE = (
    "stillgraph.operators.",  # of bytecode/, the rest prepares and stages: what it asks is its own affair
    "stillgraph.bytecode.handlers.",
    "stillgraph.bytecode.interpreter.interpreter",
    "stillgraph.bytecode.machine.iteration",
)
_MOST = 100  # a handler may try again for ever
_LOGGING = logging.Logger.handle.__code__
_NAMED_TUPLE = "namedtuple_"
_ABSTRACT = frozenset({"abc", "_collections_abc", "collections.abc"})  # the second calls itself the third
_HASH = torch.Tensor.__hash__.__code__
_REACHING = frozenset(
    {
        *(open, sys.audit),
        *(
            getattr(os, name)
            for name in (
                *("open", "remove", "unlink", "rename", "replace", "mkdir", "rmdir", "chmod", "chown", "truncate"),
                *("utime", "symlink", "link", "chdir", "kill", "killpg", "system", "execv"),
                *("execve", "fork", "forkpty", "posix_spawn", "posix_spawnp"),
            )
            if hasattr(os, name)
        ),
    }
)
"""Functions of Python's, written in C, that change what is outside; torch's and numpy's own are not among them."""
