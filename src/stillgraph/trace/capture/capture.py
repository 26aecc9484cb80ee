"""Capture: one call of a function, run on fake tensors, becomes a `Program`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextvars import copy_context
from types import MappingProxyType
from typing import Any

from stillgraph.core.diagnostics import CaptureError, InitialisingCall, InternalError, MisreadError, StateLostError
from stillgraph.core.faults import is_own, unwinds
from stillgraph.core.tracebacks import let_go
from stillgraph.program.facts.conclusions import without_lasting_conclusions
from stillgraph.program.program import Program
from stillgraph.program.record import START_UP
from stillgraph.program.sources import Source
from stillgraph.trace.capture.attempt import CaptureAttempt
from stillgraph.trace.code.captured import at_start, called_function
from stillgraph.trace.code.front_end import FrontEnd
from stillgraph.trace.code.options import Options
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.code.watch import Watch
from stillgraph.trace.fakes.shape_environment import is_loaded, load_shapes
from stillgraph.trace.fakes.symbolic import without_dispatch_modes
from stillgraph.trace.guards.inputs import Dims
from stillgraph.trace.guards.knowledge import Knowledge
from stillgraph.trace.heap.births import without_full_collections

_MAX_ATTEMPTS = 64


@without_full_collections()
@without_lasting_conclusions()
@without_dispatch_modes()
def capture(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    front_end: FrontEnd,
    symbolic_dims: Dims,
    options: Options,
    name: str | None,
    call: Callable[..., Any],
    changing: AbstractSet[Source] = frozenset(),
    watch: Watch | None = None,
    open_sizes: Mapping[Source, AbstractSet[int]] = MappingProxyType({}),
    lessons: dict[str, Any] | None = None,
) -> Program:
    """Capture ``function(*args, **kwargs)``.

    Args:
        function: a plain function (a method's receiver is the first of ``args``) or another callable.
        args, kwargs: of the call; their tensors give dtypes, devices and shapes, their data is not looked at.
        front_end: how functions are rewritten.
        symbolic_dims: which dimensions of an argument stay symbolic.
        options: the user's.
        name: of the program; the function's by default.
        call: the operator that calls anything but a plain function.
        changing: where numbers are that differ from call to call: inputs of the program, unless it depends on them in
            other ways than by value.
        watch: takes down what the capture does; what it holds afterwards also tells of a capture that failed.
        open_sizes: dimensions of tensors that differ from call to call: symbolic, unless the code takes one size.
        lessons: what earlier captures of the function have found out about its code; this one adds to it.

    Raises:
        CaptureError: the function cannot become one program.
        Exception: what the function itself raises whatever its tensors hold.
    """
    differing = {source: frozenset(dims) for source, dims in open_sizes.items() if dims}
    knowledge = Knowledge(promote=set(changing), changing=set(changing), open_sizes=differing, **(lessons or {}))
    watch = watch or Watch()
    cause: CaptureError | None = None  # why arrays that the code fills could not be made by the run
    for _ in range(_MAX_ATTEMPTS):
        watch.begin()
        if not is_loaded():
            with watch.phase(START_UP):
                load_shapes()
        try:
            attempt = CaptureAttempt(function, args, kwargs, front_end, symbolic_dims, options, knowledge, watch)
            # What code that is not rewritten sets there ends with the attempt: it could not be undone without a token.
            with attempt.session.depth.raised():
                program = copy_context().run(attempt.run, name, call)
            if knowledge.promote_written():
                continue
            if lessons is not None:
                lessons.update(knowledge.of_code())
            return program
        except Restart as restart:
            knowledge.promote_written()
            knowledge.learn(restart)
            let_go(restart, of_all=True)
        except InitialisingCall as error:
            raise at_start(error, function) from None
        except BaseException as error:  # the user's own, too: what the function raises whatever its tensors hold
            if unwinds(error) or isinstance(error, StateLostError):
                raise
            if knowledge.promote_written() or knowledge.assume_less():
                let_go(error)
                continue  # any error may come of what code that is not rewritten does with such numbers
            arrays = knowledge.arrays
            if knowledge.give_up():
                let_go(error)
                if arrays and isinstance(error, CaptureError) and not isinstance(error, MisreadError):
                    cause = error
                continue
            if not is_own(error):
                let_go(error)
            if not isinstance(error, CaptureError):
                raise
            error = cause or error
            raise at_start(error, called_function(function, args)) from error.__cause__
    raise InternalError(f"the capture of {function.__qualname__} does not settle; please report this program")
