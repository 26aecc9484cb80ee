"""Exceptions: a raise deep inside becomes the number of its site, handed out and asserted to be none at the top."""

from __future__ import annotations

import builtins
import operator
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.exceptions.catching import has_marks
from stillgraph.passes.exceptions.own_errors import OF_NOTHING, USED
from stillgraph.passes.exceptions.telling import Site, answered
from stillgraph.passes.numbers.number_errors import LIMITS
from stillgraph.passes.regions.marks import CAUGHT, TOLD, again, attempt, site_of, so_far
from stillgraph.passes.regions.marks import failed as caught
from stillgraph.passes.regions.regions import (
    Branch,
    Loop,
    all_regions,
    call,
    control_of,
    controls,
    copied,
    outputs,
    replace_by,
    set_outputs,
)
from stillgraph.passes.regions.values import Fakes, kind_of, value_of
from stillgraph.program import operations
from stillgraph.program.exceptions import raise_, raise_made
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import assert_, require
from stillgraph.program.program import Program

SITES = frozenset({raise_, raise_made, assert_, require, again})
"""The operations that raise an exception: the user's, or (`require`) what Python's own operation would raise."""


def raises(program: Program) -> bool:
    """Whether a program may raise an exception of the user's."""
    return any(node.target in SITES for module in all_regions(program.graph) for node in module.graph.nodes)


def drop_assertions(program: Program) -> Program:
    """The program without its ``assert`` statements; itself if it has none. What it raises otherwise stays."""
    if not any(node.target is assert_ for module in regions(program.graph) for node in module.graph.nodes):
        return program
    fresh = copied(program)
    for module in regions(fresh.graph):
        for node in list(module.graph.find_nodes(op="call_function", target=assert_)):
            module.graph.erase_node(node)
    return fresh


def lower_raising(program: Program) -> Program:
    """Turn raises and assertions into `torch._assert_async` at the top level; regions hand out which site failed.

    ::

        if p:                            failed = if p: return 1
            raise ValueError("big")  →            else: return 0
                                         torch._assert_async(torch.scalar_tensor(failed != 1), "ValueError: big")

    A loop stops once an iteration failed, and does not start when something before it failed. What a ``try`` of the
    program's catches is told by a truth value instead (see `passes.catching`).
    """
    return _lowered(program, goes_on=False)


def lower_checks(program: Program) -> Program:
    """Do as `lower_raising` for a program that goes on where an assertion at the top level fails.

    No loop starts then, and what follows is not asserted: at most one assertion fails, the one for what the original
    raises.
    """
    return _lowered(program, goes_on=True)


def _lowered(program: Program, goes_on: bool) -> Program:
    if not raises(program) and not has_marks(program):
        return program
    fresh = copied(program)
    work = _Raising(Fakes(fresh.graph), goes_on)
    work.region(fresh.graph, is_root=True)
    return fresh


_USED = f"AssertionError: {USED}"
_MAY_BE_NOTHING = "a value that may be None or unbound is used in a try, whose handler may wait for what that raises"
_CHECK = "Check before, with if, in place of catching the exception."

Failed = fx.Node | int | None
"""Which of the sites in a stretch of a region failed: a number, 0 for none; None if there are none."""


@dataclass(frozen=True)
class _Try:
    """Where a ``try`` begins: what has failed before, how many sites there are, and how many raises of handlers."""

    failed: Failed
    sites: int
    again: int


