"""What becomes of calls without a full graph: the segments, what Python does between them, and how they follow."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from stillgraph.core.location import Location
from stillgraph.core.parcel import PREFIX
from stillgraph.core.reasons import REASONS
from stillgraph.program.guards import FunctionGuard
from stillgraph.program.printer import guard_texts
from stillgraph.program.program import Program
from stillgraph.report.explained import as_json

_ARGUMENT = re.compile(rf"args\[(\d+)\](?:\.{PREFIX}\d+)?")
_OF_CLOSURE = re.compile(r"([\w.\[\]]+?)\.__closure__\[(\d+)\](?:\.cell_contents)?")
_OURS = re.compile(r"\bParcel\b|is a cell$")
_HANDED_OUT = re.compile(r" -> \(suspended, .*\)(?=  |$)")
_FEW = 3

SCHEMA = 1
"""The version of `PlanExplanation.to_dict`."""


@dataclass(frozen=True)
class Break:
    """What Python does between two segments.

    Attributes:
        text: the step, with the names of the values that the segment before it hands out.
        result: the name of what it gives; None where nothing is done with that.
        reason: why it is no part of a program.
        place: the user's line.
        callers: the lines that called the function which it stands in, the outermost first.
        code: of the refusal that a program with it would be, as in ``stillgraph errors``; None where it is none.
        advice: what to do for a program to go on there; None where there is nothing to be done.
        cause: the line that a program would be refused for, inside of what the step calls; None where it is none.
    """

    text: str
    result: str | None
    reason: str
    place: Location | None
    callers: tuple[Location, ...] = ()
    code: str | None = None
    advice: str | None = None
    cause: Location | None = None

    @property
    def cause_of_it(self) -> tuple[Any, ...]:
        """What it has in common with the step behind another program, where values may have other names."""
        where = (self.text, self.result) if self.place is None or self.place.column is None else (self.place,)
        return (*where, self.callers, self.reason, self.code, self.cause)

    @property
    def why(self) -> str:
        """The reason, with its name in the catalogue."""
        return self.reason if self.code is None else f"{self.reason} ({self.code}, {REASONS[self.code].title})"


@dataclass(frozen=True)
class Subgraph:
    """A program of a part of a call.

    Attributes:
        number: of the subgraph.
        program: it; its inputs, statements, guards and effects can be read and printed.
        takes: the names of all values that are at hand where it begins, in their order.
        inputs: the names of those that it computes with.
        outputs: the names of what it computes and hands out.
        step: what Python does behind it; None where the call ends with it.
        goes_on: at which entries calls have gone on behind that, by their numbers; None for the end of the call.
        then: what Python does besides on the way there, as the user wrote it, where there is one way.
        last: the statement with which calls end there: what they return, or ``raise …``; None where they go on.
    """

    number: int
    program: Program
    takes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    step: Break | None
    goes_on: tuple[int | None, ...]
    then: tuple[Break, ...] = ()
    last: str | None = None

    @property
    def name(self) -> str:
        """As the plan calls it."""
        return f"region_{self.number}"

    @property
    def is_last(self) -> bool:
        """Whether the call ends with the program, or with Python's step behind it."""
        return self.step is None or self.step.text.split()[0] in ("return", "raise")

    @property
    def statements(self) -> tuple[str, ...]:
        """The lines of its program, without head and guards."""
        lines = str(self.program).splitlines()
        return tuple(line for line in lines[1:] if not line.startswith(("guards", "effects")) and line[:1] == " ")

    @property
    def guards(self) -> tuple[str, ...]:
        """What has to hold for it to be used."""
        return tuple(self.named(text) for text in guard_texts(self.program))

    def apart_from(self, others: Sequence[Subgraph]) -> tuple[str, ...]:
        """Some of the guards, of whatever kind, that others, of which the same guards are shown, do not have."""
        twins = [each for each in others if each is not self and each.guards == self.guards]
        texts = [self.named(str(guard)) for guard in self.program.guards if twins]
        known = [{each.named(str(guard)) for guard in each.program.guards} for each in twins]
        new = dict.fromkeys(text for text in texts if any(text not in each for each in known))
        told = [text for text in new if len(text) < _WIDTH and not _OURS.search(text)]
        return tuple(told[:_FEW])

    def named(self, text: str) -> str:
        """A line of the program, or a guard, with the names of the values in the place of where they are."""
        text = self._with_arguments(text)
        text = _OF_CLOSURE.sub(lambda found: self._free_variable(found[1], int(found[2])) or found[0], text)
        return text.replace(".cell_contents", "")

    def _with_arguments(self, text: str) -> str:
        return _ARGUMENT.sub(lambda found: self.takes[int(found[1])], text)

    def _free_variable(self, function: str, number: int) -> str | None:
        """The name of a variable that a function has from around it; None where its code is not known."""
        codes = [each for each in self.program.guards if isinstance(each, FunctionGuard)]
        found = next((each.code for each in codes if self._with_arguments(str(each.source)) == function), None)
        return None if found is None else found.co_freevars[number]

    @property
    def lines(self) -> str:
        """The user's lines that it stands for."""
        found = [_line_in_function(each) for each in self.program.source_map.values() if each is not None]
        if not found:
            return "nothing is computed"
        return f"line {min(found)}" if min(found) == max(found) else f"lines {min(found)}-{max(found)}"


