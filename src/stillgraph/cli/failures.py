"""Where commands print, and how they fail: what goes on is shown on stderr, an error is text with exit status 1."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from stillgraph.cli.usage import first_line
from stillgraph.core.diagnostics import StillgraphError
from stillgraph.core.files import is_users
from stillgraph.core.raised import line_that_raised

OUT = Console(soft_wrap=True)
ERR = Console(stderr=True, soft_wrap=True)


def _line_of(error: Exception) -> str:
    """The user's line that raised: the innermost that is neither torch's, nor the library's, nor Python's own."""
    location = line_that_raised(error, _is_shown)
    return "" if location is None else f"{Path(location.file).name}:{location.line}: "


def _is_shown(file: str) -> bool:
    return is_users(file) and not file.startswith(("<", _CLICK))


_CLICK = str(Path(click.__file__).parent) + os.sep  # which has called the command


@contextlib.contextmanager
def showing_failures(verbose: bool, doing: str) -> Iterator[None]:
    """Show what is going on; a failure is text on stderr and exit status 1."""
    try:
        with ERR.status(f"{escape(doing)} …"):
            yield
    except StillgraphError as error:
        failure: Exception = error
        text = str(error)
    except Exception as error:  # the user's own, raised while the function ran for capture
        failure = error
        text = f"{_line_of(error)}{type(error).__name__}: {first_line(error)}"
    else:
        return
    if verbose:
        raise failure
    ERR.print(f"[red]failed[/] {escape(doing)}\n{escape(text)}", highlight=False)
    sys.exit(1)
