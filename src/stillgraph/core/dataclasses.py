"""What `dataclasses.dataclass` writes: most of it only stores."""

from __future__ import annotations

from types import CodeType


def has_steps(code: CodeType) -> bool:
    """Whether code is an ``__init__`` of a dataclass that calls the user's: ``__post_init__``, or a factory."""
    if code.co_name != "__init__" or not code.co_filename.startswith("<"):
        return False
    names = (*code.co_names, *code.co_freevars)
    return "__post_init__" in names or any(name.strip("_").endswith("HAS_DEFAULT_FACTORY") for name in names)
