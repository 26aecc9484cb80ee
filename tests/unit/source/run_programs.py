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
    """The globals of a program; what it does is noted in `events`."""
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


def define(source: str) -> Callable[..., Any]:
    file = f"<program {next(_files)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace: dict[str, Any] = {}
    with warnings.catch_warnings(action="ignore"):
        exec(compile(source, file, "exec"), namespace)
    return namespace["program"]


def outcome(program: Callable[..., Any], a: int, b: int) -> tuple[object, ...]:
    """What a program does in a fresh environment."""
    events: list[object] = []
    program.__globals__.update(environment(events))
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
    values = [value for value in vars(box).values() if not callable(value)]
    return repr(result), events, sorted(vars(box)), repr(values), repr(program.__globals__.get("G")), repr(items)


def check(source: str) -> None:
    """Compare a program with its rewritten self."""
    program = define(source)
    made = rewritten(program)
    for a, b in ((0, 1), (1, 0), (2, 5), (-1, 3)):
        assert outcome(made, a, b) == outcome(program, a, b), source


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
