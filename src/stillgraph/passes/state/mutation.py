"""Writes in place inside branches and loops become results, written back outside."""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import Branch, Loop, call, control_of, copied, placeholders, replace_uses
from stillgraph.passes.regions.values import Fakes, storage_of
from stillgraph.passes.state.sharing import roots_of
from stillgraph.program.facts.writes import name_of, written_arguments
from stillgraph.program.program import Program


def lift_mutation(program: Program) -> Program:
    """Let no branch or loop write in place to what comes from outside it.

    ::

        if p: x.add_(1)     →     y = if p: c = x.clone(); c.add_(1); return c
                                      else: return x
                                  x.copy_(y)

    At the top level in-place operations stay: `torch.export` makes them functional.

    Raises:
        ExportError: two views of one memory come from outside, and one of them is written.
    """
    fresh = copied(program)
    work = _Mutation(Fakes(fresh.graph))
    work.region(fresh.graph)
    return fresh


def written_storages(module: fx.GraphModule) -> set[int | None]:
    """The memory that a region's own operations write in place."""
    return {storage_of(w.meta["val"]) for node in module.graph.nodes for w in written_arguments(node)}


@dataclass(frozen=True)
class _Mutation:
    fakes: Fakes

    def region(self, module: fx.GraphModule) -> None:
        for node in list(module.graph.nodes):
            control = control_of(module, node)
            if control is None:
                continue
            for region in control.regions:
                self.region(region)
            self._branch(control) if isinstance(control, Branch) else self._loop(control)

    def _branch(self, branch: Branch) -> None:
        for index, operand in enumerate(branch.operands):
            inner = [placeholders(arm)[index] for arm in branch.arms]
            writes = [_is_written(arm, node) for arm, node in zip(branch.arms, inner)]
            if any(writes):
                left, right = (self._on_copy(n) if written else n for n, written in zip(inner, writes))
                result = branch.add_output(left, right, self.fakes.like(operand.meta["val"]))
                _write_back(branch.node, operand, result)

    def _loop(self, loop: Loop) -> None:
        for region in loop.regions:
            for carried in placeholders(region)[: len(loop.entries)]:
                if _is_written(region, carried):
                    _refuse_shared_entry(loop, placeholders(region).index(carried))
                    self._on_copy(carried)
        for index in reversed(range(len(loop.operands))):
            inner = [placeholders(region)[len(loop.entries) + index] for region in loop.regions]
            if _is_written(loop.test, inner[0]):
                raise refuse(
                    "SG402", "the test of a loop writes to a tensor in place", location=loop.node.meta.get("location")
                )
            if _is_written(loop.body, inner[1]):
                self._carry(loop, index, inner)

    def _carry(self, loop: Loop, index: int, inner: list[fx.Node]) -> None:
        operand = loop.operands[index]
        test, body, result = loop.carry(operand, operand.name, self.fakes.like(operand.meta["val"]))
        for old, new in zip(inner, (test, body)):
            new.meta["val"] = old.meta["val"]  # views of it keep sharing its memory
            old.replace_all_uses_with(new)
        loop.drop_operand(index)
        loop.set_output(len(loop.entries) - 1, self._on_copy(body))
        _write_back(loop.node, operand, result)

    def _on_copy(self, placeholder: fx.Node) -> fx.Node:
        """Let a region work on a copy of one of its inputs."""
        graph = placeholder.graph
        last = list(graph.find_nodes(op="placeholder"))[-1]
        with graph.inserting_after(last):
            copy = graph.call_method("clone", (placeholder,))
        copy.meta.update(placeholder.meta)
        replace_uses(placeholder, copy)
        return copy


def _is_written(module: fx.GraphModule, placeholder: fx.Node) -> bool:
    """Whether a region writes to the memory of one of its inputs."""
    memory = storage_of(placeholder.meta["val"])
    if memory is None:
        return False
    writers = [n for n in module.graph.nodes if any(storage_of(w.meta["val"]) == memory for w in written_arguments(n))]
    if not writers:
        return False
    views = [p for p in placeholders(module) if storage_of(p.meta["val"]) == memory and p.users]
    if len(views) > 1:
        raise refuse(
            "SG402",
            f"'{placeholder.name}' is written in place where another view of its memory is used too",
            location=writers[0].meta.get("location"),
        )
    if not placeholder.users:
        return False
    if any(name_of(w) == "setattr" for w in writers):
        raise refuse(
            "SG402", "an attribute of a tensor is set in a branch or loop", location=writers[0].meta.get("location")
        )
    return True


def _refuse_shared_entry(loop: Loop, index: int) -> None:
    """The first iteration writes to what the loop is entered with: nobody may see it by another name."""
    entry = loop.entries[index]
    if isinstance(entry, fx.Node) and _is_seen_elsewhere(loop, index, entry):
        raise refuse(
            "SG402",
            f"a loop writes to '{entry.name}' in place and then replaces it, while it is used elsewhere too",
            location=loop.node.meta.get("location"),
        )


def _is_seen_elsewhere(loop: Loop, index: int, entry: fx.Node) -> bool:
    """Whether the memory of what a loop is entered with comes from outside, or is read in the loop or behind it."""
    roots = roots_of(loop.module)
    mine = roots.get(entry, frozenset())
    if any(root.op == "placeholder" for root in mine):
        return True
    order = {node: place for place, node in enumerate(loop.module.graph.nodes)}
    place = order[loop.node]
    names = {node for node, held in roots.items() if order[node] < place and not mine.isdisjoint(held)}
    handed = [*loop.entries[:index], *loop.entries[index + 1 :], *loop.operands]
    return not names.isdisjoint(handed) or any(order[user] > place for name in names for user in name.users)


def _write_back(node: fx.Node, target: fx.Node, result: fx.Node) -> None:
    with node.graph.inserting_after(result):
        call(node, "copy_", (target, result), target.meta["val"])


def writes(program: Program) -> bool:
    """Whether a program's top level writes to one of its inputs in place."""
    inputs = {storage_of(n.meta["val"]) for n in placeholders(program.graph)} - {None}
    return bool(inputs & written_storages(program.graph))
