"""Running random programs, as they are and rewritten."""
from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

from tests.unit.source.plain_operators import rewritten
from tests.unit.source.programs import ProgramWriter

_files = count()


class Box:
    def __init__(self) -> None:
        self.x, self.y = 1, 2


def environment(events: list[object]) -> dict[str, Any]:
    fuel = iter(range(60))

    def log(key: object, value: object = None) -> object:
        events.append((key, type(value) if callable(value) or isinstance(value, NameError) else repr(value)))
        return value

    def pick(key: object, value: object) -> object:
        events.append(key)
        return value

    class manager:
        def __init__(self, value: object, swallows: type | tuple[type, ...] = (), grumpy: bool = False) -> None:
            self.value, self.swallows, self.grumpy = value, swallows, grumpy

        def __enter__(self) -> object:
            events.append(("enter", repr(self.value)))
            return self.value

        def __exit__(self, kind: type | None, value: object, trace: object) -> bool:
            events.append(("exit", kind and kind.__name__.replace("UnboundLocalError", "NameError")))
            if self.grumpy:
                raise ValueError("grumpy")
            return kind is not None and issubclass(kind, self.swallows)

    return {"log": log, "pick": pick, "tick": lambda: next(fuel, None) is not None, "manager": manager, "G": 7,
            "swallow": lambda kind: manager("swallow", kind), "grumpy": lambda value: manager(value, grumpy=True)}


def define(source: str, events: list[object]) -> Callable[..., Any]:
    file = f"<program {next(_files)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace = environment(events)
    with warnings.catch_warnings(action="ignore"):
        exec(compile(source, file, "exec"), namespace)
    return namespace["program"]


def outcome(program: Callable[..., Any], events: list[object], a: int, b: int) -> tuple[object, ...]:
    box, items = Box(), [1, 2, 3]
    try:
        result: object = program(a, b, box, items)
        if isinstance(result, Iterator):
            result = list(result)
        if callable(result):
            result = "function"
    except NameError:
        result = "NameError"
    except Exception as error:
        result = type(error), str(error).replace("UnboundLocalError", "NameError")
    return repr(result), events[:], sorted(vars(box)), repr([v for v in vars(box).values() if not callable(v)]), \
        repr(program.__globals__.get("G")), repr(items)


def check(source: str) -> None:
    for a, b in ((0, 1), (1, 0), (2, 5), (-1, 3)):
        events: list[object] = []
        original = define(source, events)
        expected = outcome(original, events, a, b)
        events = []
        fresh = define(source, events)
        assert outcome(rewritten(fresh), events, a, b) == expected, source


def write(seed: int, **options: Any) -> str:
    """The first program of a seed that Python itself accepts."""
    random = Random(seed)
    while True:
        source = ProgramWriter(random, **options).write()
        try:
            with warnings.catch_warnings(action="ignore"):
                compile(source, "<program>", "exec")
        except SyntaxError:
            continue
        return source
