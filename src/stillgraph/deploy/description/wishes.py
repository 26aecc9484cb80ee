"""What a file is to make of printing, assertions and loops, where it cannot do as the original does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch._ops import OpOverload

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.exceptions.printing import first_told
from stillgraph.passes.exceptions.raising import drop_assertions
from stillgraph.passes.loops.bounding import loop_lines, with_bounds
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
        max_iterations: the most iterations of each loop, or by line of those at this line: the file has no ``while``,
            and fails where a loop wants more. None for loops as they are.
        input_names, output_names: of ``.onnx``: names of the first inputs and results; the others keep theirs.
        external_data: of ``.onnx``: whether the weights are in a file of their own; None: above 1 GiB.
        translations: of ``.onnx``: by operator what is written for it, an onnxscript function.
        time_limit: the seconds that the program, and then the file, may run on the example call; None for no bound.
    """

    prints: str = "drop"
    assertions: str = "keep"
    opset: int | None = None
    max_iterations: int | Mapping[int, int] | None = None
    time_limit: float | None = None
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    external_data: bool | None = None
    translations: Mapping[Any, Any] = field(default_factory=dict)

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
        self._check_weights_and_translations(format)
        self._check_names(format)
        bounds = self.max_iterations
        for bound in bounds.values() if isinstance(bounds, Mapping) else () if bounds is None else (bounds,):
            if type(bound) is not int or bound < 1:
                raise ValueError(f"max_iterations is a number from 1 on, or a dict of such by line, not {bound!r}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit is a number of seconds above 0, not {self.time_limit!r}")
        if format == "python" and replace(self, time_limit=None) != Wishes():
            message = "prints, assertions and max_iterations are choices for .pt2 and .onnx"
            raise ValueError(f"{message}; Python source does as the original")

    def _check_weights_and_translations(self, format: str) -> None:
        if self.external_data not in (None, True, False):
            raise ValueError(f"external_data is True, False or None, not {self.external_data!r}")
        if self.external_data is not None and format != "onnx":
            raise ValueError(f"external_data is a choice for .onnx, not for .{format}")
        if self.translations and format != "onnx":
            raise ValueError(f"custom_translation_table is a choice for .onnx, not for .{format}")
        if not isinstance(self.translations, Mapping):
            raise ValueError(f"custom_translation_table is a dict by operators, not {self.translations!r}")
        for operator, written in self.translations.items():
            if not isinstance(operator, OpOverload):
                message = f"an operator such as torch.ops.mine.name.default, not {operator!r}"
                raise ValueError(f"custom_translation_table: a key is {message}")
            if not callable(written):
                raise ValueError(f"custom_translation_table has {written!r} for {operator}, which is no function")

    def _check_names(self, format: str) -> None:
        for option, names in (("input_names", self.input_names), ("output_names", self.output_names)):
            if names and format != "onnx":
                raise ValueError(f"{option} is a choice for .onnx, not for .{format}")
            if not all(isinstance(name, str) and name for name in names):
                raise ValueError(f"{option} is a list of names, not {list(names)!r}")
        both = [*self.input_names, *self.output_names]
        twice = [name for index, name in enumerate(both) if name in both[:index]]
        if twice:
            raise ValueError(f"input_names and output_names: {twice[0]!r} is there twice")

    def check_lines(self, programs: Iterable[Program]) -> None:
        """Raise `ValueError` for a bound of loops at a line where none of the programs has one."""
        if isinstance(self.max_iterations, Mapping):
            lines = {line for program in programs for line in loop_lines(program)}
            for line in self.max_iterations:
                if line not in lines:
                    there = f"; there are some at {', '.join(map(str, sorted(lines)))}" if lines else ""
                    raise ValueError(f"max_iterations: there is no loop at line {line}{there}")

    def settle(self, program: Program) -> tuple[Program, tuple[str, ...]]:
        """The program to save, and what to say of it.

        Raises:
            ExportError: the program prints, and is not to be saved then; or it has a loop without a bound.
        """
        told = first_told(program)
        if told is not None and self.prints == "refuse":
            message = "the program prints, logs or warns, which the file would not"
            hint = "Save with prints='drop', or return what is to be told."
            raise refuse("SG402", message, location=told.meta.get("location"), hint=hint)
        notes: tuple[str, ...] = ()
        if self.assertions == "drop":
            without = drop_assertions(program)
            notes = () if without is program else ("the file does not check the original's assertions",)
            program = without
        if self.max_iterations is not None:
            program = with_bounds(program, self.max_iterations)
        return program, notes


def _either(known: tuple[str, ...]) -> str:
    *others, last = map(repr, known)
    return f"{', '.join(others)} or {last}"


DEFAULT = Wishes()
