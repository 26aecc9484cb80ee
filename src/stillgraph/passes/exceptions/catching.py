"""Exceptions that the program itself handles: the body runs in any case, and what it failed with decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.exceptions.keeping import drop_marks, hand_over
from stillgraph.passes.exceptions.own_errors import SITES, own_error
from stillgraph.passes.exceptions.telling import tell
from stillgraph.passes.regions.marks import CAUGHT, TOLD, again, attempt, failed, site_of, so_far
from stillgraph.passes.regions.regions import (
    COND,
    add_placeholder,
    all_regions,
    attribute,
    call,
    controls,
    copied,
    inlined,
    outputs,
    placeholders,
    replace_by,
    set_outputs,
)
from stillgraph.passes.regions.values import Fakes
from stillgraph.passes.state.memory import flow_of
from stillgraph.program.exceptions import which
from stillgraph.program.facts.schemas import draws
from stillgraph.program.facts.writes import name_of
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import try_, unbound
from stillgraph.program.program import Program

_CHECK = "Check before, with if, in place of catching the exception."
_SITES = SITES | {again}
_MARKS = frozenset({attempt, failed, site_of, so_far}) | TOLD


def hand_out_failures(program: Program) -> Program:
    """Make a branch of every ``try``: its body comes before, and whether that failed decides.

    ::

        try:                                    attempt(1)
            if p: raise ValueError        →     if p: raise ValueError
            y = x + 1                           y = x + 1
        except ValueError:                      y = if failed(1): x - 1
            y = x - 1                               else: y

    `passes.raising` makes the two marks ``attempt`` and ``failed`` a number of what was raised between them. What the
    body computes behind a ``raise`` means nothing, so it must leave nothing behind.

    Raises:
        ExportError: the handler uses the exception; the body writes to tensors from outside, or to what the handler
            uses once it may have failed, or draws random numbers; or an operation in it may itself raise what is
            caught.
    """
    if not handles(program):
        return program
    fresh = copied(program)
    _Catching(Fakes(fresh.graph)).region(fresh.graph)
    return fresh


def handles(program: Program) -> bool:
    """Whether a program handles exceptions itself."""
    return any(node.target is try_ for module in regions(program.graph) for node in module.graph.nodes)


def has_marks(program: Program) -> bool:
    """Whether a program has the marks of this pass in it."""
    return any(node.target is attempt for module in all_regions(program.graph) for node in module.graph.nodes)


@dataclass
class _Catching:
    fakes: Fakes
    count: int = 0

    def region(self, module: fx.GraphModule) -> None:
        for control in controls(module):
            for inner in control.regions:
                self.region(inner)
        for node in list(module.graph.find_nodes(op="call_function", target=try_)):
            body, handler = (attribute(module, region) for region in arguments(node)[1:3])
            self.region(body)
            self.region(handler)
            self._lower(module, node, body, handler)

    def _lower(self, module: fx.GraphModule, node: fx.Node, body: fx.GraphModule, handler: fx.GraphModule) -> None:
        kinds, operands = arguments(node)[3:]
        caught = tuple(attribute(module, kind) if isinstance(kind, fx.Node) else kind for kind in kinds)
        if _never_fails(body, caught):
            _replace_by_body(module, node, body, operands)
            return
        _refuse_raising(body, caught)
        _refuse_traces(node, body)
        self.count += 1
        asked = self._tell(node, handler)
        kept, results = _used(handler, len(operands), asked), len(outputs(body))
        if kept:
            hand_over(arguments(node)[0], self.count, body, kept, self.fakes)
        drop_marks(arguments(node)[0], body)
        with module.graph.inserting_before(node):
            call(node, attempt, (self.count,), None)
            given = inlined(module, node, body, operands)
            given, found = given[:results], given[results:]
            operands = (*_found(handler, list(kept.values()), found), *operands)
            if asked:
                operands = (call(node, site_of, (self.count,), self.fakes.number(int)), *operands)
            flag = call(node, failed, (self.count,), self.fakes.number(bool))
            flag.meta[CAUGHT] = caught
            nodes = dict.fromkeys(value for value in given if isinstance(value, fx.Node))
            passed = [value for value in nodes if value.target is not unbound]  # which stands for nothing to pass
            arms = self._arms(module, node, handler, list(operands), given, passed)
            branch = call(node, COND, (flag, *arms, (*operands, *passed)), node.meta["val"])
        node.replace_all_uses_with(branch)
        module.graph.erase_node(node)

    def _tell(self, node: fx.Node, handler: fx.GraphModule) -> bool:
        """Let a handler know its exception by a number; whether it asks for one.

        Raises:
            ExportError: it uses the exception itself.
        """
        for asked in handler.graph.find_nodes(op="call_function", target=which):
            if not asked.users:  # it makes sure that the exception is the one the handler has been captured for
                handler.graph.erase_node(asked)
        error = placeholders(handler)[0]
        if not error.users:
            return False
        user = tell(handler, error, self.count, self.fakes)
        if user is not None:
            raise _refused("an except block uses the exception", node if user.op == "output" else user)
        return True

    @staticmethod
    def _arms(
        module: fx.GraphModule,
        node: fx.Node,
        handler: fx.GraphModule,
        operands: list[fx.Node],
        given: list[Any],
        passed: list[fx.Node],
    ) -> list[fx.Node]:
        """The handler, and what hands the body's results on instead; both take the operands and those results."""
        through = fx.GraphModule(torch.nn.Module(), fx.Graph(), class_name="Region")
        through.graph.output(())
        for arm, values in ((through, [*operands, *passed]), (handler, passed)):
            for value in values:
                add_placeholder(arm, len(placeholders(arm)), value.name, value, value.meta["val"])
        inside = dict(zip(passed, placeholders(through)[len(operands) :], strict=True))
        with through.graph.inserting_before(through.graph.output_node()):
            for value in given:
                if isinstance(value, fx.Node) and value not in inside:
                    inside[value] = through.graph.node_copy(value)
        set_outputs(through, [inside[value] if isinstance(value, fx.Node) else value for value in given])
        arms = []
        for name, arm in (("handled", handler), ("done", through)):
            setattr(module, f"{node.name}_{name}", arm)
            arms.append(module.graph.get_attr(f"{node.name}_{name}"))
            arms[-1].meta["val"] = arm
        return arms


