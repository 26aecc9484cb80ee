"""Coverage: which arms, loops and handlers of static functions the calls so far have gone through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stillgraph.core.location import Location
from stillgraph.program.blocks import Block, blocks
from stillgraph.program.program import Program


@dataclass(frozen=True)
class Arm:
    """A region of a construct, and how often it began; None where only programs that do not count have it.

    ``role`` is ``"then"``, ``"else"``, ``"body"`` or ``"except"``; of a loop also ``"reached"``: how often the loop was
    come to, whether it was entered or not.
    """

    role: str
    count: int | None

    def __str__(self) -> str:
        if self.count is None:
            return f"{self.role} not counted"
        return f"{self.role} {f'{self.count}×' if self.count else 'never'}"


@dataclass(frozen=True)
class CoveredConstruct:
    """A branch, loop, ``try``, recursion or checkpoint of the user's source.

    Attributes:
        kind: ``"if"``, ``"while"``, ``"try"``, ``"recursion"`` or ``"checkpoint"``. A ``for`` that became a loop of the
            program is a ``"while"``; an operand of ``and`` or ``or`` and a conditional expression are an ``"if"``.
        written: what stands in the source for it, where ``kind`` does not say it: ``"and 1"`` is the first operand of
            an ``and`` (``then``: it was true), and so on; ``"if expression"``, ``"comprehension"``.
        location: the user's line; None where it is not known.
        arms: its regions.
        places: how many times it stands in programs: in several of them, or in one for each place that calls it.
    """

    kind: str
    location: Location | None
    arms: tuple[Arm, ...]
    places: int = 1
    written: str = ""

    @property
    def missed(self) -> tuple[str, ...]:
        """The roles of the arms that no call went through, so far as it was counted."""
        return tuple(arm.role for arm in self.arms if arm.count == 0)

    @property
    def place(self) -> str:
        """The file's name and the line."""
        if self.location is None:
            return "?"
        return f"{self.location.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.location.line}"

    def __str__(self) -> str:
        word, _, operand = self.written.partition(" ")
        of = f" (operand {operand} of '{word}')" if operand.isdigit() else ""
        return f"{self.place} {self.kind}{of}: {', '.join(map(str, self._told()))}"

    def _told(self) -> Iterable[Any]:
        counts = {arm.role: arm.count for arm in self.arms}
        if self.kind != "while" or counts["reached"] is None:
            return self.arms
        if not counts["reached"]:
            return ("never reached",)
        return (Arm("reached", counts["reached"]), Arm("body", counts["body"]) if counts["body"] else "never entered")


@dataclass(frozen=True)
class Coverage:
    """What the calls so far have gone through.

    Only what the user wrote and a program decides when it runs is listed: a condition on constants was decided in the
    capture, and what follows a ``break`` is a branch of the program but not of the source.

    Attributes:
        name: of the static function; None for those of the whole process.
        programs: how many programs there are.
        constructs: those of all the programs, in the order of the source. One place of the source is one construct,
            however many programs have it and however often each does.
    """

    name: str | None
    programs: int
    constructs: tuple[CoveredConstruct, ...]

    @property
    def missed(self) -> tuple[CoveredConstruct, ...]:
        """The constructs with an arm that no call went through."""
        return tuple(construct for construct in self.constructs if construct.missed)

    @property
    def counts(self) -> tuple[int, int]:
        """How many arms were gone through, and how many there are, those not counted left out."""
        arms = [arm for construct in self.constructs for arm in construct.arms if arm.role != "reached"]
        known = [arm.count for arm in arms if arm.count is not None]
        return sum(1 for count in known if count), len(known)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return {
            "name": self.name,
            "programs": self.programs,
            "constructs": [
                {
                    "kind": construct.kind,
                    "written": construct.written,
                    "file": None if construct.location is None else construct.location.file,
                    "line": None if construct.location is None else construct.location.line,
                    "places": construct.places,
                    "arms": {arm.role: arm.count for arm in construct.arms},
                }
                for construct in self.constructs
            ],
        }

    def __str__(self) -> str:
        taken, total = self.counts
        programs = f"{self.programs} program{'' if self.programs == 1 else 's'}"
        head = f"{self.name or 'all static functions'}: {taken} of {total} arms taken, in {programs}"
        uncounted = any(arm.count is None for construct in self.constructs for arm in construct.arms)
        hint = ["  (what runs as one compiled graph is not counted: use backend=\"eager\" to count)"]
        return "\n".join([head, *(f"  {construct}" for construct in self.constructs), *hint * uncounted])


Counted = tuple[Program, Sequence[int] | None]
"""A program, and how often each of its regions began; None where it does not count."""


def coverage(name: str | None, counted: Iterable[Counted]) -> Coverage:
    """Sum up what programs have counted.

    Args:
        name: of the static function they belong to, if it is one.
        counted: the programs and their counts.
    """
    found: dict[Any, list[CoveredConstruct]] = {}
    programs = 0
    for program, visits in counted:
        programs += 1
        for construct in _constructs(program, visits):
            where = construct.location
            span = None if where is None else (where.file, where.line, where.column, where.end_column)
            key = construct if span is None else (construct.kind, construct.written, *span)
            found.setdefault(key, []).append(construct)
    merged = [_merged(each) for each in found.values()]
    return Coverage(name, programs, tuple(sorted(merged, key=_in_source)))


def _constructs(program: Program, visits: Sequence[int] | None) -> Iterable[CoveredConstruct]:
    grouped: dict[Any, list[Block]] = {}
    for block in blocks(program.graph)[1:]:
        if block.written:
            grouped.setdefault(block.node, []).append(block)
    for regions in grouped.values():
        kind = regions[0].construct
        arms = tuple(Arm(_role(each), None if visits is None else visits[each.number]) for each in regions)
        written = regions[0].written
        yield CoveredConstruct(kind, regions[0].location, arms, written="" if written == kind else written)


def _role(block: Block) -> str:
    return "reached" if block.role == "test" else block.role


def _merged(same: list[CoveredConstruct]) -> CoveredConstruct:
    arms = []
    for role in dict.fromkeys(arm.role for construct in same for arm in construct.arms):
        counts = [arm.count for construct in same for arm in construct.arms if arm.role == role]
        known = [count for count in counts if count is not None]
        arms.append(Arm(role, sum(known) if known else None))
    return CoveredConstruct(same[0].kind, same[0].location, tuple(arms), len(same), same[0].written)


def _in_source(construct: CoveredConstruct) -> tuple[str, int, int, str]:
    where = construct.location
    return ("", 0, 0, "") if where is None else (where.file, where.line, where.column or 0, construct.written)
