"""Five real programs captured whole, compared with eager PyTorch, and written to files.

Each part is a module of its own that is imported only when it runs: what it needs beyond torch is optional.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from stillgraph.demo.outcome import Outcome, node_count, regions


@dataclass(frozen=True)
class Part:
    """One part: its module here, its name, what it shows, and the packages it needs."""

    module: str
    name: str
    what: str
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """The needed packages that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]

    def run(self, out: Path) -> Outcome:
        """Carry out the part, writing its files to `out`."""
        outcome = importlib.import_module(f"{__name__}.{self.module}").run(out)
        assert isinstance(outcome, Outcome)
        return outcome


PARTS = (
    Part("bert", "BERT", "a training step with the gradient of every parameter", ("transformers",)),
    Part("generate", "generate()", "transformers' own decoding, run from a .pt2 and an .onnx file", ("transformers",)),
    Part(
        "gpt2",
        "GPT-2",
        "a greedy decoding loop, run from an ONNX file",
        ("transformers", "onnx", "onnxscript", "onnxruntime"),
    ),
    Part("early_exit", "early exit", "a return inside the loop over layers, under Inductor"),
    Part("solver", "fixed point", "a loop to a tolerance, run from a .pt2 and an .onnx file"),
)


def run(out: Path, console: Console) -> bool:
    """Run every part and print the table.

    Args:
        out: the folder for the files; made if it is not there.
        console: where progress and the table go.

    Returns:
        True if every part ran and agrees with eager PyTorch.
    """
    out.mkdir(parents=True, exist_ok=True)
    table = _empty_table()
    remarks: list[str] = []
    problems: list[str] = []
    for part in PARTS:
        with console.status(f"{part.name}: {part.what} …"):
            outcome, failure = _attempt(part, out)
        if outcome is None:
            table.add_row("[red]✗", part.name)
            problems.append(f"{part.name}: {failure}")
            continue
        _add_row(table, part, outcome)
        remarks.append(f"{part.name}: {part.what} ({'; '.join(outcome.remarks)})")
        problems.extend(f"{part.name}: {complaint}" for complaint in _complaints(outcome))
    console.print(table)
    for remark in remarks:
        console.print(remark, style="dim", markup=False, highlight=False)
    for problem in problems:
        console.print(problem, style="red", markup=False, highlight=False)
    console.print(f"Files are in {out}", markup=False, highlight=False)
    return not problems


def _attempt(part: Part, out: Path) -> tuple[Outcome | None, str]:
    """The outcome, or None and why there is none: a part that fails must not keep the others from running."""
    if missing := part.missing():
        return None, f"needs {', '.join(missing)}; install stillgraph with its dev extra"
    try:
        return part.run(out), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _empty_table() -> Table:
    table = Table(title="Captured as one program each, compared with eager PyTorch", box=box.SIMPLE_HEAD)
    table.add_column("")
    table.add_column("part", no_wrap=True)
    for name in ("nodes", "regions", "capture s", "difference"):
        table.add_column(name, justify="right")
    table.add_column("files", overflow="fold")
    return table


def _add_row(table: Table, part: Part, outcome: Outcome) -> None:
    table.add_row(
        "[green]✓" if outcome.agrees else "[red]✗",
        part.name,
        str(node_count(outcome.program)),
        str(len(regions(outcome.program))),
        f"{outcome.capture_seconds:.2f}",
        f"{outcome.difference:.1g}",
        "\n".join(file.name for file in outcome.files),
    )


def _complaints(outcome: Outcome) -> list[str]:
    complaints = list(outcome.faults)
    if outcome.difference > outcome.tolerance:
        complaints.append(f"differs from eager PyTorch by {outcome.difference:.3g}")
    return complaints
