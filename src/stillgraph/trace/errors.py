"""The texts of errors that Python raises in a capture: they tell the kinds of values that eager PyTorch has."""

from __future__ import annotations

import re

_KINDS = {"FakeTensor": "Tensor", "StagedFloat": "float", "StagedInt": "int", "StagedBool": "bool", "StagedText": "str"}
_NAMES = re.compile(rf"\b({'|'.join(_KINDS)})\b")


def in_eagers_words(error: BaseException) -> None:
    """Let an exception say what it would say in eager PyTorch, if it names what stands for values in a capture."""
    if any(type(arg) is str and _NAMES.search(arg) for arg in error.args):
        error.args = tuple(_NAMES.sub(_kind, arg) if type(arg) is str else arg for arg in error.args)


def _kind(found: re.Match[str]) -> str:
    return _KINDS[found[1]]
