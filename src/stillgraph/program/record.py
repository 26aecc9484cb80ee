"""`Record`: what a capture did besides making the program, for those who ask how it came to be."""

from __future__ import annotations

from dataclasses import dataclass

from stillgraph.core.location import Location


@dataclass(frozen=True)
class RanFunction:
    """A function of the user's, or of a library's, that ran during capture.

    Attributes:
        file: where it stands.
        line: its first line, decorators included.
        name: its qualified name.
        module: the module whose globals it reads; empty where nobody knows.
        free: the names of the outer variables that it reads.
        rewritten: whether operators decided its control flow; if not, Python did.
    """

    file: str
    line: int
    name: str
    module: str = ""
    free: tuple[str, ...] = ()
    rewritten: bool = True


@dataclass(frozen=True)
class Decision:
    """A construct that Python decided during capture, so that nothing of it is in the program.

    Attributes:
        kind: ``"if"``, ``"if expression"``, ``"while"`` or ``"for"``.
        file, line: where it stands.
        outcomes: of a condition, the truth values it had.
        iterations: of a loop, how many iterations it was unrolled into, in ascending order: one number for each
            length that occurred.
    """

    kind: str
    file: str
    line: int
    outcomes: tuple[bool, ...] = ()
    iterations: tuple[int, ...] = ()

    @property
    def reason(self) -> str:
        """The code of what was done."""
        return "SG604" if self.iterations else "SG606"

    def __str__(self) -> str:
        if self.iterations:
            least, most = self.iterations[0], self.iterations[-1]
            count = str(least) if least == most else f"{least} to {most}"
            return f"unrolled: {count} iteration{'' if count == '1' else 's'}"
        if len(self.outcomes) > 1:
            return "the condition was true at times and false at others"
        return f"the condition was {str(self.outcomes[0]).lower()}" if self.outcomes else "decided by Python"


@dataclass(frozen=True)
class SizeRead:
    """A line that read the shape of a tensor, which is the same in every call of the program."""

    location: Location
    shape: tuple[int, ...]


START_UP = "torch's start-up"
"""The phase in which torch loads what it loads once in a process. It is no part of a capture's time."""


@dataclass(frozen=True)
class MetadataRead:
    """A line that asked a tensor for something besides its contents and sizes.

    Attributes:
        location: the line, with the columns of the expression.
        name: of the attribute or method.
        values: what it gave, each value once, at most four; of what has no short text, nothing.
    """

    location: Location
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Phase:
    """A part of the work, and how many seconds it took."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Record:
    """What a capture did.

    Attributes:
        functions: those that ran, in the order in which they were first called.
        lines: by file, the lines that ran; empty where nobody watched.
        decisions: what Python decided.
        sizes: where shapes were read.
        metadata: where other metadata of tensors was read.
        phases: what took how long; the phases do not overlap. `START_UP` is among them where torch was not loaded yet.
        attempts: how often the function was run, for a capture begins anew when it learns something on the way.
        recorded: where operations were recorded, those that were dropped again included; empty where nobody watched.
        branched: by file and line, where a condition was made a branch; empty where nobody watched.
    """

    functions: tuple[RanFunction, ...] = ()
    lines: tuple[tuple[str, tuple[int, ...]], ...] = ()
    decisions: tuple[Decision, ...] = ()
    sizes: tuple[SizeRead, ...] = ()
    phases: tuple[Phase, ...] = ()
    attempts: int = 1
    recorded: tuple[Location, ...] = ()
    branched: tuple[tuple[str, int], ...] = ()
    metadata: tuple[MetadataRead, ...] = ()

    @property
    def start_up(self) -> float:
        """How many seconds torch took to load what it loads once in a process; 0 for all captures but the first."""
        return sum(phase.seconds for phase in self.phases if phase.name == START_UP)
