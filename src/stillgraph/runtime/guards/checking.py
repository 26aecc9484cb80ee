"""Guards compiled to one Python function.

`compile_guards` is on the path of every call, so what it generates is flat: each source is read once into a local, each
guard is one ``if``, constants are names of the function's own namespace. `explaining.explain_miss` interprets the same
guards in the same order, slowly, and says which does not hold. A property test holds the two together.

A check never keeps alive what it compares: objects are compared through weak references. The exceptions, which the
capture asks for, are what a `Held` source holds and the cells of closures.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.program.guards import Guard, TensorGuard
from stillgraph.program.program import Input
from stillgraph.runtime.guards.kinds.inputs import Fetch
from stillgraph.runtime.guards.kinds.table import kind_of
from stillgraph.runtime.guards.order import in_checking_order
from stillgraph.runtime.native.function_writer import FunctionWriter

Check = Callable[[tuple[Any, ...], dict[str, Any]], "tuple[Any, ...] | None"]


def compile_guards(program_inputs: Sequence[Input], guards: Sequence[Guard]) -> Check:
    """Compile the guards of a program and the reading of its inputs to one function.

    Args:
        program_inputs: the placeholders of the program's graph, in order.
        guards: what must hold for the program to be used.

    Returns:
        ``check(args, kwargs)``, which gives the graph's inputs as a tuple, or None where a guard does not hold or a
        source cannot be read. It raises nothing. Its text is ``check.__source__``.

    Raises:
        ValueError: a `SizeGuard` names something that is neither one of its sizes nor a builtin.
    """
    writer = FunctionWriter()
    read = [Fetch(item.source) for item in (*program_inputs, *guards) if isinstance(item, (Input, TensorGuard))]
    for kind, group in itertools.groupby(in_checking_order([*guards, *read]), kind_of):
        kind.write([*group], writer)
    values = [writer.read(item.source) for item in program_inputs]
    writer.lines.append(f"return ({''.join(f'{value}, ' for value in values)})")
    # Reading a source runs user code (properties, __getattr__), so anything may be raised: all of it is a miss.
    writer.lines = ["try:", *(f"    {line}" for line in writer.lines), "except Exception:", "    return None"]
    return writer.function("check(args, kwargs)")
