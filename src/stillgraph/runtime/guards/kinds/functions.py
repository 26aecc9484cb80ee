"""Guards on the code of functions."""

from __future__ import annotations

import os
import types

from stillgraph.program.guards import FunctionGuard
from stillgraph.runtime.guards.kinds.kind import Kind, Read
from stillgraph.runtime.native.function_writer import FunctionWriter

_DEFAULTS = ("defaults", "kwdefaults")


class OfFunctions(Kind[FunctionGuard]):
    """A function runs the code it ran, and has defaults where it had some."""

    def miss(self, guard: FunctionGuard, writer: FunctionWriter) -> str:
        value = writer.read(guard.source)
        without = [name for name in _DEFAULTS if not getattr(guard, name)]
        tests = [f"{value}.__code__ is not {writer.constant(guard.code)}"]
        return " or ".join([*tests, *(f"{value}.__{name}__ is not None" for name in without)])

    def why(self, guard: FunctionGuard, read: Read) -> str | None:
        function = read(guard.source)
        if function.__code__ is not guard.code:
            expected, found = _place(guard.code), _place(function.__code__)
            return f"{guard.source} should run the code of {expected}, but runs that of {found}"
        for name in _DEFAULTS:
            if not getattr(guard, name) and getattr(function, f"__{name}__") is not None:
                return f"{guard.source} should have no __{name}__, but has some"
        return None


def _place(code: types.CodeType) -> str:
    return f"{code.co_qualname} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"