@dataclass
class _Raising:
    fakes: Fakes
    goes_on: bool
    sites: list[Site] = field(default_factory=list)  # of the numbers 1, 2 …
    handled: set[int] = field(default_factory=set)
    reaching: dict[int, list[int]] = field(default_factory=dict)  # for each `attempt`, what its handler may get
    again: list[int] = field(default_factory=list)  # what handlers have let go on

    def region(self, module: fx.GraphModule, is_root: bool = False, outside: Sequence[Failed] = ()) -> Failed:
        """Rewrite a region; what tells which of its sites failed. ``outside`` tells it of sites before the region."""
        failed: Failed = None
        tries: list[_Try] = []
        for node in list(module.graph.nodes):
            before = len(self.sites)
            if node.target is attempt:
                tries.append(_Try(failed, before, len(self.again)))
                module.graph.erase_node(node)
                continue
            if node.target is site_of or node.target in TOLD:
                self._tell(node, failed)
                continue
            if node.target is so_far:
                with node.graph.inserting_before(node):
                    replace_by(node, call(node, operator.ne, (failed or 0, 0), self.fakes.number(bool)))
                continue
            if node.target is caught:
                begun = tries.pop()
                site, failed, before = self._caught(node, failed, begun), begun.failed, begun.sites
            elif node.target in SITES:
                site = self._site(node)
            else:
                site = self._control(control_of(module, node), [failed, *(each.failed for each in tries), *outside])
            if site is None:
                continue
            asserted = is_root and not tries
            if self.goes_on or not asserted:
                with _after(site, node):
                    site = failed = self._first(node, failed, site)
            if asserted:
                with _after(site, node):
                    self._assert(node, site, before)
            if node.target in SITES:
                module.graph.erase_node(node)
        return failed

    def _caught(self, node: fx.Node, failed: Failed, begun: _Try) -> Failed:
        """Make the mark behind the body of a ``try`` a truth value; what failed with something else."""
        inside = {*range(begun.sites + 1, len(self.sites) + 1), *self.again[begun.again :]}
        numbers = sorted(inside - self.handled)
        own = [number for number in numbers if self.sites[number - 1].text not in (*LIMITS, _USED)]
        for site in (self.sites[number - 1] for number in numbers):
            if site.text == _USED and OF_NOTHING.among(node.meta[CAUGHT]):
                raise refuse("SG402", _MAY_BE_NOTHING, location=site.location, hint=_CHECK)
        mine = [number for number in own if issubclass(self.sites[number - 1].kind, node.meta[CAUGHT])]
        self.reaching[node.args[0]] = mine  # type: ignore[index]  # the number of the attempt
        self.handled.update(mine)
        flag: Any = False
        with node.graph.inserting_before(node):
            for number in mine if failed is not None else ():
                same = call(node, operator.eq, (failed, number), self.fakes.number(bool))
                flag = same if flag is False else call(node, operator.or_, (flag, same), self.fakes.number(bool))
            rest: Failed = None
            if len(mine) < len(numbers) and failed is not None:
                other = call(node, operator.not_, (flag,), self.fakes.number(bool))
                rest = call(node, operator.mul, (other, failed), self.fakes.number(int))
        replace_by(node, flag)
        return rest

    def _tell(self, node: fx.Node, failed: Failed) -> None:
        """Make numbers and truth values of what a handler asks of its exception."""
        with node.graph.inserting_before(node):
            if node.target is site_of:
                value: Any = failed
                if not isinstance(failed, fx.Node):  # a branch takes nodes
                    value = call(node, operator.add, (failed or 0, 0), self.fakes.number(int))
            else:
                reaching = [(number, self.sites[number - 1]) for number in self.reaching[arguments(node)[1]]]
                value = answered(node, reaching, self.fakes)
        replace_by(node, value)

    def _site(self, node: fx.Node) -> fx.Node | int:
        """Number a raise or an assertion; what is its number if it failed, and else 0."""
        if node.target is again:
            number, tried = arguments(node)
            self.handled.difference_update(self.reaching[tried])
            self.again += self.reaching[tried]
            with node.graph.inserting_before(node):  # here: what failed before is told first
                return call(node, operator.add, (number, 0), self.fakes.number(int))
        self.sites.append(Site(_kind(node), _text(node), _shown(node), node.meta.get("location")))
        number = len(self.sites)
        if node.target not in (assert_, require):
            return number
        with node.graph.inserting_before(node):
            wrong = self._opposite(node)
            return call(node, operator.mul, (wrong, number), self.fakes.number(int))

    def _opposite(self, node: fx.Node) -> fx.Node:
        """Whether what an assertion needs is not so."""
        condition = node.args[0]
        if isinstance(condition, fx.Node) and condition.target is operator.not_:
            opposite = arguments(condition)[0]
            if kind_of(value_of(opposite)) is bool and isinstance(opposite, fx.Node):
                return opposite
        truth = call(node, bool, (condition,), self.fakes.number(bool))
        return call(node, operator.not_, (truth,), self.fakes.number(bool))

    def _control(self, control: Any, failed: list[Failed]) -> fx.Node | None:
        if isinstance(control, Branch):
            known = self._handed(control, failed)
            left, right = (self.region(arm, outside=each) for arm, each in zip(control.arms, known, strict=True))
            if left is None and right is None:
                return None
            return control.add_output(left or 0, right or 0, self.fakes.number(int))
        if isinstance(control, Loop):
            inner = self.region(control.body)
            for each in failed:
                if each is not None:
                    self._guard(control, control.add_operand(each)[0] if isinstance(each, fx.Node) else each)
            if inner is None:
                return None
            test, _, result = control.carry(0, "failed", self.fakes.number(int))
            control.set_output(len(control.entries) - 1, inner)
            self._guard(control, test)
            return result
        return None

    def _handed(self, branch: Branch, failed: list[Failed]) -> list[list[Failed]]:
        """For each arm what tells it of failures before the branch, which its loops want to know."""
        inner = [module for arm in branch.arms for module in all_regions(arm)]
        if not any(isinstance(control, Loop) for module in inner for control in controls(module)):
            return [[], []]
        known = [branch.add_operand(each) if isinstance(each, fx.Node) else (each, each) for each in failed]
        return [[left for left, _ in known], [right for _, right in known]]

    def _guard(self, loop: Loop, failed: fx.Node | int) -> None:
        """Let a loop go on only while nothing failed."""
        graph = loop.test.graph
        (go,) = outputs(loop.test)
        anchor = loop.node
        with graph.inserting_before(graph.output_node()):
            fine = _in(graph, anchor, operator.eq, (failed, 0), self.fakes.number(bool))
            truth = _in(graph, anchor, bool, (go,), self.fakes.number(bool))
            set_outputs(loop.test, [_in(graph, anchor, operator.and_, (fine, truth), self.fakes.number(bool))])

    def _first(self, anchor: fx.Node, before: Failed, site: fx.Node | int) -> fx.Node | int:
        """The first failure of two: ``before + site * (before == 0)``."""
        if before is None or isinstance(before, int):
            return before or site
        graph = anchor.graph
        fine = _in(graph, anchor, operator.eq, (before, 0), self.fakes.number(bool))
        with graph.inserting_after(fine):
            later = _in(graph, anchor, operator.mul, (fine, site), self.fakes.number(int))
        with graph.inserting_after(later):
            return _in(graph, anchor, operator.add, (before, later), self.fakes.number(int))

    def _assert(self, anchor: fx.Node, site: fx.Node | int, before: int) -> None:
        graph = anchor.graph
        numbers = {*range(before + 1, len(self.sites) + 1), *self.again} - self.handled
        self.again.clear()
        for number in sorted(numbers, reverse=True):  # each is inserted in front of the others
            fine = _in(graph, anchor, operator.ne, (site, number), self.fakes.number(bool))
            with graph.inserting_after(fine):
                flag = _in(graph, anchor, torch.scalar_tensor, (fine,), self.fakes.scalar(bool), dtype=torch.bool)
            with graph.inserting_after(flag):
                check = _in(graph, anchor, torch._assert_async, (flag, self.sites[number - 1].text), None)
            check.meta["location"] = self.sites[number - 1].location


