"""An explanation as plain text."""

from __future__ import annotations

from collections import Counter

from stillgraph.report.explained import Explained
from stillgraph.report.lines import SourceFunction

_NAMED = 6  # of the functions that were left to Python


def plain_text(explanation: Explained) -> str:
    """The whole of it, without colours, for files and pipes."""
    if explanation.refused is not None:
        return "\n".join(_refusal(explanation))
    return "\n".join([*_summary(explanation), "", str(explanation.program)])


def _summary(explanation: Explained) -> list[str]:
    count, regions = explanation.nodes, explanation.regions
    lines = [
        f"{explanation.name}: {count} operation{_s(count)} in {regions} region{_s(regions)}, "
        f"captured in {explanation.seconds:.3f} s"
    ]
    for construct in explanation.staged:
        place = f"{construct.file.rsplit('/', 1)[-1]}:{construct.line}"
        lines.append(f"{'  ' * (construct.depth + 1)}{construct.kind} staged at {place}")
    for decision in explanation.decisions:
        place = f"{decision.file.rsplit('/', 1)[-1]}:{decision.line}"
        lines.append(f"  {decision.kind} evaluated at {place}: {decision} ({decision.reason})")
    for special in explanation.specialised:
        places = ", ".join(dict.fromkeys(map(str, special.places)))
        lines.append(f"  specialised on {special.spelled} at {places} (SG601)")
    left = list(dict.fromkeys(function.name for function in explanation.functions if not function.rewritten))
    if left:
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        lines.append(f"  left to Python: {', '.join(left[:_NAMED])}{more} (SG605)")
    if explanation.program is not None:
        kinds = Counter(i.kind for i in explanation.program.inputs)
        lines.append("  inputs: " + ", ".join(f"{count} {kind}{_s(count)}" for kind, count in kinds.items()))
    lines += [f"  split: {split}" for split in explanation.splits]
    lines.append(f"  guards: {explanation.sizes.guards}; effects: {len(explanation.effects)}")
    lines += [f"    {effect}" for effect in explanation.effects]
    return lines


def _refusal(explanation: Explained) -> list[str]:
    refused = explanation.refused
    assert refused is not None
    lines = [f"{explanation.name}: refused", "", refused.text]
    for function in explanation.functions:
        if any(line.mark == "refused" for line in function.lines):
            lines += ["", f"{function.name}  {function.file.rsplit('/', 1)[-1]}:{function.line}"]
            lines += source_text(function)
    return lines


def source_text(function: SourceFunction) -> list[str]:
    """A function's lines, each with its number and its mark."""
    width = len(str(function.lines[-1].number)) if function.lines else 1
    return [
        f"{'>' if line.mark == 'refused' else ' '} {line.number:>{width}}  {line.mark:<11}  {line.text}".rstrip()
        for line in function.lines
    ]


def _s(count: int) -> str:
    return "" if count == 1 else "s"
