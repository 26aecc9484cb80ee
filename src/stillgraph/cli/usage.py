"""Commands that are wrong."""
from __future__ import annotations

from pathlib import Path

import click


class WrongUsage(click.ClickException):
    """The command was wrong: one line on stderr, exit status 2."""

    exit_code = 2


def split_target(target: str) -> tuple[str, str]:
    """MODULE and NAME of a target. This needs no torch, so that a slip is told at once.

    Raises:
        WrongUsage: it is not written so, or there is no such file.
    """
    module, colon, name = target.rpartition(":")
    if not (colon and module and name):
        raise WrongUsage(f"{target!r} must be MODULE:NAME, for example models.py:Net")
    if module.endswith(".py") and not Path(module).is_file():
        raise WrongUsage(f"there is no file {module!r}")
    return module, name


def first_line(error: BaseException) -> str:
    """What an error says, on one line."""
    return (str(error).strip() or "no message").splitlines()[0]