def _after(site: Failed, node: fx.Node) -> Any:
    """Let a graph insert behind what tells of a failure, or behind the node where that is known."""
    anchor = site if isinstance(site, fx.Node) else node
    return anchor.graph.inserting_after(anchor)


def _in(graph: fx.Graph, anchor: fx.Node, target: Any, args: tuple[Any, ...], value: Any, **kwargs: Any) -> fx.Node:
    node = graph.call_function(target, args, kwargs)
    node.meta.update({k: v for k, v in anchor.meta.items() if k in ("location", "context")}, val=value)
    return node


def _kind(node: fx.Node) -> type[BaseException]:
    """The type of what a site raises."""
    if node.target in (assert_, require):
        name = str(node.args[1]).partition(":")[0] if node.target is require else "AssertionError"
        return getattr(builtins, name)  # type: ignore[no-any-return]  # of Any
    value = value_of(node.args[0])
    return value if isinstance(value, type) else type(value)


def _text(node: fx.Node) -> str:
    """What the exception would say, as far as it is known."""
    if node.target is require:
        return str(node.args[1])
    if node.target is assert_:
        return f"AssertionError: {_outline((node.args[1],))}" if node.args[2] else "AssertionError"
    if node.target is raise_made:
        return f"{_kind(node).__name__}: {_outline(arguments(node)[1])}"
    constant = node.args[0]
    value = constant.meta["val"] if isinstance(constant, fx.Node) else constant
    return f"{type(value).__name__}: {value}" if str(value) else type(value).__name__


def _shown(node: fx.Node) -> str | None:
    """What ``repr`` gives for the arguments of the exception; None where the run alone knows them."""
    if node.target is raise_made:
        return None
    if node.target is raise_:
        value = value_of(node.args[0])
        return repr(value.args) if isinstance(value, BaseException) else "()"
    if node.target is assert_:
        message = node.args[1]
        return "()" if not node.args[2] else None if isinstance(message, fx.Node) else repr((message,))
    _, separator, text = str(node.args[1]).partition(": ")
    if not separator:
        return "()"
    return f"({text},)" if issubclass(_kind(node), KeyError) else repr((text,))


_LEFT_OUT = "(a file leaves out values that only the run knows)"


def _outline(given: Sequence[Any]) -> str:
    """The text of an exception of such arguments, without the values that only the run knows."""
    known = [_without_values(each) for each in given]
    text = known[0] if len(known) == 1 else f"({', '.join(known)})"
    return f"{text} {_LEFT_OUT}" if any(isinstance(each, fx.Node) for each in tree_leaves(given)) else text


def _without_values(part: Any) -> str:
    if isinstance(part, tuple):
        return f"({', '.join(map(_without_values, part))}{',' * (len(part) == 1)})"
    if not isinstance(part, fx.Node):
        return str(part)
    if part.target is not operations.text:
        return _HOLE
    template, *values = arguments(part)
    found, filling = "", iter(values)
    for constant, name, *_ in string.Formatter().parse(template):
        found += constant
        if name is not None:
            value = None if name else next(filling, None)
            found += _without_values(value) if isinstance(value, fx.Node) else _HOLE
    return found


_HOLE = "..."
