"""`verify`: does a program keep the invariants that passes and lowerings rely on?"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from stillgraph.core.diagnostics import InternalError
from stillgraph.program.effects import Effect
from stillgraph.program.facts.rerouting import rerouted
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import checkpointed, recursion, try_, unbound
from stillgraph.program.outputs import Template, outputs_of
from stillgraph.program.types import ListType, ObjectType

if TYPE_CHECKING:
    from stillgraph.program.program import Program

_COND = torch.ops.higher_order.cond
_WHILE = torch.ops.higher_order.while_loop
_NUMBERS = (bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat)
_VALUES = (torch.Tensor, ListType, ObjectType, BaseException, torch.Generator, *_NUMBERS)


def verify(program: Program) -> None:
    """Check a program.

    What must hold: the root's placeholders are the program's inputs; the result and the effects refer to outputs there
    are; every region is a well-formed graph whose operations stand behind what they use; a branch hands both arms what
    they take, and the arms give as many values as the branch has; a loop does the same for test and body, and the body
    gives what it carries; the results of a branch or loop are taken out by their position.

    Raises:
        InternalError: the first thing that is wrong, and where.
    """
    places = list(program.graph.graph.find_nodes(op="placeholder"))
    if len(places) != len(program.inputs):
        raise _fault("the program", f"has {len(program.inputs)} inputs, its graph {len(places)} placeholders")
    outputs = _region(program.graph, "the program")
    for template in _templates(program.result, program.effects):
        for output in outputs_of(template):
            if not 0 <= output.index < len(outputs):
                raise _fault("the program", f"refers to output {output.index}, its graph has {len(outputs)}")


def _fault(where: str, text: str) -> InternalError:
    return InternalError(f"invalid program: {where} {text}")


def _templates(result: Template, effects: tuple[Effect, ...]) -> Iterator[Template]:
    yield result
    for effect in effects:
        value = getattr(effect, "value", None)
        if value is not None:
            yield value


def _region(module: fx.GraphModule, where: str) -> tuple[Any, ...]:
    """Check one region and those in it; its outputs."""
    try:
        module.graph.lint()
    except RuntimeError as error:
        raise _fault(where, f"is no well-formed graph: {error}") from error
    for node in module.graph.nodes:
        if node.op == "call_module":
            raise _fault(where, f"calls a module in '{node.name}'")
        if node.op == "output":
            continue
        _node(module, node, where)
    given = arguments(module.graph.output_node())[0]
    if not isinstance(given, (tuple, list)):
        raise _fault(where, "does not give a tuple")
    return tuple(given)


def _node(module: fx.GraphModule, node: fx.Node, where: str) -> None:
    if node.op == "placeholder" and not isinstance(node.meta.get("val"), _VALUES):
        raise _fault(where, f"takes '{node.name}', which stands for no value of a program")
    made = node.op in ("call_function", "call_method") and node.target is not unbound
    if made and node.users and "val" not in node.meta:
        raise _fault(where, f"does not say what '{node.name}' stands for")
    if node.target is _COND:
        _branch(module, node, where)
    elif node.target is _WHILE:
        _loop(module, node, where)
    elif node.target is try_:
        _try(module, node, where)
    elif node.target is recursion:
        _recursion(module, node, where)
    elif node.target is checkpointed:
        _checkpoint(module, node, where)
    elif node.target is rerouted:
        _backward(module, node, where)
    elif node.target is operator.getitem and isinstance(source := arguments(node)[0], fx.Node):
        count = len(source.meta["val"]) if source.target in (_COND, _WHILE) else None
        if count is not None and not (isinstance(arguments(node)[1], int) and 0 <= arguments(node)[1] < count):
            raise _fault(where, f"takes result {arguments(node)[1]} of '{source.name}', which has {count}")


def _branch(module: fx.GraphModule, node: fx.Node, where: str) -> None:
    _, true, false, operands = arguments(node)
    count = len(_values(node, where))
    for side, region in (("true", true), ("false", false)):
        place = f"the {side} arm of '{node.name}' in {where}"
        arm = _child(module, region, place)
        _takes(arm, len(operands), place)
        given = _region(arm, place)
        if len(given) != count:
            raise _fault(place, f"gives {len(given)} values, the branch has {count}")


def _loop(module: fx.GraphModule, node: fx.Node, where: str) -> None:
    test, body, entries, operands = arguments(node)
    count = len(_values(node, where))
    if len(entries) != count:
        raise _fault(where, f"'{node.name}' carries {count} values and enters with {len(entries)}")
    for side, region, results in (("test", test, 1), ("body", body, count)):
        place = f"the {side} of '{node.name}' in {where}"
        inner = _child(module, region, place)
        _takes(inner, count + len(operands), place)
        given = _region(inner, place)
        if len(given) != results:
            raise _fault(place, f"gives {len(given)} values, not {results}")


def _try(module: fx.GraphModule, node: fx.Node, where: str) -> None:
    _, body, handler, _, operands = arguments(node)
    count, extra = len(_values(node, where)), 0
    for side, region in (("body", body), ("handler", handler)):
        place = f"the {side} of '{node.name}' in {where}"
        arm = _child(module, region, place)
        if side == "handler":
            extra = len(arm.graph.find_nodes(op="placeholder")) - len(operands)
        _takes(arm, len(operands) + extra, place)
        given = _region(arm, place)
        if len(given) != count:
            raise _fault(place, f"gives {len(given)} values, the try has {count}")


def _recursion(module: fx.GraphModule, node: fx.Node, where: str) -> None:
    _, body, entries, operands = arguments(node)
    place = f"the body of '{node.name}' in {where}"
    inner = _child(module, body, place)
    _takes(inner, len(entries) + len(operands), place)
    given, count = _region(inner, place), len(_values(node, where))
    if len(given) != count:
        raise _fault(place, f"gives {len(given)} values, not {count}")


def _checkpoint(module: fx.GraphModule, node: fx.Node, where: str) -> None:
    body, inputs, operands, _ = arguments(node)
    place = f"the body of '{node.name}' in {where}"
    inner = _child(module, body, place)
    _takes(inner, len(inputs) + len(operands), place)
    given, count = _region(inner, place), len(_values(node, where))
    if len(given) != count:
        raise _fault(place, f"gives {len(given)} values, not {count}")


def _backward(module: fx.GraphModule, node: fx.Node, where: str) -> None:
    body, results, _, inputs, options, operands = arguments(node)
    place = f"the body of '{node.name}' in {where}"
    inner = _child(module, body, place)
    _takes(inner, len(results) + len(options["own"]) + len(operands), place)
    given = _region(inner, place)
    if len(given) != len(inputs):
        raise _fault(place, f"gives {len(given)} gradients, there are {len(inputs)} inputs")
    if len(_values(node, where)) != len(results):
        raise _fault(where, f"'{node.name}' does not say what each of {len(results)} results is")


def _values(node: fx.Node, where: str) -> tuple[Any, ...]:
    values = node.meta.get("val")
    if not isinstance(values, tuple):
        raise _fault(where, f"does not say what '{node.name}' gives")
    return values


def _child(module: fx.GraphModule, region: Any, where: str) -> fx.GraphModule:
    child: Any = module
    if not isinstance(region, fx.Node) or region.op != "get_attr":
        raise _fault(where, "is no region of its module")
    for name in str(region.target).split("."):
        child = getattr(child, name, None)
    if not isinstance(child, fx.GraphModule):
        raise _fault(where, f"is not there: '{region.target}'")
    return child


def _takes(module: fx.GraphModule, count: int, where: str) -> None:
    found = len(module.graph.find_nodes(op="placeholder"))
    if found != count:
        raise _fault(where, f"takes {found} values and is given {count}")
