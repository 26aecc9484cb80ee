"""Code that is not rewritten, while a capture runs it: a library's, what Python itself calls, what is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_dependency, is_our_module, is_ours, is_package, is_torch
from stillgraph.trace.code.chance import is_by_chance
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.code.uninterpreted import is_debuggers, may_ask, may_write, properties_beside, way_of
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.effects import audits, context_variables, locks, threads
from stillgraph.trace.effects.locks import WRITTEN_IN_C
from stillgraph.trace.values.errors import refuse_given
from stillgraph.trace.values.numbers import Staged

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session

SPEAKING = frozenset({print, input})
PAIRED = (*WRITTEN_IN_C, ContextVar)
"""Objects of which each call undoes what it does, by another method."""

_STAND_INS = (torch.Tensor, Staged, Unjoined)


class UnseenCode:
    """What a capture makes of such code: it is asked before the code runs, and before it does what matters outside.

    Args:
        capture: the capture.

    Attributes:
        is_left_alone: whether a function is being called that the user wants to be left as it is.
        has_run: whether code of the user's was run that Python itself has called.
        can_follow_methods: whether another front end would follow it.
        told_of_code: told of such code, and of its globals, before it runs for the first time.
        told_of_package: the same, of a package's.
    """

    def __init__(self, capture: Session) -> None:
        self._capture = capture
        self.is_left_alone = False
        self.has_run = False
        self.can_follow_methods = False
        self.told_of_code: Callable[[CodeType, dict[str, Any]], None] | None = None
        self.told_of_package: Callable[[CodeType, dict[str, Any]], None] | None = None

    def before_paired(self, paired: Any, method: str) -> None:
        """To be called before code that is not rewritten calls a method of one of `PAIRED`.

        Raises:
            Restart: libraries have to be converted, which shows more.
            CaptureError: it gives back a lock, or resets a variable, that the capture has not taken, or set.
        """
        if isinstance(paired, ContextVar):
            context_variables.before_unseen(self._capture, paired, method)
        elif self._capture.locks.is_given_back_unseen(paired, method):
            self._capture.before_unseen("a lock is given back that was taken before")

    def before_lock(self, frame: FrameType, lock: Any, method: str) -> None:
        """To be called before code calls a method of a lock; raises as `before_paired`, or `Locks.before`."""
        name = frame.f_globals.get("__name__", "")
        if name == locks.__name__ or not self._capture.locks.before(lock, method) or is_our_module(name):
            return  # the first only asks
        own = method == "release" or audits.is_of_users_project(frame.f_code, frame.f_globals)  # the user's blocks
        if own and audits.is_users(frame) and not self.is_left_alone:
            self.before_paired(lock, method)

    @contextmanager
    def left_alone(self) -> Iterator[None]:
        """In the body code runs that the user wants to be left as it is: what it does outside is its own affair."""
        outer, self.is_left_alone = self.is_left_alone, True
        try:
            yield
        finally:
            self.is_left_alone = outer

    def before_code(self, frame: FrameType) -> None:
        """To be called before code runs for the first time that Python itself calls: what it mentions is found then.

        Raises:
            Restart: the code is the user's, and a front end can follow it.
        """
        code = frame.f_code
        if self._capture.is_rewritten(code):
            return
        if is_dependency(code.co_filename):
            if self.told_of_package is not None and is_package(code.co_filename):
                self.told_of_package(code, frame.f_globals)
            return
        if not self.is_left_alone:
            self._follow(frame)
        with self._capture.executed.paused():
            self._capture.finder.add_code(code, frame.f_globals)
            self._capture.finder.complete()
            if self.told_of_code is not None:
                self.told_of_code(code, frame.f_globals)
        self.has_run = True

    def _follow(self, frame: FrameType) -> None:
        """Begin anew where rewritten code has led to code that it leaves to Python: by an attribute, or an operator."""
        if not self.can_follow_methods or self._capture.knowledge.follow_methods:
            return
        name = way_of(frame, self._capture.is_rewritten)
        if name and name not in self._capture.knowledge.watch:
            raise Restart("convert", ({frame.f_code}, {name, *properties_beside(frame)}))
        if name is not None:
            self.follow_all()

    def before_waiting(self, frame: FrameType) -> bool:
        """To be called before code runs that Python itself calls.

        Returns:
            Whether it is to be called each time.

        Raises:
            CaptureError: it has to do with other threads, or only some path comes to it and it may change an object.
        """
        if self.is_left_alone:
            return False
        is_meant = audits.is_users(frame) and threads.before_unseen(frame, self._capture.elsewhere)
        return self._before_called_back(frame) or is_meant

    def _before_called_back(self, frame: FrameType) -> bool:
        """As `before_waiting`, of what the code may write or be misled by."""
        code = frame.f_code
        writes, asks = may_write(code), may_ask(code)
        is_seen = self._capture.is_rewritten(code) or not audits.is_called_back(frame) or self.is_recorded(frame)
        if is_seen or not (writes or asks) or is_debuggers(frame, self._capture.is_rewritten):
            return False
        if (writes and self._capture.region is not self._capture.root) or (asks and self._capture.has_optionals):
            self._follow(frame)
            does = "it writes on one path" if writes else "it may decide by what is None"
            what = f"{code.co_name} is called by Python's own code, and {does}"
            raise refuse("SG305", what, location=here(), hint="Make the call in the static function itself.")
        return True

    def before_act(self, frame: FrameType, function: Any) -> None:
        """To be called before code that is not rewritten calls a function of Python's.

        Raises:
            CaptureError: it is a print, or by chance; before that `Restart`, where the code can be followed.
        """
        if isinstance(getattr(function, "__self__", None), WRITTEN_IN_C):
            self.before_lock(frame, function.__self__, function.__name__)
            return
        speaks = function in SPEAKING
        if self.is_left_alone or (speaks and is_dependency(frame.f_code.co_filename)):
            return
        if is_our_module(frame.f_globals.get("__name__", "")) or not audits.is_users(frame):
            return
        what = f"{function.__name__} is called by code that is not rewritten"
        if isinstance(getattr(function, "__self__", None), ContextVar):
            self.before_paired(function.__self__, function.__name__)
        elif is_by_chance(frame, function):
            self._capture.before_unseen(what)
        elif speaks:
            self.before_method()
            raise refuse("SG305", what, location=here(), hint="Make the call in the static function itself.")

    def given(self, frame: FrameType, value: Any) -> None:
        """To be called where code gives something of which Python's own code makes a number, a text or a length.

        That takes nothing that stands for a value, and says so in words of its own, or in none: torch takes another
        overload, and ``bytes`` what the object iterates over.

        Raises:
            CaptureError: it is known in the run only; before that `Restart`, where the code can be followed.
        """
        code = frame.f_code
        if not issubclass(type(value), _STAND_INS) or self._capture.is_rewritten(code):
            return
        if is_torch(code.co_filename) or is_ours(code.co_filename):
            return
        if audits.is_users(frame):
            self.follow_all()
            raise refuse_given(code.co_name)

    def before_method(self) -> None:
        """Begin anew with the methods followed that Python calls for operators on users' objects."""
        if self.has_run:
            self.follow_all()

    def follow_all(self) -> None:
        """Begin anew with a front end that leaves no operator to Python, where there is one and it is not in use."""
        if self.can_follow_methods and not self._capture.knowledge.follow_methods:
            raise Restart("follow_methods", None)

    def is_recorded(self, frame: FrameType | None) -> bool:
        """Whether a frame belongs to a function with a gradient of its own, which the run calls as well."""
        while frame is not None and frame.f_code is not type(self._capture).run_function.__code__:
            frame = frame.f_back
        return frame is not None
