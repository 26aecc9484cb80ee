"""Four real programs captured whole, compared with eager PyTorch, and written to files.

Each part is a module of its own that is imported only when it runs: what it needs beyond torch is optional.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from stillgraph.demo.outcome import Outcome, node_count, regions


@dataclass(frozen=True)
class Part:
    """One part: its module here, what it shows, and the packages it needs."""

    module: str
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
    Part("bert", "BERT: a training step, gradients and all", ("transformers",)),
    Part("gpt2", "GPT-2: a greedy decoding loop as ONNX", ("transformers", "onnx", "onnxscript", "onnxruntime")),
    Part("early_exit", "Early exit: return inside the loop over layers"),
    Part("solver", "Fixed point: iterate to a tolerance, saved as .pt2"),
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
    problems: list[str] = []
    for part in PARTS:
        if missing := part.missing():
            table.add_row("[yellow]–", part.what, *[""] * 5)
            problems.append(f"{part.module}: needs {', '.join(missing)}; install stillgraph with its dev extra")
            continue
        with console.status(f"{part.what} …"):
            try:
                outcome = part.run(out)
            except Exception as error:  # a part that fails must not keep the others from running
                table.add_row("[red]✗", part.what, *[""] * 5)
                problems.append(f"{part.module}: {type(error).__name__}: {error}")
                continue
        _add_row(table, part, outcome)
        problems.extend(_complaints(part, outcome))
    console.print(table)
    for problem in problems:
        console.print(problem, style="red", markup=False)
    return not problems


def _empty_table() -> Table:
    table = Table(title="Captured as one program each, compared with eager PyTorch")
    table.add_column("")
    table.add_column("part")
    for name in ("nodes", "regions", "capture s", "difference"):
        table.add_column(name, justify="right")
    table.add_column("files")
    return table


def _add_row(table: Table, part: Part, outcome: Outcome) -> None:
    table.add_row(
        "[green]✓" if outcome.agrees else "[red]✗",
        f"{part.what}\n[dim]{'; '.join(outcome.remarks)}",
        str(node_count(outcome.program)),
        str(len(regions(outcome.program))),
        f"{outcome.capture_seconds:.2f}",
        f"{outcome.difference:.1g}",
        "\n".join(file.name for file in outcome.files),
    )


def _complaints(part: Part, outcome: Outcome) -> list[str]:
    complaints = [f"{part.module}: {fault}" for fault in outcome.faults]
    if outcome.difference > outcome.tolerance:
        complaints.append(f"{part.module}: differs from eager by {outcome.difference:.3g}")
    return complaints
