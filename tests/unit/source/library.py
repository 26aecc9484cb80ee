"""Running functions of the standard library with everything in them rewritten. Needs nothing but Python itself."""
from __future__ import annotations

import argparse
import dataclasses
import difflib
import heapq
import importlib
import json
import json.decoder
import json.encoder
import json.scanner
import shlex
import statistics
import string
import textwrap
import types
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from stillgraph.core.diagnostics import CaptureError
from stillgraph.source.convert import convert
from tests.unit.source.following import Following
from tests.unit.source.plain_operators import OPERATORS

TEXT = Path(textwrap.__file__).read_text(encoding="utf-8")
OLD = TEXT.splitlines()[:120]
NEW = [line.replace("self", "this") for number, line in enumerate(OLD) if number % 7]
MODULES = ("textwrap", "json.decoder", "json.encoder", "argparse", "difflib", "heapq", "statistics", "dataclasses",
           "typing", "inspect", "ast", "logging", "contextlib", "tokenize", "shutil", "unittest.mock", "configparser")


def decode(text: str) -> object:
    decoder = json.JSONDecoder()
    decoder.parse_string = json.decoder.py_scanstring
    decoder.scan_once = json.scanner.py_make_scanner(decoder)
    return decoder.decode(text)


def encode(value: object, **options: Any) -> str:
    quick, json.encoder.c_make_encoder = json.encoder.c_make_encoder, None
    try:
        return "".join(json.JSONEncoder(**options).iterencode(value))
    finally:
        json.encoder.c_make_encoder = quick


def parse(words: list[str]) -> object:
    parser = argparse.ArgumentParser(prog="p", exit_on_error=False)
    parser.add_argument("x", type=int)
    parser.add_argument("--foo", "-f", choices=["a", "b"], default="a", help="Which of them.")
    parser.add_argument("-v", action="count")
    parser.add_argument_group("more").add_argument("rest", nargs="*")
    return vars(parser.parse_args(words)), parser.format_help()


def fill(number: int) -> object:
    @dataclasses.dataclass(order=True)
    class Point:
        a: int
        b: list[int] = dataclasses.field(default_factory=list)

        def moved(self) -> object:
            return dataclasses.replace(self, a=self.a + number)

    return Point(1).moved(), Point(1) < Point(2), dataclasses.asdict(Point(3, [1])), Point.moved.__qualname__


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (textwrap.wrap, (TEXT[:3000],), {"width": 40}), (textwrap.dedent, (TEXT,), {}),
    (textwrap.shorten, ("a b " * 99, 20), {}),
    (difflib.unified_diff, (OLD, NEW), {}), (difflib.ndiff, (OLD[:60], NEW[:60]), {}),
    (difflib.get_close_matches, ("appel", ["ape", "apple", "peach"]), {}),
    (heapq.nsmallest, (3, [5, 2, 8, 1, 9]), {}), (heapq.merge, ([1, 4], [2, 3]), {}),
    (heapq.nlargest, (2, ["a", "ccc", "bb"]), {"key": len}),
    *((decode, (text,), {}) for text in ('{"a":[1,2.5,null,"x\\u00e9\\n"],"b":{}}', "[1,]", '{"a" 1}', '"abc', "")),
    (encode, ({"a": [1, 2.5, None, {"b": ()}], "c": "é"},), {"indent": 2}),
    (encode, ({(1, 2): 3},), {"skipkeys": True}),
    (encode, ({1: float("nan")},), {"allow_nan": False}),
    (statistics.mean, ([1, 2, 3.5],), {}), (statistics.stdev, ([1, 2, 3.5],), {}), (statistics.median, ([],), {}),
    (statistics.quantiles, ([1, 5, 2, 8, 3],), {}), (statistics.linear_regression, ([1, 2, 3], [2, 4, 7]), {}),
    *((parse, (words,), {}) for words in (["3"], ["3", "--foo", "a", "-vv"], ["3", "q", "r"], ["z"], ["3", "-f", "c"])),
    (shlex.split, ('a "b c" d\\ e',), {}), (string.Template("$a ${b} $$").substitute, (), {"a": 1, "b": 2}),
    (fill, (2,), {}),
]


def outcome(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> str:
    try:
        value = function(*deepcopy(args), **options)
        return repr(list(value) if isinstance(value, Iterator) else value)
    except Exception as error:
        return repr((type(error), str(error)))


def check_calls() -> int:
    """Compare every call; return how many functions were rewritten for them."""
    following = Following()
    for function, args, options in CALLS:
        assert outcome(following.rewritten(function), args, options) == outcome(function, args, options), function
    assert set(following.refused.values()) <= {"SG101"}, following.refused       # of frozen modules
    return len(following.followed)


def functions_of(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """The functions and methods that a module defines."""
    for value in vars(module).values():
        is_own_class = isinstance(value, type) and value.__module__ == module.__name__
        for member in vars(value).values() if is_own_class else [value]:
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if isinstance(function, types.FunctionType) and function.__code__.co_filename == module.__file__:
                yield function


def convert_all(names: tuple[str, ...] = MODULES) -> int:
    """Convert every function of some modules; return how many there were."""
    done = 0
    for name in names:
        for function in functions_of(importlib.import_module(name)):
            try:
                made = convert(function, OPERATORS)
            except CaptureError as refusal:
                assert refusal.reason.code in ("SG103", "SG104"), (function, refusal)       # noqa: PT017
                continue
            if name in ("argparse", "difflib"):         # printing takes longer than converting
                assert made.code.startswith(("def", "lambda"))
                assert max(made.source_map) == len(made.code.splitlines())
            done += 1
    return done
