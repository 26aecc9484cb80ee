"""Functions that a capture follows: rewritten, with the outer variables that they assign watched."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from stillgraph.core.files import is_polyfill
from stillgraph.core.lookup import is_exactly
from stillgraph.core.rewritten import resumes
from stillgraph.program.facts.module_tables import MODULE_TABLES
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.front_end import FrontEnd
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.code.watch import REWRITING, Watch
from stillgraph.trace.control_flow.joined.unjoined import METHODS
from stillgraph.trace.control_flow.maybe_none import HIDDEN
from stillgraph.trace.effects.shared_state import outer_cells
from stillgraph.trace.guards.knowledge import Knowledge
from stillgraph.trace.guards.promotion import Promotion
from stillgraph.trace.heap.places import CellPlace
from stillgraph.trace.sources.sources import Finder


class FollowedFunctions:
    """Those of one attempt at a capture.

    Args:
        front_end: rewrites them.
        knowledge: of earlier attempts.
        log: told of what is rewritten and of what ran.
        finder: where objects are found from the call's roots.
        captured: the function that is captured.

    Attributes:
        functions: those that were rewritten and are not made by the code that is captured.
        capture: the capture.
        promotion: makes inputs of numbers in outer variables.
    """

    capture: Session
    promotion: Promotion

    def __init__(
        self, front_end: FrontEnd, knowledge: Knowledge, log: Watch, finder: Finder, captured: Any
    ) -> None:
        self._front_end, self._knowledge, self._log, self._finder = front_end, knowledge, log, finder
        self._captured = captured
        self.functions: list[FunctionType] = []

    @property
    def _watched(self) -> frozenset[str]:
        """The attributes whose reads the operators are told of."""
        return HIDDEN.union(self._knowledge.watch, METHODS, {"__dict__", "bit_generator", "state", *MODULE_TABLES})

    def convert(self, function: FunctionType) -> FunctionType:
        """The rewritten form of a function, whose outer variables are watched from now on."""
        with self._log.phase(REWRITING), self.capture.executed.paused():
            converted, written_cells = self._front_end.convert(function, self._watched, self._knowledge.tries)
        if not resumes(function.__code__):
            self._watch(function, written_cells)
        return converted

    def turn_inside_out(self, function: FunctionType, manages: bool) -> tuple[FunctionType, str] | None:
        """The same of a generator, see `Session`."""
        with self._log.phase(REWRITING), self.capture.executed.paused():
            turned = self._front_end.turn_inside_out(function, self._watched, self._knowledge.tries, manages)
        if turned is None:
            return None
        self._watch(function, turned[1])
        return turned[0], turned[2]

    def _watch(self, function: FunctionType, written_cells: tuple[str, ...]) -> None:
        if is_polyfill(function.__code__.co_filename):
            return  # what it reads is ours, and never another
        if function in self.capture.conversion.made_functions:
            self.capture.conversion.made_and_run.add(function.__code__)
            return  # nothing of it was there before; what it reads is part of what the function around it does
        is_first = not self.functions and function is self._captured
        self.functions.append(function)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for name in written_cells:
            self._watch_cell(cells[name], name, is_first)

    def _watch_cell(self, cell: Any, name: str, is_first: bool) -> None:
        """An outer variable that the function assigns: its writes are effects, a number in it is an input.

        Raises:
            Restart: other code that may have read the number has run already. In the next attempt it is an input from
                the beginning.
        """
        if id(cell) in self.capture.outer_cells:
            return
        source = self._finder.cell_source(cell)
        if source is None or self._finder.find(cell) is not None:  # the latter may be written by now
            return
        if self.capture.is_new(cell):  # of a function that the capture has called, around a class
            return
        self.capture.outer_cells[id(cell)] = name
        place = CellPlace(cell, name)
        value = place.get()
        if not is_exactly(value, (int, float, bool)) or source in self._knowledge.keep:
            self.capture.journal.note(place)
            return
        if not is_first:
            raise Restart("promote", source)
        self.promotion.places.add(place.key)
        self.capture.journal.write(place, self.promotion.state(value, source))

    def watch_cells(self, code: CodeType) -> None:
        """The same of code that is about to run and is not rewritten, for the variables that the call finds."""
        for name, cell in outer_cells(code):
            if self._finder.cell_source(cell) is not None:
                self._watch_cell(cell, name, is_first=False)

    def note(self) -> None:
        """Tell the watch which functions ran."""
        for function in self.functions:
            self._log.ran(function.__code__, function.__module__, rewritten=True)
        for code, namespace in self.capture.executed.codes.items():
            if not self._front_end.is_converted(code):
                self._log.ran(code, namespace.get("__name__"), rewritten=False)
