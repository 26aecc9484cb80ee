"""Logs: a logger of Python's `logging` for each topic, and on request a line on stderr for each record.

Each record has ``record.event`` and ``record.data`` beside its text, so that a handler need not read sentences.
"""

from __future__ import annotations

import contextlib
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
    "plan": "where functions without a full graph are left to Python and why, and how calls go on",
    "runtime": "programs that run otherwise than asked, and why",
    "deploy": "what a saved file does otherwise",
}
PROGRESS = "progress"
_ROOT = logging.getLogger("stillgraph")
if _ROOT.level == logging.NOTSET:  # a program that sets up logging for itself has not asked for ours
    _ROOT.setLevel(logging.WARNING)


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


def configure(wanted: str) -> bool:
    """Carry out ``STILLGRAPH_LOG``: which topics are shown on stderr, and whether progress is.

    Args:
        wanted: topics, separated by commas or blanks, or ``all``, in lower or upper case; with ``json``, each record is
            one line of JSON; ``json`` alone means all topics.

    Returns:
        Whether ``progress`` is among the words, which is no topic: a terminal shows it, and a log does not.

    Raises:
        ValueError: a word is neither. The others have been carried out.
    """
    given = set(wanted.replace(",", " ").lower().split())
    words = given - {PROGRESS}
    unknown = words - {*TOPICS, "all", "json"}
    topics = set(TOPICS) if "all" in words or words == {"json"} else words & TOPICS.keys()
    for topic in topics:
        logging.getLogger(f"stillgraph.{topic}").setLevel(logging.INFO)
    if topics or (words and not unknown):
        show(as_json if "json" in words else as_text)
    if unknown:
        listed = ", ".join([*TOPICS, PROGRESS, "all", "json"])
        raise ValueError(f"STILLGRAPH_LOG: no topic is called {', '.join(sorted(unknown))}; there are {listed}")
    return PROGRESS in given


def set_level(level: int) -> None:
    """Show more or less: 0 warnings, 1 captures, 2 also the cache and how programs run, 3 and more everything.

    Raises:
        TypeError: the level is no integer.
    """
    require_level("set_verbosity", level)
    shown = {0: (), 1: ("capture",), 2: ("capture", "cache", "runtime", "deploy")}.get(level, tuple(TOPICS))
    for topic in TOPICS:
        logging.getLogger(f"stillgraph.{topic}").setLevel(logging.INFO if topic in shown else logging.WARNING)
    if not any(isinstance(each, _ToStderr) for each in _ROOT.handlers):
        show(as_text)


def require_level(function: str, level: object) -> None:
    """Have a level be an integer.

    Raises:
        TypeError: it is none; the text names the public function that was given it.
    """
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"{function} takes an integer, not {level!r}")


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
            to_stderr(self._text_of(record))


def to_stderr(text: str) -> None:
    """Print to stderr, if that is possible: where it is closed or broken, what is told is lost, and no call fails."""
    if sys.stderr is not None:
        with contextlib.suppress(Exception):  # of whatever the program has put there, as `logging` does
            print(text, file=sys.stderr)


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
