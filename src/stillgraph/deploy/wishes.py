"""What a file is to make of printing and of assertions, where the format cannot do as the original does."""

from __future__ import annotations

from dataclasses import dataclass

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.printing import first_told
from stillgraph.passes.raising import drop_assertions
from stillgraph.program.program import Program

OLDEST_OPSET = 18
"""The oldest version of ONNX's operators that the forms of control flow and of exact results are written in."""


@dataclass(frozen=True)
class Wishes:
    """The choices of a save.

    Attributes:
        prints: ``"drop"`` what is printed, logged and warned of (a note says so), or ``"refuse"`` to save it.
        assertions: ``"keep"`` the ``assert`` statements of the original, or ``"drop"`` them (a note says so). What it
            raises otherwise is kept in both cases. ``"return"`` makes of each of both a result that tells whether it
            held.
        opset: of ``.onnx``: the version of ONNX's operators; None for that of `torch.onnx`.
    """

    prints: str = "drop"
    assertions: str = "keep"
    opset: int | None = None

    def check(self, format: str) -> None:
        """Raise `ValueError` for a choice that there is not."""
        for name, value, known in (
            ("prints", self.prints, ("drop", "refuse")),
            ("assertions", self.assertions, ("keep", "drop", "return")),
        ):
            if value not in known:
                raise ValueError(f"{name} is {_either(known)}, not {value!r}")
        if self.opset is not None and format != "onnx":
            raise ValueError(f"opset is a choice for .onnx, not for .{format}")
        if self.opset is not None and (type(self.opset) is not int or self.opset < OLDEST_OPSET):
            raise ValueError(f"opset is the number of a version from {OLDEST_OPSET} on, not {self.opset!r}")
        if format == "python" and self != Wishes():
            raise ValueError("prints and assertions are choices for .pt2 and .onnx; Python source does as the original")

    def settle(self, program: Program) -> tuple[Program, tuple[str, ...]]:
        """The program to save, and what to say of it.

        Raises:
            ExportError: the program prints, and is not to be saved then.
        """
        told = first_told(program)
        if told is not None and self.prints == "refuse":
            message = "the program prints, logs or warns, which the file would not"
            hint = "Save with prints='drop', or return what is to be told."
            raise refuse("SG402", message, location=told.meta.get("location"), hint=hint)
        if self.assertions != "drop":
            return program, ()
        without = drop_assertions(program)
        return without, () if without is program else ("the file does not check the original's assertions",)


def _either(known: tuple[str, ...]) -> str:
    *others, last = map(repr, known)
    return f"{', '.join(others)} or {last}"


DEFAULT = Wishes()
