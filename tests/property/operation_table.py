"""One cell of the table of operations and kinds: what a capture makes of it, beside what eager PyTorch does."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

import stillgraph as sg
from stillgraph.core.diagnostics import CaptureError
from tests.front_ends import through_bytecode
from tests.property.operations import KINDS
from tests.property.written_kinds import written_of

ANSWERED = "."
INPUTS = ((1.0, 2.0), (-1.0, -2.0), (2.0, 1.0))


class Differs(AssertionError):
    """A capture gives something else than eager PyTorch."""


def cell(folder: Path, kind: str, operation: str, *, bytecode: bool = False) -> str:
    """`ANSWERED`, or the code of the reason why a full graph is refused.

    Raises:
        Differs: a call gives another value, type, error or print than eager PyTorch, or ends in an error of ours.
    """
    statements, _, expression = operation.rpartition(";;")
    body = f"{statements.rstrip()}\nfound = {expression.strip()}".strip()
    function = written_of(folder, KINDS[kind], body)
    with through_bytecode() if bytecode else contextlib.nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # by which a call is told that was made in plain PyTorch
        compiled = sg.to_static(function, backend="eager", full_graph=True)
        for values in INPUTS:
            wanted = _told(function, values)
            try:
                found = _told(compiled, values)
            except (CaptureError, RuntimeWarning) as refused:
                code = re.findall(r"reason (SG\d+)", str(refused))[-1:] or ["SG307"]
                if code == ["SG307"]:
                    raise Differs(f"{kind}: {operation}: {refused}") from refused
                return code[0]
            except Exception as error:
                raise Differs(f"{kind}: {operation}: {type(error).__name__}: {error}") from error
            if found != wanted:
                raise Differs(f"{kind}: {operation}: {found} for {wanted}")
    return ANSWERED


def _told(function: FunctionType | Any, values: tuple[float, ...]) -> tuple[str, str]:
    """What a call gives, what it prints, and what it leaves in its argument, without addresses."""
    x, printed = torch.tensor(values), io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = function(x)
            shown = f"{type(result).__name__}: {result!r}"
        except (CaptureError, RuntimeWarning):
            raise
        except Exception as error:
            shown = f"raises {type(error).__name__}: {error}"
    return re.sub(r"0x[0-9a-f]+", "0x", f"{shown} {x}"), re.sub(r"0x[0-9a-f]+", "0x", printed.getvalue())
