"""The user's lines in Python's own stack: what an instruction does is called from a frame that has its place.

So tracebacks, warnings, debuggers and `trace/code/frames.py` find the user's file, line and columns where they look for
them, as they do in rewritten code: each line is a *block* of the function (`core/rewritten.py`), below the function's
own frame.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from stillgraph.core.rewritten import BLOCK, REWRITTEN


def _calls(act: Any, args: Any, kwargs: Any, /) -> Any:
    return act(*args, **kwargs)


def _calls_in_try(act: Any, args: Any, kwargs: Any, /) -> Any:
    try:  # what looks at the frame is to see that the line stands in one
        return act(*args, **kwargs)
    except BaseException:
        raise


def _raises(held: list[Any], /) -> Any:  # the frame is not to keep the exception, which keeps the frame
    raise held.pop()


def _raises_in_try(held: list[Any], /) -> Any:
    try:
        raise held.pop()
    except BaseException:
        raise


def _raises_from(held: list[Any], /) -> Any:
    raise held.pop() from held.pop()


def _raises_from_in_try(held: list[Any], /) -> Any:
    try:
        raise held.pop() from held.pop()
    except BaseException:
        raise


_TEMPLATES: dict[tuple[str, bool], CodeType] = {
    ("call", False): _calls.__code__,
    ("call", True): _calls_in_try.__code__,
    ("raise", False): _raises.__code__,
    ("raise", True): _raises_in_try.__code__,
    ("raise from", False): _raises_from.__code__,
    ("raise from", True): _raises_from_in_try.__code__,
}


def line(code: CodeType, positions: dis.Positions | None, kind: str, in_try: bool) -> CodeType:
    """The code of a function that does something in the user's place.

    Args:
        code: the user's.
        positions: of the instruction; None for one that has no place of its own.
        kind: what it does with its arguments. ``"call"``: calls the first with those in the second, a sequence, and
            in the third, a mapping. ``"raise"``: raises what it takes from the end of a list. ``"raise from"``:
            takes the cause from there, too.
        in_try: whether the instruction stands in the body of a ``try``.
    """
    return labelled(_TEMPLATES[kind, in_try], code, positions, (BLOCK, REWRITTEN))


def labelled(
    template: CodeType, code: CodeType, positions: dis.Positions | None, marks: tuple[object, ...]
) -> CodeType:
    """Code of ours under the name and at a place of the user's."""
    first = code.co_firstlineno
    place = positions if positions is not None and positions.lineno is not None else None
    return template.replace(
        co_filename=code.co_filename,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=first,
        co_linetable=_table(len(template.co_code) // 2, first, place),
        co_consts=(*template.co_consts, *marks),
    )


_LONG, _NO_COLUMNS = 14, 13  # kinds of entries; see CPython's Objects/locations.md
_MOST = 8  # code units in one entry


def _table(units: int, first: int, place: dis.Positions | None) -> bytes:
    """A line table by which all instructions stand at one place."""
    made = bytearray()
    now = first
    while units > 0:
        count = min(units, _MOST)
        units -= count
        whole = place is not None and None not in (place.end_lineno, place.col_offset, place.end_col_offset)
        made.append(0x80 | (_LONG if whole else _NO_COLUMNS) << 3 | count - 1)
        lineno = first if place is None or place.lineno is None else place.lineno
        made += _signed(lineno - now)
        now = lineno
        if whole:
            assert place is not None
            made += _number((place.end_lineno or lineno) - lineno)
            made += _number((place.col_offset or 0) + 1)
            made += _number((place.end_col_offset or 0) + 1)
    return bytes(made)


def _number(value: int) -> bytes:
    """A number of bits, six in each byte, the last ones first."""
    made = bytearray()
    while value >= 64:
        made.append(0x40 | value & 63)
        value >>= 6
    made.append(value)
    return bytes(made)


def _signed(value: int) -> bytes:
    return _number((-value << 1) | 1 if value < 0 else value << 1)
