"""Commands that are wrong."""
from __future__ import annotations

import click


class WrongUsage(click.ClickException):
    """The command was wrong: one line on stderr, exit status 2."""

    exit_code = 2


def first_line(error: BaseException) -> str:
    """What an error says, on one line."""
    return (str(error).strip() or "no message").splitlines()[0]
