"""Cases that do not hold yet, each with what will bring it. A case that holds by now must leave this list."""

from __future__ import annotations

STATIC: dict[str, str] = {}
"""By case: why its static function does not give eager's results in one program."""

BYTECODE: dict[str, str] = {**STATIC}
"""By case: the same, captured through its bytecode."""

PT2: dict[str, str] = {}
"""By case: why it cannot be saved as `.pt2`, or the loaded program differs."""

ONNX: dict[str, str] = {**PT2}
"""By case: why it cannot be saved as `.onnx`, or onnxruntime differs."""

PYTHON: dict[str, str] = {}
"""By case: why it cannot be saved as Python source, or the written file differs."""
