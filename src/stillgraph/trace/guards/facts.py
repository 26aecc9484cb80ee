"""Guards on torch's modes and on symbolic sizes; those on Python's world are `trace.world`'s."""

from __future__ import annotations

import dis
import itertools
from types import CodeType

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.program.context import current_context
from stillgraph.program.facts.size_facts import asked_for, fixed_by
from stillgraph.program.guards import Guard, ModeGuard, SizeGuard
from stillgraph.program.sources import Argument
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.guards.inputs import Inputs


def mode_guard() -> ModeGuard:
    """The modes of this thread."""
    return ModeGuard(current_context(), torch.get_default_dtype(), torch.get_default_device())


@weakly_cached
def compares_objects(code: CodeType) -> bool:
    """Whether code compares with ``is``, other than with a constant."""
    instructions = list(dis.get_instructions(code))
    if any(compares_objects(inner) for inner in code.co_consts if isinstance(inner, CodeType)):
        return True
    return any(
        after.opname == "IS_OP" and not before.opname.startswith("LOAD_CONST")
        for before, after in itertools.pairwise(instructions)
    )


def size_guards(recorder: Recorder, inputs: Inputs) -> list[Guard]:
    """What torch's own code relied on about symbolic sizes.

    Raises:
        CaptureError: a dimension declared symbolic had to be one number.
    """
    env = recorder.symbolic.shape_env
    settled = {
        str(symbol): value
        for symbol, value in (env.replacements | fixed_by(env.guards)).items()
        if value.is_number and str(symbol) in inputs.symbols
    }
    sizes_settled = {name: value for name, value in settled.items() if inputs.symbols[name][1] >= 0}
    for place in (inputs.symbols[name] for name in sizes_settled):
        if place[1] in inputs.open_sizes.get(place[0], frozenset()):
            raise Restart("size", place)
    asked = set(map(str, asked_for(env.guards)))
    if sizes_settled and sizes_settled.keys() <= asked:
        raise _refuse_size(recorder, inputs, *next(iter(sizes_settled.items())))
    # One size is what bounds have left: the code takes others as well, and calls of those get programs of their own.
    guards: list[Guard] = [
        SizeGuard(f"{name} == {value}", ((name, *inputs.symbols[name]),)) for name, value in settled.items()
    ]
    for guard in env.guards:
        names = sorted(str(s) for s in guard.expr.free_symbols)
        if names and all(name in inputs.symbols for name in names):
            sizes = tuple((name, *inputs.symbols[name]) for name in names)
            guards.append(SizeGuard(recorder.symbolic.python_text(guard.expr), sizes))
    return guards


def _refuse_size(recorder: Recorder, inputs: Inputs, symbol: str, value: object) -> BaseException:
    """The refusal of a size that is declared open and has to be one number."""
    source, dim = inputs.symbols[symbol]
    name = inputs.finder.names.get(source.key, str(source)) if isinstance(source, Argument) else str(source)
    message = f"dimension {dim} of '{name}' was declared open, but the code takes only {value} for it"
    hint = f"Write it for any size ({name}.shape[{dim}]; -1 in a reshape), or declare the dimension as {value}."
    return refuse("SG303", message, location=recorder.symbolic.settled_sizes.get(symbol), hint=hint)
