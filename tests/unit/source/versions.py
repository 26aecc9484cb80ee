"""Run under another Python, without torch: does the rewriting of random programs, the library and newer syntax work?

Usage: python versions.py <root of the repository> <seeds…>
"""
from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path

root, *seeds = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path[:0] = [root]
package = types.ModuleType("stillgraph")            # its own __init__ imports torch
package.__path__ = [f"{root}/src/stillgraph"]
sys.modules["stillgraph"] = package

from tests.unit.source import library, run_programs  # noqa: E402
from tests.unit.source.following import Following  # noqa: E402

assert library.convert_all() > 500
assert library.check_calls() > 120
for seed in map(int, seeds):
    run_programs.check(run_programs.write(seed))
    run_programs.check(run_programs.write(seed, generator=True))

if sys.version_info >= (3, 12):
    text = (Path(__file__).parent / "newer_syntax.py.txt").read_text()
    linecache.cache["<newer>"] = len(text), None, text.splitlines(keepends=True), "<newer>"
    namespace: dict[str, object] = {"__name__": "newer"}
    exec(compile(text, "<newer>", "exec"), namespace)
    following = Following()
    for function in (namespace["collect"], namespace["exceptional"]):
        for value in (0, 1, "x"):
            assert str(following.rewritten(function)(value)) == str(function(value)), (function, value)  # type: ignore[operator]
    assert following.followed >= {"collect", "generic", "strings", "exceptional", "Registry.get"}, following.followed
    assert not following.refused
print("fine")
