"""Calls of a `Program` by itself: its guards are checked, and nothing is captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stillgraph.program.program import Program, callable_of
from stillgraph.program.sources import Argument
from stillgraph.runtime.calls.cache import CapturedCall, call_structure
from stillgraph.runtime.calls.static_function import StaticFunction
from stillgraph.runtime.guards.checking import compile_guards
from stillgraph.runtime.guards.explaining import explain_miss
from stillgraph.runtime.native.native import lower
from stillgraph.runtime.native.repeating import regions_that_act
from stillgraph.runtime.native.results import compile_result
from stillgraph.runtime.native.settling import compile_settled, settles
from stillgraph.runtime.native.tracebacks import presenting


@callable_of.defined
def _callable_of(program: Program) -> Callable[..., Any]:
    """A function ``(args, kwargs)`` that runs a program as plain PyTorch runs its operations."""
    exclusive, run = StaticFunction.captures.exclusive, lower(program, None).run
    call = CapturedCall(
        program,
        call_structure((), {}),
        compile_guards(program.inputs, program.guards),
        run,
        compile_result(program.result, program.effects),
        compile_settled(program, run, exclusive) if settles(program) else None,
        regions_that_act(program),
    )
    keys = frozenset(_keys(program))

    @presenting
    def called(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = {*range(len(args)), *kwargs}
        if given != keys:
            raise ValueError(f"{program.name} takes {_told(keys)}, not {_told(given)}")
        inputs = call.check(args, kwargs)
        if inputs is None:
            why = explain_miss(program.guards, args, kwargs, program.inputs)
            raise ValueError(f"{program.name} was captured for another call: {why}")
        if call.settled is not None:
            return call.settled(inputs, args, kwargs)
        try:
            outputs = call.run(*inputs)
        except BaseException as error:  # of any kind: what was written before it is there, as in eager PyTorch
            with exclusive():
                if not call.fail(error, args, kwargs):
                    call.stop(error, args, kwargs)
            raise
        with exclusive():
            return call.finish(outputs, args, kwargs)

    return called


def _keys(program: Program) -> Iterator[int | str]:
    """The positions and names of all arguments of the call that was captured: each has a guard, or is an input."""
    for each in (*program.guards, *program.inputs):
        source: Any = getattr(each, "source", None)
        while source is not None:
            if isinstance(source, Argument):
                yield source.key
            source = getattr(source, "base", None)


def _told(keys: set[int | str] | frozenset[int | str]) -> str:
    places = sum(isinstance(key, int) for key in keys)
    names = sorted(key for key in keys if isinstance(key, str))
    positions = f"{places} argument{'' if places == 1 else 's'} by position"
    return f"{positions} and {', '.join(names)}" if names else positions
