"""Looking names up without running anybody's code."""

from __future__ import annotations

from types import WrapperDescriptorType
from typing import Any


def class_member(kind: type, name: str) -> Any:
    """What a class, or else its first base, has under a name, descriptors as they are; None if there is nothing."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def is_slot(member: Any, special: str) -> bool:
    """Whether what a class has as ``__setattr__``, say, is one written in C for just that, as ``object``'s is."""
    return isinstance(member, WrapperDescriptorType) and member.__name__ == special
