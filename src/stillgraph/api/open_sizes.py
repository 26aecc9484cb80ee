"""What a file takes of a dimension that was declared open: every size that the function takes, or it is not saved.

A program may rely on conditions on sizes that hold for the example. Most are torch's alone, such as that a size is not
1, and without them the program still does as the function. So it is tried without them, on sizes that it was not made
for, beside eager PyTorch.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from stillgraph.api.captures import function_of, parameter_names
from stillgraph.core.diagnostics import CheckError, refuse
from stillgraph.core.shown import brief_error
from stillgraph.core.time_limit import TimeIsUp, time_limit
from stillgraph.deploy.description.other_sizes import (
    OTHER_SIZES,
    ROUNDS,
    Other,
    Place,
    Served,
    Sizes,
    fitting_sizes,
    open_sizes,
    other_sizes,
    resized,
)
from stillgraph.deploy.python.variants import Change, changes_for, is_within
from stillgraph.program.guards import SizeGuard
from stillgraph.program.operations import act
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument
from stillgraph.runtime.calls.beside import Beside
from stillgraph.runtime.calls.static_function import StaticFunction
from stillgraph.runtime.comparing.outcomes import differences
from stillgraph.settings import enable_to_static

Args = tuple[Any, ...]
Kwargs = dict[str, Any]

_SECONDS = 20.0  # that a call with other sizes may take
_MOST_ENDLESS = 2  # calls that took longer, after which no other sizes are tried


def of_every_size(program: Program, target: Any, args: Args, kwargs: Kwargs) -> tuple[Program, tuple[Served, ...]]:
    """A program without the conditions on sizes that it does not need, and some sizes that it serves.

    Where the function raises an exception for the sizes that a condition rules out, or nothing was found out, it stays.
    So does each condition of a program that does something to the world outside: it is not run to find out.

    Args:
        program: as captured, to be kept in a file.
        target: what was captured.
        args, kwargs: the call.

    Raises:
        CaptureError: for some sizes the program does something else than the function.
    """
    function, args = function_of(target, args)
    example = open_sizes(program, args, kwargs)
    guards = [guard for guard in program.guards if isinstance(guard, SizeGuard)]
    acts = any(node.target is act for region in program.regions for node in region.graph.nodes)
    related = {(source, dim) for guard in guards for _, source, dim in guard.sizes}
    if acts or not example or not related <= example.keys():
        return program, ()
    names = _Names(parameter_names(function), example)
    trial = _Trial(Beside.of(program, function, args, kwargs, functools.partial(enable_to_static, False)), args, kwargs)
    served: dict[Other, None] = {}
    needed: list[tuple[Other, str]] = []
    for other, found in _tried(program, example, trial):
        if found.kind == "differs":
            raise _refusal(program, other, found.why, names)
        if found.kind == "same":
            served[other] = None
        elif found.kind == "refuses":
            needed.append((other, found.why))
    needless = frozenset(guard for other in served for guard in other.broken)
    for other, why in needed:
        if other.broken <= needless:
            raise _refusal(program, other, why, names)
    kept = (guard for guard in program.guards if not isinstance(guard, SizeGuard) or guard not in needless)
    return replace(program, guards=tuple(kept)), tuple(Served(each.sizes, names.changed(each.sizes)) for each in served)


def _tried(program: Program, example: Sizes, trial: _Trial) -> Iterator[tuple[Other, _Found]]:
    """What shows with a few sizes that a program was made for, and with others until no condition has to be tried."""
    left = {guard: None for guard in program.guards if isinstance(guard, SizeGuard)}
    endless = 0
    for changes in (None, *ROUNDS):
        others = other_sizes(program, example, left.keys(), changes) if changes else fitting_sizes(program, example)
        for other in others:
            found = trial.of(other.sizes)
            yield other, found
            endless += found.kind == "endless"
            if endless == _MOST_ENDLESS:
                return
            if found.kind == "same":
                left = {guard: None for guard in left if guard not in other.broken}


@dataclass(frozen=True)
class _Names:
    """What people call the dimensions of a call: ``x.shape[0]``."""

    parameters: list[str]
    example: Sizes

    def of(self, place: Place) -> str:
        """One of them."""
        source, dim = place
        key = source.key if isinstance(source, Argument) else source
        name = self.parameters[key] if isinstance(key, int) and key < len(self.parameters) else key
        return f"{name}.shape[{dim}]"

    def changed(self, sizes: Sizes) -> str:
        """What sizes differ from the example's: ``x.shape[0] = 1 and y.shape[0] = 1``."""
        news = {place: size for place, size in sizes.items() if size != self.example[place]}
        return " and ".join(f"{self.of(place)} = {size}" for place, size in news.items())

    def condition(self, guard: SizeGuard) -> str:
        """A condition on sizes."""
        text = guard.expression
        for name, source, dim in guard.sizes:
            text = re.sub(rf"\b{re.escape(name)}\b", self.of((source, dim)), text)
        return text


