"""Steps for Python sprinkled into generated programs, whichever generator has written them.

What such a step does, no program can: it prints what a tensor holds, reads it into Python's numbers, draws by chance,
and works on the list ``KEPT`` and the dict ``CACHE``, which outlive the call. Both are attributes of the function too,
so that they can be compared.
"""
from __future__ import annotations

import re

from hypothesis import strategies as st

from tests.property.programs import Draw

KEPT = ("kept", "cache")
"""The attributes of the function that later calls find as earlier ones have left them."""

_HEAD = """\
import contextlib
import math
import random

KEPT, CACHE = [], {}


def rooted(s):
    if s.item() not in CACHE:
        CACHE[s.item()] = math.sqrt(s.item())
    return CACHE[s.item()]


"""
_STEPS = (
    'print("step", f"{s.item():.3f}", len(KEPT))', 'print(n, c, v.tolist(), end="|")', "KEPT.append(v.sum().item())",
    "KEPT.append(t.detach() * 2)", "c = KEPT.pop() if KEPT and isinstance(KEPT[-1], float) else c", "del KEPT[2:]",
    "n = (n + len(KEPT)) % 5", "KEPT[:0] = [n, c]", "n = random.randint(0, 3)", "s = s * random.random()",
    "c = CACHE.setdefault(n % 3, c)", "CACHE[n % 3] = c", 'CACHE["s"] = s.detach()', 's = CACHE.get("s", s) + s',
    "CACHE.clear()", "c = v.sum().item() * 0.25", "s = s * round(t.item(), 2)", "n = int(s.item()) % 4",
    "v = torch.tensor([e.item() * 0.5 for e in w])", "n = sum(e > c for e in v.tolist())",
    "if s.item() > c:\n    t = t * 0.5\nelse:\n    n = 1",
    "for e in w.tolist():\n    if e > c:\n        break\n    KEPT.append(e)",
    "while s.item() > 1:\n    s = s - 1\n    KEPT.append(n)",
    'try:\n    n = int((s / t).item()) % 4\nexcept (ValueError, OverflowError) as error:\n    print("caught", error)',
    "try:\n    c = rooted(s)\nexcept ValueError:\n    KEPT.append(n)\nelse:\n    s = t * c",
    "try:\n    n = 12 // int(t.item()) % 5\nexcept ZeroDivisionError:\n    v = v + 1\nfinally:\n    KEPT.append(n)",
    'if t.item() > 2:\n    raise LookupError(f"at {t.item():.2f}")',
    "with contextlib.suppress(ValueError):\n    t = t + rooted(s)\n    print(len(CACHE))",
)  # fmt: skip
_FEW = 4
_BELONGS_TO_WHAT_IS_BEFORE = re.compile(r"\s*(elif|else|except|finally)\b")


@st.composite
def with_steps(draw: Draw, written: st.SearchStrategy[str]) -> str:
    """The source text of a program, a few steps put in front of statements of ``program``, wherever they stand.

    Args:
        draw: draws what is open.
        written: gives the source text of modules with a function ``program(s, t, v, w, n, c)``.
    """
    lines = draw(written).split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith("def program(")) + 1
    body = enumerate(lines[start:], start)
    places = [index for index, line in body if line.startswith(" ") and not _BELONGS_TO_WHAT_IS_BEFORE.match(line)]
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=_FEW, unique=True))
    for index in sorted(chosen, reverse=True):
        indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
        lines[index:index] = [indent + line for line in draw(st.sampled_from(_STEPS)).split("\n")]
    lines.insert(start, "    random.seed(n)")
    return _HEAD + "\n".join(lines) + "\nprogram.kept, program.cache = KEPT, CACHE\n"
