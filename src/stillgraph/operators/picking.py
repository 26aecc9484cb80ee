"""One of several values, at an index that only the run knows."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.program.types import JoinFailure, join_types
from stillgraph.trace.containers import split
from stillgraph.trace.frames import here
from stillgraph.trace.join import same_constant
from stillgraph.trace.numbers import StagedInt
from stillgraph.trace.session import Session
from stillgraph.trace.unjoined import is_leaf


def pick(capture: Session, elements: Sequence[Any], key: StagedInt, kind: type = tuple) -> Any:
    """The element at an index that only the run knows: tensors or numbers of one type, or tuples of such.

    Args:
        capture, elements, key: of the session; out of which; at which place.
        kind: of the user's sequence, a tuple or list, which an index out of its range names in the run.

    Raises:
        CaptureError: the elements have no join. Lists among them would lose their identity.
    """
    first = elements[0]
    if all(is_leaf(element) for element in elements):
        return _pick_leaf(capture, elements, key, kind)
    if all(same_constant(first, element) for element in elements[1:]):
        _pick_leaf(capture, range(len(elements)), key, kind)  # which raises where there is no such element
        return first
    parts = [p for element in elements if isinstance(element, tuple) and (p := split(element)) is not None]
    alike = {(p.type, p.context) for p in parts}
    if len(parts) < len(elements) or len(alike) > 1:
        kinds = " and ".join(dict.fromkeys(type(element).__name__ for element in elements))
        message = f"values that are no tensors of one kind ({kinds}) are picked by an index that only the run knows"
        hint = "Choose among them with if and elif, or keep tensors of one shape and dtype."
        raise refuse("SG203", message, location=here(), hint=hint)
    columns = zip(*(p.children for p in parts))
    return parts[0].rebuild([pick(capture, column, key, kind) for column in columns])


def _pick_leaf(capture: Session, elements: Sequence[Any], key: StagedInt, kind: type) -> Any:
    try:
        type_ = capture.type_of(elements[0])
        for element in elements[1:]:
            type_ = join_types(type_, capture.type_of(element))
    except JoinFailure as failure:
        raise refuse(failure.code, failure.message, location=here()) from failure
    value = capture.instantiate(type_)
    node = capture.emit("call_function", operator.getitem, (kind(elements), key), {})
    node.meta["val"] = capture.to_fake(value)
    capture.region.define(value, node)
    return value
