"""Comparing a function with its rewritten self."""
from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterator
from typing import Any

from tests.unit.source.following import Following


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[object, ...]:
    """What calling a function does: its value or error, what it prints, and what becomes of its arguments."""
    args = copy.deepcopy(args)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            value = function(*args)
            result: object = list(value) if isinstance(value, Iterator) else value
        except Exception as error:
            result = type(error), str(error), error.__cause__ and str(error.__cause__)
            if isinstance(error, NameError):        # which of the two Python says is for the operators to put right
                result = NameError
    return repr(result), out.getvalue(), repr(args)


def check(function: Callable[..., Any], *inputs: Any) -> None:
    """Assert that a function does the same when it and all it calls is rewritten.

    Args:
        function: the function.
        inputs: what to call it with: an argument, or a tuple of them.
    """
    following = Following(("tests",))
    made = following.rewritten(function)
    assert made is not function, following.refused
    for each in inputs or ((),):
        args = each if isinstance(each, tuple) else (each,)
        assert outcome(made, args) == outcome(function, args), args
    assert not following.refused
