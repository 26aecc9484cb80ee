"""The shadow check: eager PyTorch runs beside a program, each on a copy of all that the call can reach.

Neither touches what the user has. Only a call whose program gives what eager gives goes on to run in the user's world.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torch import fx

from stillgraph.core.diagnostics import CheckError, refuse
from stillgraph.program.blocks import blocks
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import act, outside
from stillgraph.program.program import Program
from stillgraph.runtime.calls.cache import CapturedCall
from stillgraph.runtime.calls.moving import TOLD, Compile, held_objects, on_copies
from stillgraph.runtime.comparing.divergence import (
    Divergence,
    EagerTrace,
    ProgramTrace,
    RegionCheck,
    first_difference,
    interpreting,
)
from stillgraph.runtime.comparing.outcomes import Outcome, differences, observe
from stillgraph.runtime.comparing.worlds import World
from stillgraph.runtime.native.backends import Backend
from stillgraph.runtime.native.function_writer import read_source
from stillgraph.runtime.native.limits import AT_FIRST, EndlessProgram, LimitFor
from stillgraph.runtime.native.native import lower

CarryOut = Callable[[CapturedCall, tuple[Any, ...], tuple[Any, ...], dict[str, Any], Callable[..., Any]], Any]

_TOLD = 4  # differences that a message lists


@dataclasses.dataclass(frozen=True)
class ShadowCheck:
    """Compares calls of one static function with eager PyTorch.

    Attributes:
        name: the function's.
        function: the original.
        backend: what compiles regions.
        compile: makes a function of a program, as it was made of the one that is checked.
        carry_out: runs a captured call: ``carry_out(call, inputs, args, kwargs, function)``.
        originals: a block in which static functions run as the functions they were made from.
    """

    name: str
    function: Any
    backend: Backend
    compile: Compile
    carry_out: CarryOut
    originals: Callable[[], AbstractContextManager[None]]

    def compare(self, call: CapturedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Make a call twice on copies: by its program, and in eager PyTorch.

        Args:
            call: what was captured for it.
            args, kwargs: of the call.

        Raises:
            CheckError: the two differ (SG502), or cannot be compared (SG503).
        """
        try:
            self._compare(call, args, kwargs)
        except CheckError as error:
            raise error.located(call.program.location) from error.__cause__

    def _compare(self, call: CapturedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        visits = None if call.visits is None else list(call.visits)
        world = self._world(call, args, kwargs)
        try:
            eager = self._eager(world)
            found = differences(self._program(world, call), eager)
            if found:
                self._refuse(world, call, eager, found)
        finally:
            if call.visits is not None and visits is not None:
                call.visits[:] = visits

    def outcomes(self, call: CapturedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Outcome, Outcome]:
        """What a program, and then eager PyTorch, makes of a call that the program need not fit.

        Raises:
            CheckError: the two cannot be compared (SG503).
        """
        world = self._world(call, args, kwargs)
        return self._program(world, call), self._eager(world)

    def of_program(self, call: CapturedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        """What a program makes of a call that it need not fit."""
        return self._program(self._world(call, args, kwargs), call)

    def _world(self, call: CapturedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> World:
        _refuse_what_acts(call.program)
        return World(self.function, args, kwargs, held_objects(call.program))

    def _refuse(self, world: World, call: CapturedCall, eager: Outcome, found: list[str]) -> None:
        again = differences(self._eager(world), eager)
        if again:
            raise refuse("SG503", f"eager PyTorch itself does not give the same twice: {again[0]}")
        divergence, fault = self._located(world, call)
        lines = [f"the program of {self.name.rpartition('<locals>.')[2]} does not give what eager PyTorch gives"]
        lines += [f"    {each}" for each in found[:_TOLD]]
        lines += [f"    and {len(found) - _TOLD} more"] if len(found) > _TOLD else []
        lines.append(f"  {fault}: {divergence.text}")
        raise refuse("SG502", "\n".join(lines), location=divergence.location)

    # ---- the two sides
    def _eager(self, world: World, within: AbstractContextManager[Any] | None = None) -> Outcome:
        with world.copied() as copied, self.originals():

            def call() -> Any:
                with within or contextlib.nullcontext():
                    return copied.function(*copied.args, **copied.kwargs)

            return observe(copied, call)

    def _program(
        self, world: World, call: CapturedCall, compile: Compile | None = None, limit: int = AT_FIRST
    ) -> Outcome:
        """What the program gives as it is, or as it is compiled in another way."""
        with world.copied() as copied, self.originals():
            moved = on_copies(call, copied, compile or self.compile, anew=compile is not None, limit=limit)

            def run() -> Any:
                inputs = tuple(read_source(i.source, copied.args, copied.kwargs) for i in moved.program.inputs)
                return self.carry_out(moved, inputs, copied.args, copied.kwargs, copied.function)

            try:
                return observe(copied, run)
            except EndlessProgram as endless:
                block, begun = blocks(call.program.graph)[endless.number], endless.begun
        if limit == AT_FIRST:  # it may be much that the function does
            lines = LimitFor()
            self._eager(world, lines)
            return self._program(world, call, compile, lines.limit)
        return Outcome({}, None, {}, {}, endless=f"{block} has begun {begun} times")

    # ---- where they part
    def _located(self, world: World, call: CapturedCall) -> tuple[Divergence, str]:
        """The earliest difference, and whose fault it is."""
        meant = ProgramTrace()
        interpreted = self._program(world, call, lambda program: interpreting(program, meant))
        if differences(self._program(world, call), interpreted):
            check = RegionCheck(call.program, self.backend)
            self._program(world, call, lambda program: lower(program, check).run)
            whole = Divergence("no compiled region by itself differs from its operations")
            return check.found or whole, "the program as it is run differs from what it means"
        trace = EagerTrace()
        self._eager(world, trace)
        found = first_difference(meant.computed_values, trace.computed_values)
        nowhere = Divergence("every line gets the same values from torch; what becomes of them differs")
        return found or nowhere, "the capture is not what the function does"


def _refuse_what_acts(program: Program) -> None:
    for region in regions(program.graph):
        for node in region.graph.nodes:
            if node.target not in (act, outside):
                continue
            step = _step(region, arguments(node)[0])
            if isinstance(step, TOLD):
                continue
            what = "other processes" if node.target is outside else "the world outside"
            why = f"{step!r} has an effect on {what}, which a copy would have as well"
            raise refuse("SG503", why, location=node.meta.get("location"))


def _step(region: fx.GraphModule, given: Any) -> Any:
    """What is done: the program holds it as an attribute."""
    if isinstance(given, fx.Node) and given.op == "get_attr":
        return operator.attrgetter(str(given.target))(region)
    return given
