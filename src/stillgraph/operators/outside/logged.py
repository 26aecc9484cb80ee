"""What a call that logs shows of what it is given: the template says which text of each value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.faults import ends_capture
from stillgraph.operators.outside.handed_out import Asked, shown
from stillgraph.passes.regions.purity import is_pure
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.heap.journal import Write
from stillgraph.trace.heap.places import MISSING, CellPlace, ContentsPlace, PassingPlace
from stillgraph.trace.values.containers import leads_to

_FIELD = re.compile(
    r"%(?:\((?P<name>[^)]*)\))?[#0\- +]*(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<kind>.)"
)
_ASKED = {"s": Asked.STR, "r": Asked.REPR, "a": Asked.REPR}


def logged(
    capture: Session, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call that logs, as those of a node.

    Args:
        capture: the one going on.
        name: of the function: ``log`` takes the level first.
        args: by position.
        kwargs: by name.

    Raises:
        CaptureError: only the run knows what is shown, or to make texts does more than that: a logger that does not
            speak makes none.
    """
    mark, raises, nodes = capture.journal.mark, capture.raises, capture.region.mark()
    try:
        given = _given(capture, args, 1 if name == "log" else 0)
        keywords = {name: _keyword(capture, value) for name, value in kwargs.items()}
    except Exception as error:  # whatever the user's methods raise
        if ends_capture(error):
            raise
        message = f"the text of what is logged cannot be made: {error}"
        raise refuse("SG302", message, location=here()) from None
    more = capture.raises != raises or not all(map(is_pure, capture.region.since(nodes)))
    if more or any(_is_seen_later(capture, write, (args, kwargs)) for write in capture.journal.written(mark).values()):
        message = "making the text of what is logged does more than that, and only the run knows whether it is made"
        raise refuse("SG305", message, location=here(), hint="Make the text before, with str().")
    return given, keywords


def _is_seen_later(capture: Session, write: Write, given: Any) -> bool:
    """Whether something was written that was there before the texts of what is given were made."""
    place = write.place
    if isinstance(place, CellPlace):
        return write.before is not MISSING and not isinstance(place, PassingPlace)  # a method's own had nothing
    if not isinstance(place, ContentsPlace):
        return True
    return capture.is_outer(place.target) or leads_to(given, place.target)


def _given(capture: Session, args: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    """The arguments by position, of which the one at ``at`` is the template."""
    values = args[at + 1 :]
    before = tuple(shown(capture, value) for value in args[: at + 1])
    fields = _fields(before[at], values) if len(before) > at else None
    if len(values) == 1 and type(values[0]) is dict and values[0]:  # `logging` takes its entries
        return *before, _entries(capture, values[0], fields)
    positions = Asked.EITHER if fields is None else None
    asked = [positions or _by_position(fields, index) for index in range(len(values))]
    return *before, *(shown(capture, value, each) for value, each in zip(values, asked, strict=True))


def _entries(capture: Session, entries: dict[Any, Any], fields: list[tuple[str | None, Asked]] | None) -> Any:
    """A dict whose entries a template may call by their names."""
    if fields is not None and all(name is None for name, _ in fields):
        return shown(capture, entries)
    asked = {key: _asked(each for name, each in fields or () if name == key) for key in entries}
    return _with_entries(capture, entries, asked)


def _keyword(capture: Session, value: Any) -> Any:
    """What is given by name: the entries of ``extra`` become attributes of the record, which any formatter may show."""
    is_extra = type(value) is dict
    return _with_entries(capture, value, {}) if is_extra else shown(capture, value, Asked.EITHER)


def _with_entries(capture: Session, entries: dict[Any, Any], asked: dict[Any, Asked]) -> Any:
    made = {key: shown(capture, value, asked.get(key, Asked.EITHER)) for key, value in entries.items()}
    shown(capture, dict.fromkeys(made))  # its keys are of kinds that a node takes
    return made


def _asked(each: Iterable[Asked]) -> Asked:
    found = Counter(each)
    if len(found) > 1:
        return Asked.EITHER if Asked.EITHER in found or Asked.NOTHING in found else Asked.BOTH
    return next(iter(found), Asked.EITHER)


def _by_position(fields: list[tuple[str | None, Asked]] | None, index: int) -> Asked:
    """Which text a template asks a value for; one too many is an error that `logging` tells."""
    assert fields is not None
    return fields[index][1] if index < len(fields) else Asked.EITHER


def _fields(template: Any, values: tuple[Any, ...]) -> list[tuple[str | None, Asked]] | None:
    """The fields of a template: their names, and what they ask a value for; None where nobody can tell."""
    if type(template) is not str:
        return None
    found = [each for each in _FIELD.finditer(template) if each["kind"] != "%"]
    if any("*" in (each["width"], each["precision"]) for each in found):
        return None
    return [(each["name"], _ASKED.get(each["kind"], Asked.NOTHING)) for each in found]
