"""Logs: a logger of Python's `logging` for each topic, and on request a line on stderr for each record.

Each record has ``record.event`` and ``record.data`` beside its text, so that a handler need not read sentences.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

TOPICS: dict[str, str] = {
    "capture": "what is captured, how long that takes, and what is refused",
    "guards": "what each program relies on",
    "cache": "calls that no program fits and why, programs added and dropped",
    "code": "rewritten functions, and the drivers of programs",
    "runtime": "programs that run otherwise than asked, and why",
    "deploy": "what a saved file does otherwise",
}
_ROOT = logging.getLogger("stillgraph")


def log(topic: str, event: str, text: str, level: int = logging.INFO, **data: Any) -> None:
    """Log to ``stillgraph.<topic>``.

    Args:
        topic: of `TOPICS`.
        event: a word for what has happened, the same for the same kind of thing.
        text: a sentence for people.
        level: of `logging`.
        data: what the sentence says, as plain values.
    """
    logging.getLogger(f"stillgraph.{topic}").log(level, "%s", text, extra={"event": event, "data": data})


def is_logged(topic: str) -> bool:
    """Whether anybody hears of a topic: for texts that are work to make."""
    return logging.getLogger(f"stillgraph.{topic}").isEnabledFor(logging.INFO)


def configure(wanted: str) -> None:
    """Carry out ``STILLGRAPH_LOG``: which topics are shown on stderr.

    Args:
        wanted: topics, separated by commas, or ``all``; with ``json``, each record is one line of JSON.

    Raises:
        ValueError: a word is neither.
    """
    words = {word.strip() for word in wanted.split(",") if word.strip()}
    unknown = words - {*TOPICS, "all", "json"}
    if unknown:
        listed = ", ".join([*TOPICS, "all", "json"])
        raise ValueError(f"STILLGRAPH_LOG: no topic is called {', '.join(sorted(unknown))}; there are {listed}")
    for topic in TOPICS if "all" in words else words - {"json"}:
        logging.getLogger(f"stillgraph.{topic}").setLevel(logging.INFO)
    show(as_json if "json" in words else as_text)


def set_level(level: int) -> None:
    """Show more or less: 0 warnings, 1 captures, 2 also the cache and how programs run, 3 and more everything."""
    shown = {0: (), 1: ("capture",), 2: ("capture", "cache", "runtime", "deploy")}.get(level, tuple(TOPICS))
    for topic in TOPICS:
        logging.getLogger(f"stillgraph.{topic}").setLevel(logging.INFO if topic in shown else logging.WARNING)
    if not any(isinstance(each, _ToStderr) for each in _ROOT.handlers):
        show(as_text)


def show(text_of: Callable[[logging.LogRecord], str]) -> None:
    """Show records on stderr, in this form, where the program has not set up logging itself."""
    for handler in [each for each in _ROOT.handlers if isinstance(each, _ToStderr)]:
        _ROOT.removeHandler(handler)
    _ROOT.addHandler(_ToStderr(text_of))


class _ToStderr(logging.Handler):
    """Writes to whatever ``sys.stderr`` is, unless the root logger has handlers: those have been told already."""

    def __init__(self, text_of: Callable[[logging.LogRecord], str]) -> None:
        super().__init__()
        self._text_of = text_of

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            print(self._text_of(record), file=sys.stderr)


def as_text(record: logging.LogRecord) -> str:
    """A record for people."""
    return f"[{record.name}] {record.getMessage()}"


def as_json(record: logging.LogRecord) -> str:
    """A record as one line of JSON: ``topic``, ``event``, ``text``, ``level``, ``time`` in seconds, and its data."""
    told = {
        "topic": record.name.removeprefix("stillgraph."),
        "event": getattr(record, "event", None),
        "level": record.levelname,
        "time": record.created,
        "text": record.getMessage(),
        **getattr(record, "data", {}),
    }
    return json.dumps(told, default=str)
