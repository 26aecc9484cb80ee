"""How deep the stack is at each instruction: all ways there have to agree, whichever version of Python wrote the code.

Run as a program it decodes the standard library of the Python that runs it, and needs nothing but that:
``python tests/unit/bytecode/stacks.py src/stillgraph/bytecode/code/decode.py [limit]``.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code object and all that are written in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def standard_library() -> Iterator[CodeType]:
    """The code objects of every module of the running Python that can be compiled."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if not {"site-packages", "test", "tests", "lib2to3"}.isdisjoint(path.parts):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = compile(path.read_bytes(), str(path), "exec")
        except (SyntaxError, ValueError):
            continue  # the library's own tests have files that cannot be compiled
        yield from codes_in(module)


def check(decoding: ModuleType, depths: ModuleType, code: CodeType) -> set[str]:
    """Decode a code object and follow its stack; the names of the instructions in it."""
    decoded = decoding.decode.__wrapped__(code)
    known = depths.depths(decoded, decoding.JUMPS)
    assert max(known.values()) <= code.co_stacksize + 2  # names of arguments and copies, which older ones lack
    return {each.name for each in decoded.instructions}


def _alone(path: Path) -> ModuleType:
    """A module by itself, without the package that it is in."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(path: str, limit: str = "") -> None:
    decoding, depths = _alone(Path(path)), _alone(Path(path).with_name("depths.py"))
    names: set[str] = set()
    count = 0
    for code in itertools.islice(standard_library(), int(limit) if limit else None):
        try:
            names |= check(decoding, depths, code)
        except Exception as error:
            raise AssertionError(f"{code}: {error}") from error
        count += 1
    print(count, *sorted(names))


if __name__ == "__main__":
    main(*sys.argv[1:])
