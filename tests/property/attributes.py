"""Programs that set, delete and read attributes of an object from before the call, on some paths only."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
_HELPER = '''\
import torch


def num(v):
    if v is None:
        return 3
    if isinstance(v, str):
        return len(v)
    if isinstance(v, list):
        return v[-1].sum()
    if isinstance(v, torch.Tensor):
        return v.sum()
    return v * 2


'''
_DEFAULTS = ("None", "1", '"text"', "0.5")
_VALUES = ("x * {k}", "y", "y + {k}", "x.sum() * {k}", "{k}", "None", '"word"', "[x, x + {k}]", "x")
_CONDITIONS = (
    *("x.sum() > {k}", "x[0] > {k}", "y > {k}", 'hasattr(o, "{n}")', 'getattr(o, "{n}", None) is None'),
    'getattr(o, "{n}", "text") == "text"',
)
_READS = (
    'y = y + num(getattr(o, "{n}", {k}))',
    'y = y + hasattr(o, "{n}")',
    "try:\n    y = y + num(o.{n})\nexcept AttributeError:\n    y = y - {k}",
    "y = y * 0.5 + num(o.{n})",
    'if hasattr(o, "{n}"):\n    y = y + num(o.{n})',
    "o.{n} += {k}",
)
_DELETES = (
    "del o.{n}",
    'if hasattr(o, "{n}"):\n    del o.{n}',
    "try:\n    del o.{n}\nexcept AttributeError:\n    y = y + {k}",
)
_KINDS = ("", "", "(torch.nn.Module)", "(Slots)")


@st.composite
def attribute_programs(draw: Any) -> str:
    """The text of a module with a class ``Owner`` and a ``function(o, x)``."""
    kind = draw(st.sampled_from(_KINDS))
    names = NAMES[: draw(st.integers(1, 3))]
    slots = kind == "(Slots)"
    body = [f"__slots__ = {names!r}"] if slots else []
    for name in names if not slots else ():
        if draw(st.booleans()):
            body.append(f"{name} = {draw(st.sampled_from(_DEFAULTS))}")
    lines = [f"class Owner{'' if slots else kind}:", *_indented(body or ["pass"]), "", ""]
    lines += ["def function(o, x):", "    y = x.sum() * 0.5", *_indented(_block(draw, names, 0))]
    return _HELPER + "\n".join([*lines, "    return y", ""])


def _block(draw: Any, names: tuple[str, ...], depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4 if depth == 0 else 2))):
        lines += _statement(draw, names, depth)
    return lines


def _statement(draw: Any, names: tuple[str, ...], depth: int) -> list[str]:
    def filled(templates: tuple[str, ...]) -> str:
        k, n = draw(st.integers(-2, 3)), draw(st.sampled_from(names))
        return draw(st.sampled_from(templates)).format(k=k, n=n)

    what = draw(st.sampled_from(("set", "read", "delete", *(("if", "if", "loop", "leave") if depth < 2 else ()))))
    if what == "set":
        return [filled(tuple("o.{n} = " + value for value in _VALUES))]
    if what in ("read", "delete"):
        return filled(_READS if what == "read" else _DELETES).split("\n")
    inner = _indented(_block(draw, names, depth + 1))
    if what == "loop":
        return ["for i in range(int(x.abs().sum()) % 3):", *inner]
    if what == "leave":
        return [f"if {filled(_CONDITIONS)}:", *inner, "    return y - 1"]
    other = _indented(_block(draw, names, depth + 1)) if draw(st.booleans()) else []
    return [f"if {filled(_CONDITIONS)}:", *inner, *(["else:", *other] if other else [])]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
