"""The reference interpreter: what a program means, carried out node by node.

It is slow and writes no code. Both lowerings are tested against it, and it shares nothing with them; a check that finds
a program different from eager PyTorch asks it which value is wrong, and where.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import fx
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from stillgraph.core.diagnostics import InternalError
from stillgraph.program.blocks import Block, blocks
from stillgraph.program.context import Context, current_context, in_backward, write_switches
from stillgraph.program.facts.rerouting import reroute, rerouted
from stillgraph.program.graphs import arguments
from stillgraph.program.guards import ModeGuard
from stillgraph.program.operations import bound, checkpointed, keep, recurse, recursion, try_
from stillgraph.program.program import Program

Values = tuple[Any, ...]


class Observer(Protocol):
    """Is told what an interpretation does, in order. What autograd computes again for a checkpoint is not told."""

    def entered(self, block: Block, inputs: Values) -> None:
        """A region begins; ``inputs`` are the values of its placeholders."""

    def left(self, block: Block, outputs: Values) -> None:
        """A region is done; one that an exception leaves is not told."""

    def computed(self, block: Block, node: fx.Node, value: Any) -> None:
        """A node of a region has its value."""


def interpret(program: Program, inputs: Sequence[Any], observer: Observer | None = None) -> Values:
    """Carry out a program's graph.

    Args:
        program: what to carry out; one that the passes have lowered will do, too.
        inputs: a value for each of `Program.inputs`. Tensors that the program writes to are written to.
        observer: is told of each region and each value.

    Returns:
        The outputs of the graph, from which `Program.result` and `Program.effects` are made.

    Raises:
        Exception: whatever an operation raises, or the program itself; `failing_node` says which node that was.
    """
    interpretation = _Interpretation(program.graph, observer)
    modes = next((guard.context for guard in program.guards if isinstance(guard, ModeGuard)), None)
    try:
        found = interpretation.run(program.graph, tuple(inputs), _Frame(modes))
        lazy = program.unset_in_choices
        return tuple(value if index in lazy else bound(value) for index, value in enumerate(found))
    finally:
        interpretation.observer = None


_NODE = "__stillgraph_node__"


def failing_node(error: BaseException) -> fx.Node | None:
    """The node in which an interpretation raised an exception: the innermost one."""
    node: fx.Node | None = error.__dict__.get(_NODE)
    return node


@dataclass
class _Frame:
    """One call of the program or of a region that is a function: recursions and checkpoints have frames of their own.

    Attributes:
        modes: torch's modes as they are now; None where that is not known.
        functions: the recursions that can be called, by their names.
        kept: what the tries around have been handed, by their names.
    """

    modes: Context | None
    functions: dict[str, Callable[..., Values]] = field(default_factory=dict)
    kept: dict[str, Values] = field(default_factory=dict)


class _Interpretation:
    """One run of a program."""

    def __init__(self, graph: fx.GraphModule, observer: Observer | None) -> None:
        self.blocks = {id(block.module): block for block in blocks(graph)}
        self.observer = observer

    # ---- regions and nodes
    def run(self, region: fx.GraphModule, inputs: Values, frame: _Frame) -> Values:
        """Carry out one region."""
        block = self.blocks[id(region)]
        self._tell("entered", block, inputs)
        values: dict[fx.Node, Any] = {}
        given = iter(inputs)
        outputs: Values = ()
        for node in region.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "output":
                (returned,) = arguments(node)
                outputs = tuple(_value(each, values) for each in returned)
            else:
                values[node] = self._computed(region, node, values, frame)
                self._tell("computed", block, node, values[node])
        self._tell("left", block, outputs)
        return outputs

    def _computed(self, region: fx.GraphModule, node: fx.Node, values: dict[fx.Node, Any], frame: _Frame) -> Any:
        if node.op == "get_attr":
            return attribute(region, str(node.target))
        with self._modes_of(node, frame), _naming(node):
            args = tuple(_value(each, values) for each in arguments(node))
            keywords = {name: _value(each, values) for name, each in node.kwargs.items()}
            if node.op == "call_method":
                return getattr(args[0], str(node.target))(*args[1:], **keywords)
            control = CONTROL.get(node.target)
            if control is not None:
                return control(self, args, frame)
            operation: Any = node.target
            return operation(*args, **keywords)

    @contextlib.contextmanager
    def _modes_of(self, node: fx.Node, frame: _Frame) -> Iterator[None]:
        """Run an operation, and what it calls, under the modes that it was recorded under."""
        wanted: Context | None = node.meta.get("context")
        if wanted is None or wanted == frame.modes or node.meta.get("bookkeeping"):
            yield
            return
        before, frame.modes = frame.modes, wanted
        try:
            with under(wanted):
                yield
        finally:
            frame.modes = before

    def _tell(self, what: str, *told: Any) -> None:
        if self.observer is not None:
            getattr(self.observer, what)(*told)

    # ---- control flow
    def _cond(self, args: Values, frame: _Frame) -> Values:
        predicate, then, otherwise, operands = args
        return self.run(then if predicate else otherwise, tuple(operands), frame)

    def _while(self, args: Values, frame: _Frame) -> Values:
        test, body, entries, operands = args
        carried = tuple(entries)
        while True:
            (go,) = self.run(test, (*carried, *operands), frame)
            if not go:
                return carried
            carried = self.run(body, (*carried, *operands), frame)

    def _try(self, args: Values, frame: _Frame) -> Values:
        name, body, handler, kinds, operands = args
        try:
            return self.run(body, tuple(operands), frame)
        except tuple(kinds) as error:
            error.__dict__.pop(_NODE, None)  # it is the program's own now
            taken = len(handler.graph.find_nodes(op="placeholder")) - 1 - len(operands)
            kept = frame.kept.get(name, ())
            if len(kept) < taken:
                raise InternalError(f"the handler of {name} takes {taken} values, but {len(kept)} were kept") from None
            return self.run(handler, (error, *kept[:taken], *operands), frame)

    def _keep(self, args: Values, frame: _Frame) -> None:
        name, kept = args
        frame.kept[name] = tuple(kept)

    def _recursion(self, args: Values, frame: _Frame) -> Values:
        name, body, entries, operands = args

        def call(modes: Context | None, *given: Any) -> Values:
            return self.run(body, (*given, *operands), _Frame(modes, functions))

        functions = {**frame.functions, name: call}
        return call(frame.modes, *entries)

    def _recurse(self, args: Values, frame: _Frame) -> Values:
        name, *given = args
        return frame.functions[name](frame.modes, *given)

    def _checkpointed(self, args: Values, frame: _Frame) -> Any:
        body, inputs, operands, options = args
        inside = frame.modes

        def call(*given: Any) -> Values:
            return self.run(body, (*given, *operands), _Frame(inside, frame.functions))

        return checkpoint(call, *inputs, **options)

    def _rerouted(self, args: Values, frame: _Frame) -> Values:
        body, results, saved, inputs, options, operands = args
        inside = None if frame.modes is None else in_backward(frame.modes)

        def call(*given: Any) -> Values:
            return self.run(body, (*given, *operands), _Frame(inside, frame.functions))

        return reroute(call, results, saved, inputs, options)


CONTROL: dict[Any, Callable[[_Interpretation, Values, _Frame], Any]] = {
    torch.ops.higher_order.cond: _Interpretation._cond,
    torch.ops.higher_order.while_loop: _Interpretation._while,
    try_: _Interpretation._try,
    keep: _Interpretation._keep,
    recursion: _Interpretation._recursion,
    recurse: _Interpretation._recurse,
    checkpointed: _Interpretation._checkpointed,
    rerouted: _Interpretation._rerouted,
}
"""What an operation means that is more than a call of itself: those with regions, and those that refer to them."""


# ---- values
def _value(given: Any, values: dict[fx.Node, Any]) -> Any:
    """An argument of a node; fx's immutable containers become plain ones, for operations may keep and change them."""
    if isinstance(given, fx.Node):
        return values[given]
    if isinstance(given, torch.Size):
        return given
    if isinstance(given, tuple):
        return tuple(_value(each, values) for each in given)
    if isinstance(given, list):
        return [_value(each, values) for each in given]
    if isinstance(given, dict):
        return {key: _value(each, values) for key, each in given.items()}
    if isinstance(given, slice):
        return slice(*(_value(each, values) for each in (given.start, given.stop, given.step)))
    return given


