"""One instruction set for every version of Python: nothing is unknown, and all ways to an instruction agree."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from stillgraph.bytecode.code import decode as decoding
from stillgraph.bytecode.code import depths
from stillgraph.bytecode.code.decode import UnknownInstruction, decode
from stillgraph.bytecode.code.instruction_set import OPERATIONS
from tests.unit.bytecode import stacks


def _python(version: str) -> str | None:
    """A Python of a version that runs: on the path, or installed beside this one (pyenv and uv do so)."""
    beside = Path(sys.base_prefix).parent.glob(f"*{version}*/bin/python{version}")
    for path in (shutil.which(f"python{version}"), *map(str, beside)):
        if path is not None and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


VERSIONS = ("3.11", "3.12", "3.13")
_RETURN = ("RETURN_VALUE", None)

EVERYTHING = '''
from os.path import *
import os.path as path
from os import sep as separator

class Point:
    __match_args__ = ("x", "y")
    z: int = 3
    def __init__(self, x, y, /, *, scale=1, **rest):
        super().__init__()
        self.x, self.y = x * scale, y
        del self.y
        global count
        count = __class__
        del count

def patterns(subject, *more):
    match subject:
        case Point(1, y=2) | Point():
            return subject
        case {"a": [first, *others], **rest}:
            return first, others, rest
        case [a, _, *b] if a:
            return f"{a!r:>{b}} {b} {a!s}"
        case "text" | None:
            return {**subject, "k": 1}, [*more, 2], {*more}, (*more, 3)

def exceptions(manager):
    with manager as (a, *b), manager:
        try:
            assert a, "message"
            return a if a is not None else b
        except (ValueError, TypeError) as error:
            raise RuntimeError from error
        finally:
            del a

def groups(manager):
    try:
        raise
    except* (ValueError, OSError) as caught:
        print(caught, sep="", **manager)

def generators(n):
    def inner():
        nonlocal n
        n += 1
        received = yield n
        del n
        return received
    total = yield from inner()
    yield [lambda: x for x in range(3) if x not in (1, 2)], {x: -x for x in "ab"}, {~x for x in [+total]}
    return (x async for x in total)

def classes(base):
    class Inner(base):
        y = base
        del y
    class Other:
        def method(self):
            return super().method(), super().attribute
    return Inner, [lambda: x for x in base], [x for x in base]

def operators(a, b, c):
    a += b; a -= b; a *= b; a @= b; a //= b; a /= b; a %= b; a **= b; a <<= b; a >>= b; a &= b; a |= b; a ^= b
    a[1:b] = c[:2]
    a[b], c.attribute, *rest = c
    del a[b]
    while a < b <= c or not (a and b):
        for i in a[::2]:
            if i is None: continue
            if i is b: continue
            if i: break
        else:
            a = b
    return 1 < a, a[b:c:2], a.method(b, key=c), a.method(*b), operators(a, b, c=c)

async def coroutine(manager):
    async with manager as m:
        async for x in m:
            await x
    return [y async for y in m]

async def asynchronous():
    yield 1
'''
GENERIC = '''
type Alias[T] = list[T]

def generic[T: int, *Ts, **P](x: T) -> T:
    return x

class C[T: (int, str)]:
    type A = int
'''


@pytest.mark.parametrize("text", [pytest.param(EVERYTHING, id="everything"), pytest.param(GENERIC, id="generic")])
def test_every_construct(text: str) -> None:
    if text == GENERIC and sys.version_info < (3, 12):
        with pytest.raises(SyntaxError):
            compile(text, "generic", "exec")
        return
    for code in stacks.codes_in(compile(text, "text", "exec")):
        assert stacks.check(decoding, depths, code) <= OPERATIONS.keys()


def test_each_operation_is_written_by_something() -> None:
    texts = [EVERYTHING, *([GENERIC] if sys.version_info >= (3, 12) else [])]
    written = {
        each.name
        for text in texts
        for code in stacks.codes_in(compile(text, "text", "exec"))
        for each in decode(code).instructions
    }
    prompt = {each.name for each in decode(compile("1", "<stdin>", "single")).instructions}
    newer = {
        *("BINARY_SLICE", "STORE_SLICE", "CLEANUP_THROW", "LOAD_FAST_AND_CLEAR", "LOAD_FROM_DICT_OR_GLOBALS"),
        *("LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "STOPITERATION_ERROR", "TYPE_PARAMETER"),
    }
    assert OPERATIONS.keys() - written - prompt == (newer if sys.version_info < (3, 12) else set())


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x + 1, [("LOAD_FAST", 0), ("LOAD_CONST", 1), ("BINARY_OP", "+"), _RETURN]),
        (lambda x, y: x < y, [("LOAD_FAST", 0), ("LOAD_FAST", 1), ("COMPARE_OP", "<"), _RETURN]),
        (lambda x: x.real, [("LOAD_FAST", 0), ("LOAD_ATTR", "real"), _RETURN]),
        (lambda x: x is not None, [("LOAD_FAST", 0), ("LOAD_CONST", None), ("IS_OP", "is not"), _RETURN]),
        (
            lambda x, y: x and y,
            [
                *(("LOAD_FAST", 0), ("COPY", 1), ("POP_JUMP_IF_FALSE", 5), ("POP_TOP", None)),
                *(("LOAD_FAST", 1), _RETURN),
            ],
        ),
        (
            lambda x: x.f(1, k=2),
            [
                *(("LOAD_FAST", 0), ("LOAD_METHOD", "f"), ("LOAD_CONST", 1), ("LOAD_CONST", 2)),
                *(("LOAD_CONST", ("k",)), ("CALL_KW", 2), _RETURN),
            ],
        ),
        (
            lambda x: f"{x!r:>9}",
            [
                *(("LOAD_FAST", 0), ("LOAD_CONST", ">9"), ("SWAP", 2), ("CONVERT_VALUE", 2)),
                *(("SWAP", 2), ("FORMAT_WITH_SPEC", None), _RETURN),
            ],
        ),
    ],
    ids=["operator", "comparison", "attribute", "identity", "and", "call", "text"],
)
def test_instructions(function: Any, expected: list[tuple[str, Any]]) -> None:
    found = [(each.name, each.argument) for each in decode(function.__code__).instructions]
    if "CONVERT_VALUE" in dict(found) and sys.version_info >= (3, 13):  # converts before the format is there
        found = [each for each in found if each[0] != "SWAP"]
        expected = [each for each in expected if each[0] != "SWAP"]
        assert sorted(map(str, found)) == sorted(map(str, expected))
    else:
        assert found == expected


def test_slots_are_variables_then_cells_then_free_variables() -> None:
    def outer(a: int, b: int) -> Any:
        def inner(c: int) -> int:
            d = a + b + c
            return d

        return inner

    assert decode(outer.__code__).slots == ("a", "b", "inner")
    assert decode(outer(1, 2).__code__).slots == ("c", "d", "a", "b")


def test_a_handler_covers_what_may_raise() -> None:
    def handled(x: Any) -> Any:
        try:
            return x()
        except ValueError:
            return 0

    decoded = decode(handled.__code__)
    (call,) = [index for index, each in enumerate(decoded.instructions) if each.name == "CALL"]
    handler = decoded.handler(call)
    assert handler is not None
    assert handler.depth == 0
    assert decoded.instructions[handler.target].name == "PUSH_EXC_INFO"
    outside = [each.argument for each in decoded.instructions].index("ValueError")
    inner = decoded.handler(outside)
    assert inner is not None
    assert (inner.depth, inner.pushes_place) == (1, True)


def test_positions_are_the_users() -> None:
    code: CodeType = test_positions_are_the_users.__code__
    assert {each.positions.lineno for each in decode(code).instructions if each.positions is not None} - {None} <= set(
        range(code.co_firstlineno, code.co_firstlineno + 10)
    )


def test_an_unknown_instruction_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_AS_THEY_ARE", decoding._AS_THEY_ARE - {"RETURN_VALUE"})
    with pytest.raises(UnknownInstruction, match=r"RETURN_VALUE of Python 3\.\d+"):
        decode.__wrapped__((lambda: print()).__code__)


def test_some_of_the_standard_library() -> None:
    for code in itertools.islice(stacks.standard_library(), 2000):
        assert stacks.check(decoding, depths, code) <= OPERATIONS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_the_standard_library(version: str) -> None:
    """Of every version that this machine has: the decoder runs there by itself."""
    assert decoding.__file__ is not None
    python = _python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    command = [python, str(Path(stacks.__file__)), decoding.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, *names = done.stdout.split()
    assert int(count) > 15_000
    assert set(names) <= OPERATIONS.keys()
