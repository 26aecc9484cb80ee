"""What a handler finds of variables that the body of its ``try`` writes: as they were when that failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.exceptions.own_errors import SITES
from stillgraph.passes.regions.marks import again, so_far
from stillgraph.passes.regions.regions import (
    COND,
    Branch,
    Control,
    Loop,
    add_placeholder,
    add_result,
    all_regions,
    call,
    control_of,
    outputs,
    set_outputs,
)
from stillgraph.passes.regions.values import Fakes
from stillgraph.passes.state.memory import flow_of
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import keep, unbound

_CHECK = "Check before, with if, in place of catching the exception."


def drop_marks(name: str, body: fx.GraphModule) -> None:
    """Take away what notes, for the handler of the ``try`` of a name, how far the body has come."""
    for region in all_regions(body):
        for mark in region.graph.find_nodes(op="call_function", target=keep):
            if arguments(mark)[0] == name:
                region.graph.erase_node(mark)


def hand_over(name: str, number: int, body: fx.GraphModule, kept: dict[int, fx.Node], fakes: Fakes) -> None:
    """Let the body of a ``try`` give what the handler finds, behind its own results.

    ::

        y = x * 2                                y = x * 2
        keep("try", [y])                         kept = y
        if p: raise ValueError              →    if p: raise ValueError
        y = y + 1                                y = y + 1
        keep("try", [y])                         kept = kept if so_far(1) else y

    Args:
        name: of the ``try``.
        number: of its `attempt`.
        body: in which the marks are replaced.
        kept: by its place among what a `keep` hands over, the placeholder of each value that the handler uses.
        fakes: make what stands for values.

    Raises:
        ExportError: a value may be written in place once the body has failed, for that goes on.
    """
    work = _Keeping(name, number, kept, fakes)
    flow = flow_of(body)
    given = work.region(body, None, False)
    for index, placeholder in kept.items():
        for root in flow.kept[name][index]:
            writer = next((each for each in flow.writers.get(root, ()) if each in work.behind), None)
            if writer is not None:
                what = f"an except block uses '{placeholder.name}', which is written in place in the try"
                raise refuse("SG402", what, location=writer.meta.get("location"), hint=_CHECK)
    assert given is not None
    set_outputs(body, [*outputs(body), *given])


@dataclass
class _Keeping:
    """One ``try``.

    Attributes:
        behind: what is done, perhaps, though something before it has failed.
        places: how many marks were written, each of which is another one.
    """

    name: str
    number: int
    kept: dict[int, fx.Node]
    fakes: Fakes
    behind: set[fx.Node] = field(default_factory=set)
    places: int = 0

    def region(self, module: fx.GraphModule, now: list[Any] | None, is_behind: bool) -> list[Any] | None:
        """What is kept at the end of a region, given that at its beginning; nodes and constants, in order.

        Args:
            module: the region; its marks are taken away.
            now: what is kept at its beginning; None if there is nothing yet.
            is_behind: whether something may have failed before the region.
        """
        may_have_failed = False
        for node in list(module.graph.nodes):
            if is_behind or may_have_failed:
                self.behind.add(node)
            if node.target is keep and arguments(node)[0] == self.name:
                new = [arguments(node)[1][index] for index in self.kept]
                now = self._chosen(module, node, now, new, self._flag(node)) if now and may_have_failed else new
                module.graph.erase_node(node)
                continue
            control = control_of(module, node)
            if control is not None and self._keeps(control):
                assert now is not None  # each region hands over before its first operation
                flag = self._flag(node) if may_have_failed else None
                new = self._control(control, now, is_behind or may_have_failed)
                now = new if flag is None else self._chosen(module, _last_result(node).next, now, new, flag)
            may_have_failed = may_have_failed or _may_fail(node, control)
        return now

    def _keeps(self, control: Control) -> bool:
        """Whether something is handed over within a branch or loop."""
        nodes = (node for inner in control.regions for region in all_regions(inner) for node in region.graph.nodes)
        return any(node.target is keep and arguments(node)[0] == self.name for node in nodes)

    def _control(self, control: Control, now: list[Any], is_behind: bool) -> list[Any]:
        values = [placeholder.meta["val"] for placeholder in self.kept.values()]
        if isinstance(control, Branch):
            inside = [_handed(control, value) for value in now]
            left, right = (
                self.region(arm, [each[at] for each in inside], is_behind) or [] for at, arm in enumerate(control.arms)
            )
            return [control.add_output(*given) for given in zip(left, right, values, strict=True)]
        return self._loop(control, now, values, is_behind)

    def _loop(self, loop: Loop, now: list[Any], values: list[Any], is_behind: bool) -> list[Any]:
        first = len(loop.entries)
        carried = [loop.carry(entry, "kept", value) for entry, value in zip(now, values, strict=True)]
        left = self.region(loop.body, [body for _, body, _ in carried], is_behind)
        for index, value in enumerate(left or ()):
            loop.set_output(first + index, value)
        return [result for _, _, result in carried]

    def _flag(self, node: fx.Node) -> fx.Node:
        """Whether something has failed before a node."""
        self.places += 1
        with node.graph.inserting_before(node):
            return call(node, so_far, (self.number, self.places), self.fakes.number(bool))

    def _chosen(
        self, module: fx.GraphModule, anchor: fx.Node, old: list[Any], new: list[Any], flag: fx.Node
    ) -> list[Any]:
        """In front of a node: what was kept before where something has failed, and else what would be kept now."""
        changed = [index for index, (was, is_) in enumerate(zip(old, new, strict=True)) if was is not is_]
        if not changed:
            return old
        values = [placeholder.meta["val"] for placeholder in self.kept.values()]
        sides = [[side[index] for index in changed] for side in (old, new)]
        nodes = dict.fromkeys(value for side in sides for value in side if isinstance(value, fx.Node))
        passed = [value for value in nodes if value.target is not unbound]
        arms = []
        for which, side in zip(("before", "now"), sides):
            stem = f"kept_{self.number}_{self.places}_{which}"
            arm = _giving(side, passed)
            setattr(module, stem, arm)
            with anchor.graph.inserting_before(anchor):
                arms.append(anchor.graph.get_attr(stem))
            arms[-1].meta["val"] = arm
        with anchor.graph.inserting_before(anchor):
            branch = call(flag, COND, (flag, *arms, tuple(passed)), ())
        found = list(new)
        for index in changed:
            found[index] = add_result(branch, values[index])
        return found


def _giving(values: list[Any], passed: list[fx.Node]) -> fx.GraphModule:
    """A region that gives values of those which it is passed, and constants."""
    region = fx.GraphModule(torch.nn.Module(), fx.Graph(), class_name="Region")
    region.graph.output(())
    inside = {}
    for index, value in enumerate(passed):
        inside[value] = add_placeholder(region, index, value.name, value, value.meta["val"])
    with region.graph.inserting_before(region.graph.output_node()):
        for value in values:
            if isinstance(value, fx.Node) and value not in inside:
                inside[value] = region.graph.node_copy(value)
    set_outputs(region, [inside[value] if isinstance(value, fx.Node) else value for value in values])
    return region


def _handed(branch: Branch, value: Any) -> tuple[Any, Any]:
    """What stands for a value in the arms of a branch."""
    if not isinstance(value, fx.Node):
        return value, value
    if value.target is not unbound:
        left, right = branch.add_operand(value)
        return left, right
    copies = []
    for arm in branch.arms:
        with arm.graph.inserting_before(next(node for node in arm.graph.nodes if node.op != "placeholder")):
            copies.append(arm.graph.node_copy(value))
    return copies[0], copies[1]


def _may_fail(node: fx.Node, control: Control | None) -> bool:
    sites = SITES | {again}
    if control is None:
        return node.target in sites
    inner = (region for each in control.regions for region in all_regions(each))
    return any(each.target in sites for region in inner for each in region.graph.nodes)


def _last_result(node: fx.Node) -> fx.Node:
    """The last of the nodes of a branch's or loop's results, or itself."""
    return max((user for user in node.users if user.args[0] is node), default=node)
