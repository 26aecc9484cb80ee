"""Writes in place to a tensor that is one of two others, as the run decides: both are written, where they are it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import (
    Branch,
    Control,
    all_regions,
    call,
    control_of,
    controls,
    copied,
    outputs,
    placeholders,
    results,
    set_outputs,
)
from stillgraph.passes.regions.values import Fakes, storage_of, value_of
from stillgraph.passes.state.growing import expression
from stillgraph.passes.state.sharing import roots_of, written_in
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program

_HINT = "Write out of place (y = y + 1), or write before the branch or loop chooses."


def write_to_both(program: Program) -> Program:
    """Take a branch's result for what it is, one of two tensors, where one of the three is written in place later.

    ::

        y = if p: x                     t = torch.where(p, x, z)
            else: z             →       t.add_(1)
        y.add_(1)                       x.copy_(torch.where(p, t, x)); z.copy_(torch.where(p, z, t))
        return y                        return torch.where(p, x, z)

    Raises:
        ExportError: the two differ in shape, one is a view, or a branch or loop writes to them.
    """
    if not any(_conflicts(module, module is program.graph) for module in all_regions(program.graph)):
        return program
    fresh = copied(program)
    work = Fakes(fresh.graph)
    for module in all_regions(fresh.graph):
        while found := _conflicts(module, module is fresh.graph):
            control, index, writer = found[0]
            if not isinstance(control, Branch):
                raise _refused("a loop's result", writer)
            joined = _Joined(work, module, control, index, writer)
            if joined.is_read_first():
                joined.copy()
            else:
                joined.rewrite()
    return fresh


def _refused(what: str, writer: fx.Node) -> BaseException:
    message = f"{what} is written in place where it may be the memory of another tensor, as only the run knows"
    return refuse("SG402", message, location=writer.meta.get("location"), hint=_HINT)


def _conflicts(module: fx.GraphModule, is_root: bool) -> list[tuple[Control, int, fx.Node]]:
    """The results of branches and loops behind which they, or what they may be, are written in place."""
    if not any(True for _ in controls(module)):
        return []
    roots, found = roots_of(module), []
    order = {node: place for place, node in enumerate(module.graph.nodes)}
    written = [(node, target) for node in module.graph.nodes for target in _targets(module, node)]
    for control in controls(module):
        for index, result in results(control.node).items():
            mine = roots.get(result, frozenset())
            given = is_root or isinstance(control, Branch)
            before = {root for root in mine if root.graph is module.graph}
            others = {root for root in before if _is_seen(root, given, order[control.node], order, roots)}
            for writer, target in written if others and result.users else ():
                behind = order[writer] > order[control.node]
                if behind and not mine.isdisjoint(roots.get(target, ())):
                    found.append((control, index, writer))
                    break
    return found


def _is_seen(root: fx.Node, given: bool, place: int, order: dict[fx.Node, int], roots: dict[fx.Node, Any]) -> bool:
    """Whether memory from before a place can be looked at behind it by another name; ``given``: by who handed it in."""
    if root.op == "get_attr" or (root.op == "placeholder" and given):
        return True
    names = [node for node, held in roots.items() if root in held and order[node] < place]
    return any(order[user] > place for name in names for user in name.users)


def _targets(module: fx.GraphModule, node: fx.Node) -> list[fx.Node]:
    """What an operation, or the regions of a branch or loop, writes to in place."""
    control = control_of(module, node)
    if control is None:
        return written_arguments(node)
    found = []
    handed = (*getattr(control, "entries", ()), *control.operands)
    for region in control.regions:
        roots = roots_of(region)
        touched = frozenset().union(*(roots.get(each, frozenset()) for each in written_in(region)))
        pairs = zip(placeholders(region), handed, strict=True)
        found += [value for given, value in pairs if given in touched and isinstance(value, fx.Node)]
    return found


@dataclass
class _Joined:
    """One result of a branch that is written, or of which a source is."""

    fakes: Fakes
    module: fx.GraphModule
    branch: Branch
    index: int
    writer: fx.Node
    _current: fx.Node | None = field(default=None)  # the tensor chosen, while nobody has written

    def rewrite(self) -> None:
        result = results(self.branch.node)[self.index]
        value = result.meta["val"]
        sources = self._sources(value)
        with self.module.graph.inserting_after(result):
            mask = self._mask(result)
        names = {result}
        for node in list(self.module.graph.nodes):
            if node is result or node is mask or not names.intersection(node.all_input_nodes):
                self._current = None if _targets(self.module, node) else self._current
                continue
            targets = _targets(self.module, node)
            if control_of(self.module, node) is not None and names.intersection(targets):
                raise _refused("a branch's result", node)
            is_view = storage_of(value_of(node)) == storage_of(value) and not names.intersection(targets)
            if is_view and not self._is_read_alone(node, result):
                raise _refused("a view of a branch's result", self.writer)
            chosen = self._chosen(node, mask, sources, value)
            for name in names.intersection(node.all_input_nodes):
                node.replace_input_with(name, chosen)
            if chosen in _targets(self.module, node):
                names.add(node)
                self._write_back(node, chosen, mask, sources)
            self._current = None if targets else self._current

    def is_read_first(self) -> bool:
        """Whether the result is only read, and not behind the first write to what it may be."""
        result = results(self.branch.node)[self.index]
        mine = roots_of(self.module)
        shared = {storage_of(value_of(result)), storage_of(self.branch.node.meta["val"][self.index])}
        left, following = set(result.users), result.next
        for user in left:
            is_kept = user.op == "output" or control_of(self.module, user) is not None
            if is_kept or storage_of(value_of(user)) in shared or isinstance(value_of(user), (tuple, list)):
                return False
        while left:
            left.discard(following)
            targets = _targets(self.module, following)
            writes = any(not mine.get(result, frozenset()).isdisjoint(mine.get(each, ())) for each in targets)
            if result in targets or (writes and left):
                return False
            following = following.next
        return True

    def copy(self) -> None:
        """Let both arms give copies."""
        result = results(self.branch.node)[self.index]
        value = self.fakes.like(result.meta["val"])
        for arm in self.branch.arms:
            given = outputs(arm)
            own = given[self.index]
            if isinstance(own, fx.Node):
                with arm.graph.inserting_before(arm.graph.output_node()):
                    given[self.index] = call(own, "clone", (own,), value)
                set_outputs(arm, given)
        values = list(self.branch.node.meta["val"])
        values[self.index] = result.meta["val"] = value
        self.branch.node.meta["val"] = tuple(values)

    def _is_read_alone(self, view: fx.Node, result: fx.Node) -> bool:
        """Whether a view is read before its memory is written again, and not handed on: it may be one of a copy."""
        order = {node: place for place, node in enumerate(self.module.graph.nodes)}
        roots = roots_of(self.module)
        views = {view}
        for node in order:  # in an order in which what a view is made of comes first
            if storage_of(value_of(node)) == storage_of(value_of(view)) and not views.isdisjoint(node.all_input_nodes):
                views.add(node)
        users = {user for node in views for user in node.users}
        if any(user.op == "output" or control_of(self.module, user) is not None for user in users):
            return False
        last = max((order[user] for user in users), default=0)
        between = [node for node, place in order.items() if order[view] < place <= last]
        written = (target for node in between for target in _targets(self.module, node))
        return all(roots[result].isdisjoint(roots.get(target, ())) for target in written)

    def _sources(self, value: torch.Tensor) -> tuple[fx.Node, fx.Node]:
        """What the result is in either case: an operand of the branch, or what the arm has made."""
        found: list[fx.Node | None] = []
        for arm in self.branch.arms:
            given = outputs(arm)[self.index]
            roots = roots_of(arm).get(given, frozenset()) if isinstance(given, fx.Node) else frozenset()
            inside = placeholders(arm)
            if isinstance(given, fx.Node) and given in inside:
                found.append(self.branch.operands[inside.index(given)])
            elif roots and roots.isdisjoint(inside):
                found.append(None)
            else:
                raise _refused("a view of one of two tensors", self.writer)
        for source in found:
            if source is not None and not _alike(value_of(source), value):
                raise _refused("one of two tensors of different shape", self.writer)
        left, right = (self._made(value) if source is None else source for source in found)
        return left, right

    def _made(self, value: torch.Tensor) -> fx.Node:
        """The result as a tensor of its own, for the arm that makes one."""
        given = [outputs(arm)[self.index] for arm in self.branch.arms]
        copies = []
        for arm, node in zip(self.branch.arms, given, strict=True):
            with arm.graph.inserting_before(arm.graph.output_node()):
                copies.append(call(node, "clone", (node,), self.fakes.like(value)))
        return self.branch.add_output(copies[0], copies[1], self.fakes.like(value))

    def _mask(self, result: fx.Node) -> fx.Node:
        predicate = arguments(self.branch.node)[0]
        graph = self.module.graph
        if not isinstance(value_of(predicate), torch.Tensor):
            truth = call(result, bool, (predicate,), self.fakes.number(bool))
            with graph.inserting_after(truth):
                return call(result, torch.scalar_tensor, (truth,), self.fakes.scalar(bool), dtype=torch.bool)
        flat = call(result, "reshape", (predicate, ()), value_of(predicate))
        with graph.inserting_after(flat):
            return call(result, "to", (flat, torch.bool), self.fakes.scalar(bool), copy=True)

    def _chosen(self, node: fx.Node, mask: fx.Node, sources: tuple[fx.Node, fx.Node], value: torch.Tensor) -> fx.Node:
        if self._current is None:
            with self.module.graph.inserting_before(node):
                self._current = call(self.branch.node, torch.where, (mask, *sources), self.fakes.like(value))
        return self._current

    def _write_back(self, node: fx.Node, chosen: fx.Node, mask: fx.Node, sources: tuple[fx.Node, fx.Node]) -> None:
        left, right = sources
        last = node
        for source, pair in ((left, (chosen, left)), (right, (right, chosen))):
            with self.module.graph.inserting_after(last):
                new = call(node, torch.where, (mask, *pair), self.fakes.like(value_of(source)))
            with self.module.graph.inserting_after(new):
                last = call(node, "copy_", (source, new), value_of(source))


def _alike(left: Any, right: torch.Tensor) -> bool:
    same = [*map(expression, left.shape)] == [*map(expression, right.shape)]
    return bool(same and left.dtype == right.dtype and left.device == right.device)
