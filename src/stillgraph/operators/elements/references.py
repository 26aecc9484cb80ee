"""Changes of elements of lists and dicts of unknown length: ``rows[i].append(v)``, ``grid[i][j] = v``, ``at[k].x = v``.

What is read of such a list is an object made anew (`trace.heap.references`). Who changes it changes the list by it, and
the list that this is an element of, if it is one. Every other copy of what was changed is outdated from then on, but
for one in a variable that was read in the same way: that is read once more.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from stillgraph.core.diagnostics import refuse
from stillgraph.program import operations
from stillgraph.program.types import JoinFailure
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.aliases import mutable_containers
from stillgraph.trace.control_flow.heap import locals_of_users
from stillgraph.trace.control_flow.joined.stale import Stale
from stillgraph.trace.control_flow.joined.unjoined import is_leaf
from stillgraph.trace.control_flow.reachable_values import held_places
from stillgraph.trace.control_flow.spreads import as_spread, each, element_at
from stillgraph.trace.heap.contents import replace_contents
from stillgraph.trace.heap.places import ContentsPlace, Place
from stillgraph.trace.heap.references import Reference, contents_of
from stillgraph.trace.values import list_columns, lists
from stillgraph.trace.values.entries import maybe_keys, table_of
from stillgraph.trace.values.list_contents import is_mutable, is_outdated, mutable_parts, same_structure
from stillgraph.trace.values.lists import Same, StagedSpread

R = TypeVar("R")
Become = Callable[[list[Any]], None]
_SEQUENCES = (list, collections.deque)


def refer(capture: Session, holder: Sequence[Any], index: Any, element: Any) -> None:
    """Remember that an element was read out of a list of unknown length, at an index; a tuple is given no others."""
    if not isinstance(holder, tuple):
        become = functools.partial(replace_contents, holder)
        refer_to(capture, holder, index, lambda: holder, become, index, element)


def refer_to_taken(capture: Session, holder: Any, element: Any) -> None:
    """Remember that an element was taken out of a list or deque: who changes it changes nothing there."""
    if not is_leaf(element):
        parts = {id(part): part for part in filter(capture.identities.is_copy, mutable_containers(element))}
        made = Reference(holder, None, element, lambda mine: [*mine.parts.values()], lambda: element, parts)
        made.agreed.append(contents_of(holder))
        capture.identities.references.add(made)


def refer_to(
    capture: Session, holder: Any, key: Any, elements: Callable[[], Any], become: Become, index: Any, element: Any
) -> None:
    """Remember where an element was read.

    Args:
        capture: the session.
        holder: the container.
        key: by which the user has read it.
        elements: gives the elements that it has: a list of unknown length.
        become: gives it others.
        index: the place of the element among them.
        element: what was read.
    """

    def put(reference: Reference) -> list[Any]:
        made = _replaced(capture, elements(), index, reference)
        become([made])
        return [*mutable_parts(made.element, element)]

    def read() -> Any:
        return element_at(capture, as_spread(capture, elements()), index)

    copies = () if is_leaf(element) else filter(capture.identities.is_copy, mutable_containers(element))
    parts = {id(part): part for part in copies}
    if parts:
        made = Reference(holder, key, element, put, read, parts, [contents_of(holder)])
        capture.identities.references.add(made)


def _replaced(capture: Session, held: Any, index: Any, reference: Reference) -> StagedSpread:
    """The elements of a list, with that of a reference in its place again."""

    def is_older(value: Any) -> bool:
        return id(value) not in reference.parts and capture.is_new(value) is not True

    spread = as_spread(capture, held)
    try:
        covering = lists.structure((spread, reference.element), capture.type_of, is_older)
    except JoinFailure as failure:
        raise refuse(failure.code, failure.message, location=here(), hint=failure.hint) from failure
    if not same_structure(spread.element, covering, lambda mine, other: mine == other):
        spread = as_spread(capture, held, (reference.element,), is_older)
    cells = [items.items[0] for items in list_columns.columns(spread.element, (reference.element,))]
    return each(capture, spread, operations.replaced, index, cells=cells)


def is_there(capture: Session, holder: Any, key: Any, value: Any) -> bool:
    """Whether a value is known to be what a list or dict has by an index or key: it was read there."""
    if capture.identities.references.is_picked(holder, key, value):
        return True
    found = capture.identities.references.of(value)
    if found is None or found.holder is not holder or found.element is not value:
        return False
    return found.key is key or (type(key) is int and type(found.key) is int and found.key == key)


# ---- changing
def reference_of(capture: Session, target: Any) -> Reference | None:
    """Where an object was read, if who changes it may change it there."""
    found = capture.identities.references.of(target)
    if found is None or capture.recursions or any(attempt.staged for attempt in capture.handlers.attempts):
        return None
    given = {id(spread) for spread in capture.grown.values()}
    families = capture.identities.families
    if families.is_known_elsewhere(target, lambda each: id(each) in given or capture.is_outer(each)):
        return None
    repeats = not capture.identities.repeated.keys().isdisjoint(map(id, families.of(target)))
    return None if repeats else found


def write_through(capture: Session, reference: Reference, target: Any, done: Callable[[], R]) -> R:
    """Change an object that is, or is in, an element of a list, and that list.

    Args:
        capture: the session.
        reference: where the element was read.
        target: the object.
        done: changes it.

    Raises:
        CaptureError: the list cannot be changed, or gets an object that may be in it already. (SG305)
    """
    chain = [*_chain(capture, reference)]
    with capture.identities.writing_through(target):
        result = done()
    kept: dict[int, Any] = {}
    for link in chain:
        kept |= _put_again(capture, link)
    _outdate(capture, target, kept)
    return result


def _chain(capture: Session, reference: Reference | None) -> Iterator[Reference]:
    """A reference, that by which its holder is an element, and so on."""
    while reference is not None:
        yield reference
        above = reference_of(capture, reference.holder)
        if above is None and capture.identities.is_ambiguous(reference.holder):
            _refuse(f"an element is changed of a {type(reference.holder).__name__} that is another one on each path")
        reference = above


def _refuse(message: str) -> NoReturn:
    raise refuse("SG305", message, location=here(), hint=_ONE_NAME)


_ONE_NAME = "Change it before it is put into the list, or put a new one into its place: rows[i] = rows[i] + [v]."


def _put_again(capture: Session, reference: Reference) -> dict[int, Any]:
    """Store an element in its place; what is up to date from then on, by the ids."""
    identities, holder = capture.identities, reference.holder
    others = [other for other in identities.references.into(holder) if other is not reference]
    capture.journal.note(ContentsPlace(holder))
    parts = reference.put(reference)
    for part in parts:
        if id(part) not in reference.parts:
            if identities.is_copy(part) or sum(part is each for each in parts) > 1:
                _refuse(f"a {type(part).__name__} is put into an element of a list, and may be in it already")
            identities.copy_of(part, [reference.element])
    identities.references.holds(reference, parts)
    now = contents_of(holder)
    reference.agreed.append(now)
    kept = {id(each): each for each in (holder, *_held(parts), *now)}
    table = table_of(holder) if isinstance(holder, dict) else None
    if table is not None:
        kept |= {id(each): each for each in (table.values, *(table.values or ()))}
    for other in others:
        kept |= _read_again(capture, other, now)
    return kept


def _held(parts: Iterable[Any]) -> Iterator[Any]:
    """Objects, and what stands for elements in them."""
    for part in parts:
        yield part
        yield from (part if isinstance(part, _SEQUENCES) else ())


def _read_again(capture: Session, other: Reference, now: tuple[Any, ...]) -> dict[int, Any]:
    """Give another element of a list that was changed what is in its place by now, if it is a list in a variable."""
    if type(other.element) is not list or not any(other.element is value for value in locals_of_users(capture)):
        return {}
    fresh = other.read()
    capture.journal.note(ContentsPlace(other.element))
    replace_contents(other.element, fresh)
    parts = [other.element, *(part for part in mutable_containers(fresh) if part is not fresh)]
    capture.identities.references.holds(other, parts)
    other.agreed.append(now)
    return {id(each): each for each in _held(parts)}


def _outdate(capture: Session, target: Any, kept: dict[int, Any]) -> None:
    """Let nobody look at the other copies of what was changed, where these may be the same object."""
    for other in capture.identities.families.of(target):
        if id(other) in kept:
            continue
        if isinstance(other, StagedSpread):
            old = other.columns if is_mutable(other.element) and not other.is_outdated else ()
            capture.region.outdated.update((id(column), column) for column in old)
        elif isinstance(other, _SEQUENCES):
            if not is_outdated(other):
                capture.journal.write(ContentsPlace(other), [StagedSpread(Same(None), None)])
        else:
            _outdate_parts(capture, other)


def _outdate_parts(capture: Session, other: Any) -> None:
    """Let nobody look at what an object or dict holds."""
    for place in held_places(other):
        if not isinstance(place, ContentsPlace):
            if not isinstance(place.get(), Stale):
                capture.journal.write(place, _stale(place))
        elif isinstance(other, dict) and not maybe_keys(other):
            capture.journal.write(place, {key: _stale(place) for key in other})
        else:
            _refuse(f"a {type(other).__name__} is an element of a list, and is changed by another name")


def _stale(place: Place) -> Stale:
    return Stale(str(place), "a change of the object by another name", lists.READ_ANEW)
