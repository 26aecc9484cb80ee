"""``to_static(..., full_graph=False)``: programs for what can be one, with Python in between for the rest."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch

from stillgraph.api import later
from stillgraph.api.static import Static
from stillgraph.core.diagnostics import refuse
from stillgraph.program.program import Program
from stillgraph.runtime.calls.bound_function import BoundStaticFunction
from stillgraph.runtime.calls.cache import CacheInfo
from stillgraph.runtime.native.tracebacks import present, presenting
from stillgraph.settings import SETTINGS
from stillgraph.trace.code.frames import mode_decorated
from stillgraph.trace.code.options import Options

NO_WHOLE = (
    "A check compares the program of a whole call with eager PyTorch, and without a full graph there is none: "
    "check the functions that it calls, each by itself."
)


def _without_modes(original: Any) -> tuple[list[Any], Any]:
    """The modes of torch's that decorate a function (``@torch.no_grad()``), the outermost first; what they surround.

    Entered around the call, they need not be among the blocks that a program can end in.
    """
    modes: list[Any] = []
    inner = original
    while isinstance(inner, FunctionType) and (found := mode_decorated(inner)) is not None:
        mode, inner = found
        modes.append(mode)
    return (modes, inner) if isinstance(inner, FunctionType) else ([], original)


class Partial(Static):
    """A static function that leaves to Python what cannot be in a program."""

    def __init__(self, original: Any, *, strict: bool, **options: Any) -> None:
        super().__init__(original, **options)
        self._modes, self._inner = _without_modes(self.original)
        self._made_from = options
        self._strict = strict
        SETTINGS.static_functions.discard(self)  # its segments are there
        if _is_awaited(self.original):
            _mark_awaited(self)

    @functools.cached_property
    def plan(self) -> later.Plan:
        """Of how the calls so far are made; its making loads the front ends."""
        return later.Plan(self._name, self._inner, self._strict, self._made_from)

    def is_made_with(self, backend: Any, dynamic: bool | None, cache_size: int, strict: bool) -> bool:
        """Whether it is, still, what these options, and no others, would make of its original."""
        given = (None, backend, Options(dynamic=dynamic), cache_size, 0)
        return not self._rolled_back and self._strict == strict and self._made_with[1:] == given

    def __reduce__(self) -> Any:
        made = super().__reduce__()
        return made if isinstance(made, str) else (_made, (self._strict, *made[1]))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call it like the original."""
        try:
            if self._rolled_back or self._is_capturing():
                return self._function(*args, **kwargs)
            plan = self.plan
            if plan.gave_up is not None or plan.left is not None:
                return self._function(*args, **kwargs)
            if not self._modes:
                return plan(args, kwargs)  # whose segments ask for the global switch
            with contextlib.ExitStack() as around:
                for mode in self._modes:
                    around.enter_context(mode())
                return plan(args, kwargs)
        except BaseException as error:
            present(error)
            raise

    @property
    def programs(self) -> tuple[Program, ...]:
        """The cached programs, segment by segment."""
        return tuple(program for part in self.plan.segments for program in part.programs)

    @property
    def visits(self) -> tuple[tuple[int, ...] | None, ...]:
        """For each of `programs`, how often each of its regions began."""
        return tuple(visits for part in self.plan.segments for visits in part.visits)

    def forget_visits(self) -> None:
        """Have `visits` count from zero again."""
        for part in self.plan.segments:
            part.forget_visits()

    def cache_info(self) -> CacheInfo:
        """Hits, misses, programs and evictions of all segments together, and the size of each one's cache."""
        found = [part.cache_info() for part in self.plan.segments]
        hits, misses, programs, evictions, _ = map(sum, zip(*found))
        return CacheInfo(hits, misses, programs, evictions, found[0].size)

    @presenting
    def verify(self, /, *args: Any, **kwargs: Any) -> None:
        """Not for this kind: there is no program of the whole call to be compared with eager PyTorch.

        Raises:
            CheckError: in any case (SG503).
        """
        raise refuse("SG503", f"{self._name} is static without a full graph", hint=NO_WHOLE)

    @property
    def code(self) -> str:
        """What the calls so far have become: one function in Python, of programs and of the steps between them."""
        return self.plan.explanation(self._name).code

    def explain(self, /, *args: Any, **kwargs: Any) -> Any:
        """Say what has become of the calls so far, or of one call what it would be as a whole.

        Args:
            args, kwargs: of a call, which is captured for this and not run: all of it, so that it is refused for what
                ends a program. Without any: what the calls so far have become, see `report.plan.PlanExplanation`:
                subgraphs, breaks with their reasons, and how they follow.
        """
        return super().explain(*args, **kwargs)

    def _explained(self, args: tuple[Any, ...], kwargs: dict[str, Any], receivers: int) -> Any:
        if kwargs or len(args) > receivers:
            return super()._explained(args, kwargs, receivers)
        return self.plan.explanation(self._name)

    def explain_miss(self, /, *args: Any, **kwargs: Any) -> str | None:
        """Say why the first segment of a call would be captured anew; None where a program fits."""
        return self.plan.explain_miss(args, kwargs)

    def rollback(self) -> Any:
        """Go back to plain PyTorch, see `StaticFunction.rollback`."""
        for part in self.plan.segments:
            part.rollback()
        return super().rollback()


def _is_awaited(original: Any) -> bool:
    """Whether `inspect` takes a function for one whose calls are awaited."""
    return isinstance(original, (FunctionType, MethodType, functools.partial)) and inspect.iscoroutinefunction(original)


def _mark_awaited(static: Any) -> None:
    """Have `inspect` and `asyncio` take a static function for a coroutine function, as what it was made from."""
    mark = getattr(inspect, "markcoroutinefunction", None)  # from Python 3.12 on
    if mark is not None:
        mark(static)
    else:
        static._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]  # all that 3.11 asks for


def _made(strict: bool, *made_with: Any) -> Partial:
    original, input_spec, backend, options, cache_size, check = made_with
    settings = {"input_spec": input_spec, "backend": backend, "options": options}
    return Partial(original, strict=strict, **settings, cache_size=cache_size, check=check)


# ---- what `symbolic_trace` has made
@dataclass(frozen=True)
class _Kept:
    """What was made of a function, as an attribute of it; nothing of that goes into a file with the function."""

    static: Partial | None = None

    def __reduce__(self) -> Any:
        return _Kept, ()


_TRACED = "__stillgraph_traced__"


def keep(function: FunctionType, made: Partial) -> None:
    """Keep what was made of a function with it."""
    setattr(function, _TRACED, _Kept(made))


def forget(function: FunctionType) -> None:
    """Undo `keep`."""
    vars(function).pop(_TRACED, None)


def kept_of(target: Any) -> Partial | None:
    """The static function that a target is, has, or was made into; None where there is none."""
    if isinstance(target, FunctionType):
        known = vars(target).get(_TRACED)  # of another function, where `functools.wraps` has copied it
        found = known.static if isinstance(known, _Kept) else None
        return found if found is not None and found.original is target else None
    held = target.forward if isinstance(target, torch.nn.Module) else target
    if isinstance(held, BoundStaticFunction):
        is_own = held is target or held.__self__ is target
        held = held.__func__ if is_own else None
    return held if isinstance(held, Partial) else None
