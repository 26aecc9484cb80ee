"""The elements of lists whose lengths only the run knows: which lists these are, and what becomes of their objects."""

from __future__ import annotations

import collections
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.joined.stale import is_stale
from stillgraph.trace.control_flow.joined.unjoined import is_leaf
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.paths import ALWAYS
from stillgraph.trace.values.containers import Parts, object_parts
from stillgraph.trace.values.list_contents import inner_spreads, is_mutable, kept_parts, mutable_parts
from stillgraph.trace.values.lists import Element, StagedSpread, TypeOf, has_spread, structure

View = Callable[[Any], Parts | None]  # how a path sees a container: with what it wrote into it


def wants_columns(left: Parts, right: Parts, in_loop: bool = False) -> bool:
    """Whether two lists (tuples, deques) can only be joined by their elements, for want of one known length.

    Two paths may leave tuples of different lengths behind (see `Unjoined`); a loop cannot carry them so.
    """
    if left.type is not right.type or not any(left.type is kind for kind in (list, tuple, collections.deque)):
        return False
    if len(left.children) == len(right.children) and all(a is b for a, b in zip(left.children, right.children)):
        return False
    known = not has_spread((*left.children, *right.children))
    if known and (len(left.children) == len(right.children) or (left.type is tuple and not in_loop)):
        return False
    return left.type is not collections.deque or left.context == right.context  # the maximal lengths


def structure_of(
    recorder: Recorder, children: Sequence[Any], is_older: Callable[[Any], bool], type_of: TypeOf | None = None
) -> Element:
    """The structure that covers all elements of a list.

    Objects that were there before the paths stay the objects that they are, where all elements are the same one. Those
    that the capture has made are taken apart where that is not so.

    Args:
        recorder: the capture.
        children: the elements.
        is_older: whether an object was there before the paths that make the list.
        type_of: the type of a leaf; by default the recorder's.

    Raises:
        JoinFailure: there is none, or the list has no element.
    """
    type_of = type_of or recorder.type_of
    try:
        return structure(children, type_of, is_older)
    except JoinFailure:
        return structure(children, type_of, lambda each: is_older(each) and not recorder.is_new(each))


def leading(recorder: Recorder, left: Sequence[Any], right: Sequence[Any]) -> int:
    """How many objects from before the call two lists both begin with: they stay in the list as they are."""
    pairs = itertools.takewhile(lambda pair: pair[0] is pair[1] and _is_kept(recorder, pair[0]), zip(left, right))
    return sum(1 for _ in pairs)


def _is_kept(recorder: Recorder, value: Any) -> bool:
    return not isinstance(value, (tuple, StagedSpread)) and not is_leaf(value) and recorder.is_new(value) is False


def as_left(children: Sequence[Any], view: View) -> list[Any]:
    """Elements as a path has left them: copies of those that it has changed, for the values of their parts.

    Args:
        children: the elements.
        view: how the path sees a container.
    """
    return [child if is_leaf(child) else _as_left(child, view, ()) for child in children]


def _as_left(value: Any, view: View, above: tuple[int, ...]) -> Any:
    before = object_parts(value)
    after = None if before is None or id(value) in above else view(value)
    if before is None or after is None:
        return value
    above = (*above, id(value))
    children = [child if is_leaf(child) else _as_left(child, view, above) for child in after.children]
    same = before.context == after.context and len(before.children) == len(children)
    if same and all(map(operator.is_, before.children, children)):
        return value
    return after.rebuild(children)


def refuse_changed(children: Sequence[Any], view: View) -> None:
    """Refuse elements that a path changes by names of their own, where a list that it was given has copies of them.

    What the path has changed through the list is out of date by these names, and not refused.

    Args:
        children: the elements, as they were before the path.
        view: how the path sees a container.

    Raises:
        JoinFailure: it changes one.
    """
    queue, seen = [child for child in children if not is_leaf(child)], set[int]()
    while queue:
        value = queue.pop()
        before = None if id(value) in seen or is_stale(value) else object_parts(value)
        after = None if before is None else view(value)
        seen.add(id(value))
        if before is None or after is None or any(map(_is_outdated_part, after.children)):
            continue
        same = len(before.children) == len(after.children) and all(map(operator.is_, before.children, after.children))
        if not same or before.context != after.context:
            kind = type(value).__name__
            message = f"a {kind} is changed by a name of its own, and is an element of a list of unknown length"
            raise JoinFailure("SG203", message, _CHANGED_ELEMENT)
        queue += (child for child in before.children if not is_leaf(child))


_CHANGED_ELEMENT = "Change it through the list, by rows[i], or before the branch or loop."


def _is_outdated_part(value: Any) -> bool:
    return is_stale(value) or (type(value) is StagedSpread and value.is_outdated)


def freeze_elements(
    recorder: Recorder,
    spread: StagedSpread,
    paths: Sequence[Sequence[Any]],
    is_older: Callable[[Any], bool],
    arms: tuple[Region, Region] | None = None,
) -> None:
    """Let nobody change the objects whose values the columns of a list have copied.

    Args:
        recorder: the capture.
        spread: what stands for the elements from now on.
        paths: the elements as each path has them; others may be among them that already stand for several.
        is_older: whether an object was there before the path that has made the list.
        arms: of a branch, if the paths are its two.
    """
    identities = recorder.identities
    on_each = [ALWAYS] * len(paths) if arms is None else [recorder.region.path | {arm} for arm in arms]
    for children, on in zip(paths, on_each):
        copied: list[Any] = []
        for child in children:
            if type(child) is StagedSpread:
                if is_mutable(child.element):
                    copied.append(child)
                    identities.families.relate_to_elements(spread, child)
                continue
            for inner in inner_spreads(spread.element, child):
                copied.append(inner)
                identities.families.relate_to_elements(spread, inner)
            for each in mutable_parts(spread.element, child):
                copied.append(each)
                identities.freeze(each, on)
            for kept in kept_parts(spread.element):
                if not is_older(kept):
                    identities.keep(kept)
        identities.copied_into(spread, copied, on)
    if any(may_repeat(recorder, spread.element, children) for children in paths):
        identities.repeat(spread)


def may_repeat(recorder: Recorder, element: Element, children: Sequence[Any]) -> bool:
    """Whether one object that the user could change may stand twice among the elements of a list."""
    met, seen = list[Any](), set[int]()
    for child in children:
        for each in parts_in(element, child):
            behind = elements_behind(recorder, each)
            if not behind.isdisjoint(seen) and any(recorder.identities.may_share(each, other) for other in met):
                return True
            met.append(each)
            seen |= behind
    return any(id(child) in recorder.identities.repeated for child in children)


def parts_in(element: Element, child: Any) -> list[Any]:
    """The objects in an element that the user could change, and what stands for many of them."""
    if type(child) is StagedSpread:
        return [child] if is_mutable(child.element) else []
    return [*mutable_parts(element, child), *inner_spreads(element, child)]


def elements_behind(recorder: Recorder, part: Any) -> set[int]:
    """The ids of what an object may be on any path; of all, where it stands for many."""
    identities = recorder.identities
    return set(map(id, (part, *identities.originals(part)) if type(part) is StagedSpread else identities.behind(part)))