def attribute(region: fx.GraphModule, path: str) -> Any:
    """What a ``get_attr`` node of a region stands for."""
    found: Any = region
    for name in path.split("."):
        found = getattr(found, name)
    return found


@contextlib.contextmanager
def _naming(node: fx.Node) -> Iterator[None]:
    """Have an exception say which node raised it."""
    try:
        yield
    except BaseException as error:  # of any kind: it goes on, and says where it was raised
        error.__dict__.setdefault(_NODE, node)
        raise


# ---- modes
@contextlib.contextmanager
def under(modes: Context) -> Iterator[None]:
    """A block under torch's modes as a program recorded them; apart from the driver, whose test it is."""
    with contextlib.ExitStack() as stack:
        # Grad mode last: on leaving, inference mode puts back what it found.
        stack.enter_context(torch.inference_mode() if modes.inference else torch.set_grad_enabled(modes.grad))
        for device in ("cpu", "cuda"):
            cast = next((each for each in modes.autocast if each.device_type == device), None)
            if cast is not None:
                stack.enter_context(torch.autocast(device, cast.dtype, True, cast.cache_enabled))
            elif torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if modes.switches:
            stack.callback(write_switches, current_context().switches)
            write_switches(modes.switches)
        if modes.hooks is not None:
            stack.enter_context(saved_tensors_hooks(*modes.hooks))
        yield