def _refusal(program: Program, other: Other, why: str, names: _Names) -> BaseException:
    conditions = sorted(map(names.condition, other.broken), key=len)
    made = f"with the sizes of the example, this is a program for {conditions[0]}; " if conditions else ""
    message = f"{made}for {names.changed(other.sizes)}, {why}"
    return refuse("SG501", message, location=program.location, hint=OTHER_SIZES)


# ---- trials
@dataclass(frozen=True)
class _Found:
    """What a call with other sizes showed.

    Attributes:
        kind: whether the program does the same as the function, differs, gives a value where the function raises an
            exception and so ``"refuses"`` the call. Of an ``"endless"`` call, as of others, nothing is known.
        why: in words.
    """

    kind: Literal["same", "differs", "refuses", "endless", "unknown"]
    why: str = ""


_UNKNOWN = _Found("unknown")


@dataclass(frozen=True)
class _Trial:
    """Calls with other sizes than the example's."""

    beside: Beside
    args: Args
    kwargs: Kwargs

    def of(self, sizes: Sizes) -> _Found:
        """What shows with some sizes: with the values of the example, and with others where these decide the path."""
        first = self._called(*_resized(self.args, self.kwargs, sizes, None))
        if first.kind != "same":
            return first
        found = (self._called(*_resized(self.args, self.kwargs, sizes, change)) for change in self._changes(sizes))
        return next((each for each in found if each.kind == "differs"), first)

    def _called(self, args: Args, kwargs: Kwargs) -> _Found:
        try:
            with StaticFunction.captures.capture(), time_limit(_SECONDS):
                program, eager = self.beside.outcomes(args, kwargs)
        except TimeIsUp:
            return _Found("endless")
        except CheckError:
            return _UNKNOWN
        if program.error is not None and eager.error is not None:
            return _UNKNOWN
        if eager.error is not None:
            return _Found("refuses", f"the function raises {brief_error(eager.error)}")
        found = differences(program, eager)
        return _Found("differs", found[0]) if found else _Found("same")

    def _changes(self, sizes: Sizes) -> Iterator[Change]:
        def outcome(change: Change | None) -> Any:
            args, kwargs = _resized(self.args, self.kwargs, sizes, change)
            found = self.beside.of_program(args, kwargs)
            return found.error or found

        for change in changes_for(self.beside.call.program, functools.partial(outcome, None)):
            if is_within(change, functools.partial(outcome, change)):
                yield change


def _resized(args: Args, kwargs: Kwargs, sizes: Sizes, change: Change | None) -> tuple[Args, Kwargs]:
    """A call with other sizes, and maybe with other values."""

    def changed(value: Any) -> Any:
        if change is None or type(value) is not torch.Tensor or not value.is_floating_point():
            return value
        return change.apply(value.detach()).requires_grad_(value.requires_grad)

    args, kwargs = resized(args, kwargs, sizes)
    return tuple(map(changed, args)), {name: changed(value) for name, value in kwargs.items()}