def _never_fails(body: fx.GraphModule, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether the body cannot raise what is caught: torch says by types, not values, what it has not implemented."""
    raises = any(node.target in _SITES for region in all_regions(body) for node in region.graph.nodes)
    return not raises and all(issubclass(kind, NotImplementedError) for kind in kinds)


def _replace_by_body(module: fx.GraphModule, node: fx.Node, body: fx.GraphModule, operands: Sequence[Any]) -> None:
    """Take the ``try`` away and leave its body."""
    drop_marks(arguments(node)[0], body)
    with module.graph.inserting_before(node):
        given = inlined(module, node, body, operands)
    for result in list(node.users):
        value = given[arguments(result)[1]]
        result.replace_all_uses_with(value)
        module.graph.erase_node(result)
    module.graph.erase_node(node)


def _used(handler: fx.GraphModule, operands: int, asked: bool) -> dict[int, fx.Node]:
    """The placeholders of what the handler uses of the body before the exception, by place; the others are dropped."""
    error, *known = placeholders(handler)
    kept = known[: len(known) - operands]
    used = {index: each for index, each in enumerate(kept) if each.users}
    for each in (error, *kept) if not asked else kept:
        if each not in used.values():
            handler.graph.erase_node(each)
    return used


def _found(handler: fx.GraphModule, kept: Sequence[fx.Node], values: Sequence[Any]) -> list[fx.Node]:
    """The operands of the handler for what it finds; what is a constant, or nothing, stands in the handler itself."""
    found = []
    for placeholder, value in zip(kept, values, strict=True):
        if isinstance(value, fx.Node) and value.target is not unbound:
            found.append(value)
            continue
        made = value
        if isinstance(value, fx.Node):
            with handler.graph.inserting_before(placeholders(handler)[-1].next):
                made = handler.graph.node_copy(value)
        replace_by(placeholder, made)
    return found


def _refuse_traces(node: fx.Node, body: fx.GraphModule) -> None:
    """What the body does behind a ``raise`` is done all the same: nothing of it may be seen."""
    flow = flow_of(body)
    for root, writer in flow.written.items():
        if root.op in ("placeholder", "get_attr"):
            raise _refused("a try writes to a tensor in place, which its except block would see", writer)
    for region in all_regions(body):
        for inner in region.graph.nodes:
            if draws(inner):
                raise _refused("a try draws random numbers, how many depends on where it fails", inner)


def _refuse_raising(body: fx.GraphModule, kinds: tuple[type[BaseException], ...]) -> None:
    """Refuse operations that may themselves raise what is caught: torch's own would end the whole program."""
    for region in all_regions(body):
        for node in region.graph.nodes:
            error = None if node.target in _SITES or node.target in _MARKS else own_error(node)
            found = [] if error is None else error.among(kinds)
            if error is not None and found:
                names = " or ".join(sorted(kind.__name__.lstrip("_") for kind in found))
                message = f"{name_of(node)} in a try may itself raise {names}, which no graph can catch: {error.reason}"
                raise _refused(message, node)


def _refused(message: str, node: fx.Node) -> BaseException:
    return refuse("SG402", message, location=node.meta.get("location"), hint=_CHECK)
