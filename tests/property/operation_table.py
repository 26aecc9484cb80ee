"""The table of operations and kinds: what a capture makes of each pair, beside what eager PyTorch does.

It is kept in ``tests/golden/operations.txt``: a row for each operation, in which each kind has one sign.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import stillgraph as sg
from stillgraph.core.diagnostics import CaptureError
from tests.front_ends import through_bytecode
from tests.property.operations import KINDS, OPERATIONS
from tests.property.written_kinds import written_of

TABLE = Path(__file__).parents[1] / "golden" / "operations.txt"
INPUTS = ((1.0, 2.0), (-1.0, -2.0), (2.0, 1.0))
SIGNS = {
    ".": "as in eager PyTorch: value, type, error, what is printed and what is left in the argument",
    "t": "another text of an error",
    "e": "another class of an error",
    "V": "another value, or an error where there is none, or none where there is one",
    "X": "fails with an error of ours that names no reason",
    **{chr(ord("0") + at): code for at, code in enumerate(("SG201", "SG202", "SG203", "SG204", "SG206", "SG209"))},
    **dict(zip("6789", ("SG210", "SG211", "SG301", "SG302"))),
    **dict(zip("abcd", ("SG304", "SG305", "SG306", "SG310"))),
}
"""What the signs mean; of a code: a full graph is refused with that reason."""

_OF_CODE = {meaning: sign for sign, meaning in SIGNS.items() if meaning.startswith("SG")}


@dataclass(frozen=True)
class Outcome:
    """What a call does: the class of the error that it raises, if it does, and all that is seen of it, as text."""

    raised: str
    seen: str


@dataclass(frozen=True)
class Cell:
    """A pair's sign, and what a reader needs to see why."""

    sign: str
    why: str = ""


def cell(folder: Path, kind: str, operation: str, *, bytecode: bool = False) -> Cell:
    """What a capture makes of an operation on a value of a kind: the first call that differs or is refused says it."""
    statements, _, expression = operation.rpartition(";;")
    body = f"{statements.rstrip()}\nfound = {expression.strip()}".strip()
    function = written_of(folder, KINDS[kind], body)
    with through_bytecode() if bytecode else contextlib.nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # by which a call is told that was made in plain PyTorch
        compiled = sg.to_static(function, backend="eager", full_graph=True)
        for values in INPUTS:
            wanted = _outcome(function, values)
            try:
                found = _outcome(compiled, values)
            except (CaptureError, RuntimeWarning) as refused:
                codes = re.findall(r"reason (SG\d+)", str(refused))
                return Cell(_OF_CODE.get(codes[-1] if codes else "", "X"), str(refused))
            if found != wanted:
                return Cell(_difference(found, wanted), f"{found} for {wanted}")
    return Cell(".")


def _difference(found: Outcome, wanted: Outcome) -> str:
    if "InternalError" in found.seen:
        return "X"
    if bool(found.raised) != bool(wanted.raised) or not wanted.raised:
        return "V"
    return "e" if found.raised != wanted.raised else "t"


def _outcome(function: Callable[[torch.Tensor], Any], values: tuple[float, ...]) -> Outcome:
    """What a call gives or raises, prints, and leaves in its argument, without addresses."""
    x, printed = torch.tensor(values), io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = function(x)
            raised = result[0] if _is_handled(result) else ""
            shown = f"{type(result).__name__}: {result!r}"
        except (CaptureError, RuntimeWarning):
            raise
        except Exception as error:  # of any kind: it is compared
            raised, shown = f"past the handler, {type(error).__name__}", str(error)
    return Outcome(raised, re.sub(r"0x[0-9a-f]+", "0x", f"{shown} {x} {printed.getvalue()}"))


def _is_handled(result: Any) -> bool:
    """Whether a function's result is the name and text of an exception, which it has caught."""
    is_pair = type(result) is tuple and len(result) == 2
    return is_pair and re.fullmatch(r"\w+(Error|Exit|Iteration)", str(result[0])) is not None


# ---- the table
def read() -> dict[tuple[str, str], str]:
    """The signs, by kind and operation."""
    rows = TABLE.read_text(encoding="utf-8").splitlines()
    told = [row.split(" ", 1) for row in rows if not row.startswith("#")]
    by_operation = {ast.literal_eval(shown): signs for signs, shown in told}
    return {(kind, op): sign for op, signs in by_operation.items() for kind, sign in zip(KINDS, signs, strict=True)}


def write(signs: dict[tuple[str, str], str]) -> None:
    """Write the table; a pair without a sign gets a question mark."""
    lines = ["# The columns: " + ", ".join(KINDS) + "."]
    lines += [f"# {sign} {meaning}" for sign, meaning in SIGNS.items()]
    for operation in OPERATIONS:
        lines.append(f"{''.join(signs.get((kind, operation), '?') for kind in KINDS)} {operation!r}")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
