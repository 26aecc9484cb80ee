"""The two sides of a failed join: what each has, the line where it got it, and what to write instead."""

from __future__ import annotations

import re
from typing import Any

import torch

from stillgraph.core.diagnostics import Side
from stillgraph.core.location import Location
from stillgraph.program.types import JoinFailure, show_shape
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.control_flow.joined.join_errors import is_result
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.assigned import Line, literal_before


def explain(
    recorder: Recorder, failure: JoinFailure, place: str, *sides: tuple[str, Any, Line], in_loop: bool = False
) -> None:
    """Let a failure say what the two sides have and where they got it, unless it knows that of something in them."""
    if in_loop and failure.code == "SG203" and _grows(place, sides[-1][1], sides[-1][2](place)):
        failure.hint = _GROWING
    if failure.sides:
        return
    inner = next((alternatives(value).failure for _, value, _ in sides if isinstance(value, Unjoined)), None)
    if inner is not None and inner.sides:
        failure.code, failure.message, failure.sides = inner.code, inner.message, inner.sides
        failure.hint = inner.hint
        named_better = inner.place is None or (is_result(inner.place) and "()" not in place)  # of calls, there is more
        failure.place = place if named_better else inner.place
        return
    failure.place, failure.in_loop = place, in_loop
    failure.hint = failure.hint or _hint_for(failure, *(value for _, value, _ in sides))
    failure.sides = tuple(
        Side(f"{who} {describe(value, True)}", line(place) or recorder.made_at(value) or literal_before(place, value))
        for who, value, line in sides
    )


_GROWING = (
    "{place} is put into what it becomes, so each iteration gives another structure: start with an empty list in its "
    "place, and append to it what an iteration adds."
)


def _grows(place: str, after: Any, location: Location | None) -> bool:
    """Whether a loop puts what a variable holds into the tuple, list or dict that it holds next."""
    if not isinstance(after, (tuple, list, dict)) or location is None or not place.isidentifier():
        return False
    meant = (location.source_line() or "").encode()[location.column : location.end_column].decode(errors="ignore")
    return re.search(rf"[(\[{{,:]\s*{place}\s*[)\]}},]", meant) is not None


def _hint_for(failure: JoinFailure, first: Any, second: Any) -> str | None:
    """What to write instead, as far as the two values tell it: nothing is to be lost by it."""
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return None
    with torch._C.DisableTorchFunction():
        dtypes, ranks, shape = (first.dtype, second.dtype), (first.dim(), second.dim()), show_shape(tuple(first.shape))
    if failure.code == "SG201" and failure.in_loop and ranks[0] > ranks[1]:
        return _KEPT
    if failure.code != "SG202" or dtypes[0] == dtypes[1]:
        return None
    wide = torch.promote_types(*dtypes)
    if not failure.in_loop:
        narrow = [str(dtype) for dtype in dtypes if dtype != wide]
        return f"Convert {{place}} with .to({wide}) where it is {' or '.join(narrow)}, so that nothing is lost."
    if wide == dtypes[0]:
        changed = f"{{place}} begins as {wide}, and an iteration gives it {dtypes[1]}"
        return f"{changed}: convert what it is given with .to({wide}), before the loop or in it."
    made = f"torch.zeros({shape}, dtype={wide}) or " if "?" not in shape else ""
    both = "" if wide == dtypes[1] else " and in it"
    return f"Give {{place}} dtype {wide} before the loop{both} ({made}.to({wide})), so that nothing is lost."


_KEPT = (
    "Keep the dimension of {place} that an iteration gives up (keepdim=True, or an index i:i+1), or return from each "
    "path separately."
)
