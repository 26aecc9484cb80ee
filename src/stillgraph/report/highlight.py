"""Python source as HTML, keywords, names, texts, numbers and comments told apart."""

from __future__ import annotations

import builtins
import html
import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence

_CLASSES = {tokenize.STRING: "s", tokenize.COMMENT: "c", tokenize.NUMBER: "n"}
_BUILTINS = frozenset(name for name in dir(builtins) if name[0].islower())


def highlight(lines: Sequence[str]) -> list[str]:
    """Each line as HTML. What is no Python is only escaped."""
    spans: dict[int, list[tuple[int, int, str]]] = {}
    for number, start, end, kind in _spans(lines):
        spans.setdefault(number, []).append((start, end, kind))
    return [_line(line, spans.get(number, [])) for number, line in enumerate(lines, 1)]


def _spans(lines: Sequence[str]) -> Iterator[tuple[int, int, int, str]]:
    defines = False
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            kind = _CLASSES.get(token.type, "")
            if token.type == tokenize.NAME:
                kind = "k" if keyword.iskeyword(token.string) else "f" if defines else ""
                kind = kind or ("b" if token.string in _BUILTINS else "")
                defines = token.string in ("def", "class")
            if kind:
                yield from _by_line(token, kind, lines)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return


def _by_line(token: tokenize.TokenInfo, kind: str, lines: Sequence[str]) -> Iterator[tuple[int, int, int, str]]:
    (first, start), (last, end) = token.start, token.end
    for number in range(first, min(last, len(lines)) + 1):
        begin = start if number == first else 0
        yield number, begin, end if number == last else len(lines[number - 1]), kind


def _line(line: str, spans: list[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, kind in spans:
        if start < at:
            continue
        parts.append(html.escape(line[at:start]))
        parts.append(f'<i class="{kind}">{html.escape(line[start:end])}</i>')
        at = end
    return "".join(parts) + html.escape(line[at:])
