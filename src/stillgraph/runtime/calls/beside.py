"""A program beside eager PyTorch, in calls that it was not captured for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from stillgraph.program.program import Program
from stillgraph.runtime.calls.cache import CapturedCall, call_structure
from stillgraph.runtime.calls.shadow import ShadowCheck
from stillgraph.runtime.comparing.outcomes import Outcome
from stillgraph.runtime.native.backends import resolve_backend
from stillgraph.runtime.native.native import lower
from stillgraph.runtime.native.results import compile_result
from stillgraph.runtime.native.settling import compile_settled, settles

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


@dataclass(frozen=True)
class Beside:
    """A program and its function, each of which is run on a copy of all that a call can reach.

    Attributes:
        call: the program, whose guards nobody asks.
        check: runs both.
    """

    call: CapturedCall
    check: ShadowCheck

    @classmethod
    def of(
        cls, program: Program, function: Any, args: Args, kwargs: Kwargs, originals: Callable[[], Any]
    ) -> Beside:
        """A program of ``function`` for calls of the form of this one; in blocks of ``originals`` nothing is static."""
        run = lower(program, None).run
        settled = compile_settled(program, run, nullcontext) if settles(program) else None
        finish = compile_result(program.result, program.effects)
        call = CapturedCall(program, call_structure(args, kwargs), _takes_none, run, finish, settled)
        check = ShadowCheck(program.name, function, resolve_backend("eager"), _lowered, _carried_out, originals)
        return cls(call, check)

    def outcomes(self, args: Args, kwargs: Kwargs) -> tuple[Outcome, Outcome]:
        """What the program makes of a call, and what eager PyTorch does.

        Raises:
            CheckError: that cannot be compared (SG503).
        """
        return self.check.outcomes(self.call, args, kwargs)

    def of_program(self, args: Args, kwargs: Kwargs) -> Outcome:
        """What the program makes of a call.

        Raises:
            CheckError: it cannot be run on copies (SG503).
        """
        return self.check.of_program(self.call, args, kwargs)


def _lowered(program: Program) -> Any:
    return lower(program, None).run


def _takes_none(args: Args, kwargs: Kwargs) -> None:
    return None


def _carried_out(call: CapturedCall, inputs: Args, args: Args, kwargs: Kwargs, function: Any) -> Any:
    """Run a program and carry out its effects; what fails is not called in plain PyTorch."""
    if call.settled is not None:
        return call.settled(inputs, args, kwargs)
    try:
        outputs = call.run(*inputs)
    except BaseException as error:  # of any kind: an operation's, or the user's own
        if not call.fail(error, args, kwargs):
            call.stop(error, args, kwargs)
        raise
    return call.finish(outputs, args, kwargs)
