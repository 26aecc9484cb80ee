"""Which of the user's lines an exception comes from."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from stillgraph.core.files import is_users
from stillgraph.core.location import Location


def line_that_raised(error: BaseException, counts: Callable[[str], bool] = is_users) -> Location | None:
    """The innermost line that an exception went through, of those in files that count.

    Args:
        error: what was raised.
        counts: asked of a file.

    Returns:
        None where the exception went through no such line.
    """
    lines = [each for each in traceback.extract_tb(error.__traceback__) if counts(each.filename)]
    if not lines or lines[-1].lineno is None:
        return None
    return Location(lines[-1].filename, lines[-1].lineno, function=lines[-1].name)
