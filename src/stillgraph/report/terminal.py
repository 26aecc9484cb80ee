"""An explanation in a terminal: the source with its marks beside it, then the program."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from stillgraph.report.explained import Explained
from stillgraph.report.lines import SourceFunction, SourceLine

STYLES = {
    "refused": "bold red",
    "split": "magenta",
    "staged": "green",
    "specialised": "yellow",
    "evaluated": "blue",
}
_MOST_FUNCTIONS = 12  # whose source is shown; the others are named
_NAMED = 40


class Rendering:
    """What ``rich`` prints for an explanation: in a terminal with colours and panels, anywhere else plain text."""

    def __init__(self, explanation: Explained) -> None:
        self.explanation = explanation

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        explanation = self.explanation
        if not options.is_terminal:
            yield Text(str(explanation))
            return
        yield _headline(explanation)
        shown = _shown(explanation)
        for function in shown:
            yield _source(function)
        rest = [function for function in explanation.functions if function not in shown]
        if rest:
            yield _others(rest)
        yield _legend(explanation)
        if explanation.program is not None:
            yield Panel(Text(str(explanation.program), no_wrap=False), title="program", title_align="left")
            yield _facts(explanation)
        elif explanation.refused is not None:
            yield Panel(Text(explanation.refused.text), title="refused", title_align="left", border_style="red")


def _headline(explanation: Explained) -> Text:
    text = Text(explanation.name, style="bold")
    if explanation.refused is not None:
        return text.append("  refused", style="bold red")
    sizes = explanation.sizes
    told = f"  {sizes.operations} operations in {sizes.regions} regions, captured in {explanation.seconds:.3f} s"
    return text.append(told, style="default")


def _shown(explanation: Explained) -> list[SourceFunction]:
    """The functions whose source is shown: where a call is refused, those on the way there."""
    functions = list(explanation.functions)
    if explanation.refused is not None and len(functions) > 1:
        return [f for f in functions if any(line.mark == "refused" for line in f.lines)] or functions[:1]
    return functions[:_MOST_FUNCTIONS]


def _source(function: SourceFunction) -> Group:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    syntax = Syntax("", "python", background_color="default")
    for line in function.lines:
        table.add_row(str(line.number), _mark(line), syntax.highlight(line.text).split()[0] if line.text else Text())
    file = function.file.rsplit("/", 1)[-1]
    return Group(Text.assemble("\n", (function.name, "bold"), (f"  {file}:{function.line}", "dim")), table)


def _mark(line: SourceLine) -> Text:
    taken = "" if line.visits is None else f" {line.visits}×"
    return Text(f"{line.mark}{taken}".ljust(11), style=STYLES.get(line.mark, "dim"))


def _others(functions: list[SourceFunction]) -> Text:
    names = ", ".join(function.name for function in functions[:_NAMED])
    more = "" if len(functions) <= _NAMED else f" and {len(functions) - _NAMED} more"
    return Text(f"\nand {len(functions)} functions more: {names}{more}", style="dim")


def _legend(explanation: Explained) -> Text:
    text = Text("\n")
    for kind, style in STYLES.items():
        count = sum(function.counts.get(kind, 0) for function in explanation.functions)
        if count:
            text.append(f"{count} {kind}", style=style).append("  ")
    return text


def _facts(explanation: Explained) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for special in explanation.specialised:
        table.add_row("specialised", Text(special.spelled))
    for split in explanation.splits:
        table.add_row("split", Text(split))
    for effect in explanation.effects:
        table.add_row("effect", Text(effect))
    if explanation.cache is not None:
        cache = explanation.cache
        table.add_row("cache", Text(f"{cache.hits} hits, {cache.misses} misses, {cache.programs} programs"))
        if cache.this_call is not None:
            table.add_row("this call", Text(cache.this_call))
    phases = ", ".join(f"{phase.name} {phase.seconds:.3f} s" for phase in explanation.phases)
    table.add_row("time", Text(phases))
    table.add_row("guards", Text(str(explanation.sizes.guards)))
    return table
