"""Marks on the code objects that rewriting makes, by which those who look at frames know them."""

from __future__ import annotations

from types import CodeType

REWRITTEN = type("Rewritten", (), {"__repr__": lambda self: "<rewritten by stillgraph>"})()
"""The last constant of each."""

BLOCK = type("Block", (), {"__repr__": lambda self: "<a block of a function>"})()
"""The last constant but one of what is a part of the user's function, and none that the user wrote."""


def is_rewritten(code: CodeType) -> bool:
    """Whether a code object, of a function or of anything nested in one, was made by rewriting."""
    return bool(code.co_consts) and code.co_consts[-1] is REWRITTEN


def is_block(code: CodeType) -> bool:
    """Whether a code object is that of a generated function, such as a loop's body. Lambdas do not tell."""
    return len(code.co_consts) > 1 and code.co_consts[-2] is BLOCK
