"""The zoo's results as a page of the guide."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bench.zoo.entries import Entry

HEAD = """# Other people's libraries

Programs of libraries, unchanged, captured with a full graph. "Right" means: results, buffers and (where the program is
trained) gradients are those of eager PyTorch on each of several calls, which take other paths than the one that was
captured. Behind a program that is refused stands [the reason](../errors.md).
`python -m bench.zoo --no-files --markdown FILE` writes this page.

| library | right | refused |
|---|---|---|
"""


def is_right(found: dict[str, Any]) -> bool:
    """Whether a program is captured whole, and right."""
    return not any(found.get(what) for what in ("broken", "wrong", "refused"))


def page(entries: Mapping[str, Entry], results: Mapping[str, dict[str, Any]]) -> str:
    """The text of the page; programs of libraries that did not run are left out."""
    ran = [entry for entry in entries.values() if entry.name in results and not results[entry.name].get("broken")]
    found = [results[each.name] for each in ran]
    refused, wrong = (sum(bool(each.get(what)) for each in found) for what in ("refused", "wrong"))
    told = f"{sum(map(is_right, found))} of {len(ran)} are right, {refused} are refused, {wrong} are wrong."
    told += f" The other {len(entries) - len(ran)} programs of the zoo were not run for this page."
    return HEAD + "\n".join([*_rows(ran, results), "", told, ""])


def _rows(ran: list[Entry], results: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    for library, group in itertools.groupby(sorted(ran, key=_library), key=_library):
        programs = [(entry.name, results[entry.name]) for entry in group]
        right = ", ".join(name for name, found in programs if is_right(found))
        others = "; ".join(f"{name}: {_reason(found)}" for name, found in programs if not is_right(found))
        yield f"| {library} | {right} | {others} |"


def _library(entry: Entry) -> str:
    return "written as in their repositories" if entry.library == "torch" else entry.library


def _reason(found: dict[str, Any]) -> str:
    if found.get("wrong"):
        return "WRONG"
    told = str(found["refused"])
    code = re.search(r"reason (SG\d+)", told)
    what = told.split(" | ")[0].partition(": ")[2] or told
    return re.sub(r"[|`]", "", what)[:140] + (f" ({code[1]})" if code else "")
