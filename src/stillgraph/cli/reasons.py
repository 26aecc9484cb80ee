"""The command `errors`: the codes of refusals, explained."""
from __future__ import annotations

import click

from stillgraph.cli import sections
from stillgraph.cli.failures import OUT
from stillgraph.cli.usage import WrongUsage
from stillgraph.core.reasons import REASONS, Reason


def errors(code: str | None) -> None:
    """See `commands.errors`."""
    if code is None:
        click.echo("\n".join(f"{reason.code}  {reason.title}" for reason in REASONS.values()))
        return
    reason = _reason(code)
    parts = sections.section(reason.code)
    if parts:
        sections.show(f"{reason.code} {reason.title}", parts, OUT)
    else:
        click.echo(_told(reason))


def _reason(text: str) -> Reason:
    """The reason that is meant by ``SG201``, ``sg201`` or ``201``."""
    code = "SG" + text.upper().removeprefix("SG")
    if code not in REASONS:
        nearest = min(REASONS, key=lambda each: [abs(ord(a) - ord(b)) for a, b in zip(each, code)])
        meant = f"{nearest} ({REASONS[nearest].title})"
        raise WrongUsage(f"there is no reason {text!r}; the nearest is {meant}, and `stillgraph errors` lists all")
    return REASONS[code]


def _told(reason: Reason) -> str:
    more = f"docs/errors.md, section {reason.code}"
    return f"{reason.code} {reason.title}\n  {reason.explanation}\n  hint: {reason.hint}\n  more: {more}"