def _line_in_function(place: Location) -> int:
    """The line of a place; where that is in another file than the function, that of the function's that called."""
    own = place.callers[0] if place.callers else place
    return place.line if place.file == own.file else own.line


def _at(place: Location | None, step: Break) -> str:
    """The line of what Python does, with the file where that is another one than the function's."""
    if place is None:
        return ""
    own = step.callers[0] if step.callers else step.place
    if own is None or place.file == own.file:
        return f"line {place.line}, "
    folder, name = os.path.split(place.file)
    name = os.path.join(os.path.basename(folder), name) if name == "__init__.py" else name
    return f"line {place.line} of {name}, "


@dataclass(frozen=True)
class Entry:
    """A place where segments begin: the function itself, or behind a step of Python's.

    Attributes:
        number: of the place.
        name: of the function, or of the place.
        parameters: what a program gets there.
        subgraphs: the programs that begin there; which one is run, its guards say.
    """

    number: int
    name: str
    parameters: str
    subgraphs: tuple[Subgraph, ...]


@dataclass(frozen=True, repr=False)
class PlanExplanation:
    """What became of the calls so far of a function that is static without a full graph.

    Attributes:
        name: of the function.
        entries: the places where its segments begin, the function's own first.
        gave_up: why calls are made in plain PyTorch from now on; None where they are not.
        whole: the call itself, where it is one step of Python's: a generator function's, a coroutine function's.
    """

    name: str
    entries: tuple[Entry, ...]
    gave_up: str | None = None
    whole: Break | None = None

    @property
    def subgraphs(self) -> tuple[Subgraph, ...]:
        """All programs."""
        return tuple(each for entry in self.entries for each in entry.subgraphs)

    @property
    def breaks(self) -> tuple[Break, ...]:
        """All steps that Python does, each once: what stands in one place for one reason is one."""
        found: dict[Any, Break] = {}
        for step in self._steps():
            found.setdefault(step.cause_of_it, step)
        return tuple(found.values())

    def _steps(self) -> Iterator[Break]:
        steps = (self.whole, *(each.step for each in self.subgraphs))
        return (step for step in steps if step is not None)

    def count_of(self, step: Break) -> int:
        """Behind how many programs a step is."""
        return sum(each.cause_of_it == step.cause_of_it for each in self._steps())

    @property
    def code(self) -> str:
        """The plan, as a Python function that a person can follow."""
        return "\n\n".join(_written(self))

    def to_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists, texts, numbers and None; of a program its text."""
        entries = [
            {"number": entry.number, "name": entry.name, "parameters": entry.parameters,
             "subgraphs": [_plain_subgraph(each) for each in entry.subgraphs]}
            for entry in self.entries
        ]
        breaks = [_plain_break(step) for step in self.breaks]
        own = {"name": self.name, "gave_up": self.gave_up, "whole": _plain_break(self.whole)}
        return {"schema": SCHEMA, **own, "breaks": breaks, "entries": entries, "code": self.code}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON.

        Args:
            path: of a file to write it to, too; it appears whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        return as_json(self.to_dict(), path)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        """In one line, for a prompt."""
        counts = f"{len(self.subgraphs)} subgraphs, {len(self.breaks)} breaks"
        return f"<plan of {self.name}: {counts}; print() shows it, and .code the function>"

    def __str__(self) -> str:
        return "\n".join(_told(self))


# ---- as plain data
def _plain_break(step: Break | None) -> dict[str, Any] | None:
    if step is None:
        return None
    place, callers = step.place, [_plain_place(each) for each in step.callers]
    why = {"reason": step.reason, "code": step.code, "advice": step.advice}
    places = {"place": place and _plain_place(place), "cause": step.cause and _plain_place(step.cause)}
    return {"text": step.text, "result": step.result, **why, **places, "callers": callers}


def _plain_place(place: Location) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column, "function": place.function}


def _plain_subgraph(each: Subgraph) -> dict[str, Any]:
    texts = {name: list(getattr(each, name)) for name in ("takes", "inputs", "outputs", "statements", "guards")}
    follows = {"goes_on": list(each.goes_on), "then": [_plain_break(step) for step in each.then], "last": each.last}
    step = _plain_break(each.step)
    return {"number": each.number, "name": each.name, "lines": each.lines, **texts, "step": step, **follows}


# ---- as Python
def _written(plan: PlanExplanation) -> Iterator[str]:
    reached = [number for each in plan.subgraphs for number in each.goes_on]
    alone = {each.goes_on[0] for each in plan.subgraphs if len(each.goes_on) == 1}
    inline = {number for number in alone if number is not None and reached.count(number) == 1}
    for entry in plan.entries:
        if entry.number not in inline or entry.number == 0:
            lines = list(_body(plan, entry, inline, frozenset({entry.number})))
            yield "\n".join([f"def {entry.name}{entry.parameters}:", *(f"    {line}" for line in lines)])


def _body(plan: PlanExplanation, entry: Entry, inline: set[int], inside: frozenset[int]) -> Iterator[str]:
    if plan.whole is not None:
        yield _with_comment(f"return {plan.whole.text}", f"by Python: {plan.whole.why}")
        return
    if not entry.subgraphs:
        told = "no call has come here yet" if plan.gave_up is None else f"by plain PyTorch: {plan.gave_up}"
        yield f"...  # {told}"
    several = len(entry.subgraphs) > 1
    for position, each in enumerate(entry.subgraphs):
        if several:
            yield f"{'elif' if position else 'if'} guards_{each.number}({', '.join(each.inputs)}):"
        for line in _segment(plan, each, inline, inside, each.apart_from(entry.subgraphs)):
            yield f"    {line}" if several else line


def _segment(
    plan: PlanExplanation, each: Subgraph, inline: set[int], inside: frozenset[int], also: tuple[str, ...]
) -> Iterator[str]:
    for guard in textwrap.wrap("; ".join([*each.guards[:_SHOWN], *also]), _WIDTH):
        yield f"# {guard}"
    if len(each.guards) > _SHOWN:
        yield f"# and {len(each.guards) - _SHOWN} more guards"
    call = f"{each.name}({', '.join(each.inputs)})"
    if each.step is None:
        yield _with_comment(f"return {call}", each.lines)
        return
    yield _with_comment(f"{', '.join(each.outputs)} = {call}" if each.outputs else call, each.lines)
    step = each.step if each.step.result is None else None
    text = each.step.text if step is not None else f"{each.step.result} = {each.step.text}"
    yield _with_comment(text, f"{_at(each.step.place, each.step)}by Python: {each.step.reason}")
    for further in each.then:
        yield _with_comment(further.text, f"{_at(further.place, each.step)}by Python as well")
    names = [_name(plan, number) for number in each.goes_on if number is not None]
    if len(each.goes_on) == 1 and each.goes_on[0] is not None and each.goes_on[0] in inline - inside:
        following = plan.entries[each.goes_on[0]]
        yield from _body(plan, following, inline, inside | {following.number})
    elif names:
        ending = ["the call ends"] if None in each.goes_on else []
        comment = " or ".join([*(f"at {name}" for name in names[1:]), *ending])
        yield _with_comment(f"return {names[0]}(...)", f"or {comment}" if comment else "")
    elif not each.is_last:
        yield each.last or "...  # no call has gone on from here"


_SHOWN = 6
_WIDTH = 100
_COLUMN = 48


def _with_comment(text: str, comment: str) -> str:
    return f"{text:<{_COLUMN}}  # {comment}" if comment else text


def _name(plan: PlanExplanation, number: int) -> str:
    return plan.entries[number].name


# ---- as a report
def _told(plan: PlanExplanation) -> Iterator[str]:
    count, breaks = len(plan.subgraphs), plan.breaks
    yield f"{plan.name}: {_counted(count, 'subgraph')}, {_counted(len(breaks), 'break')}"
    if plan.gave_up is not None:
        yield f"calls are made in plain PyTorch from now on: {plan.gave_up}"
    for step in breaks:
        yield ""
        count = plan.count_of(step)
        often = "" if count == 1 else f"  (behind {count} programs)"
        yield f"break at {step.place or 'an unknown line'}: {step.text}{often}"
        yield f"  {step.why}"
        if step.cause is not None and str(step.cause) != str(step.place):
            yield f"  at {step.cause}"
        text = None if step.place is None else step.place.source_line()
        if text is not None:
            yield f"    {text.strip()}"
        if step.advice is not None:
            yield f"  hint: {step.advice}"
    for each in plan.subgraphs:
        yield ""
        gives = "the result" if each.step is None else ", ".join(each.outputs) or "nothing"
        yield f"{each.name} ({each.lines}): {', '.join(each.inputs) or 'nothing'} -> {gives}"
        head, *lines = str(each.program).splitlines()
        if each.step is not None:  # it hands out values, and more for itself
            head = _HANDED_OUT.sub(f" -> ({', '.join(each.outputs)})", head)
        yield from (f"  {each.named(line)}" for line in (head, *lines))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def names_in_turn(names: Sequence[str]) -> list[str]:
    """Names, each made another one where it stands there already."""
    found: list[str] = []
    for name in names:
        fresh, count = name, 2
        while fresh in found:
            fresh, count = f"{name}_{count}", count + 1
        found.append(fresh)
    return found
