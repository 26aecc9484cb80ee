"""A hypothesis strategy for the source text of functions of plain Python: nested statements of every kind.

Each takes ``(a, b, items)``: two integers and a list of integers. It always ends: loops are over what has an end, or
count their rounds. Whatever else it does is right: it may raise anywhere, and print.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

_NAMES = ("a", "b", "c", "d")
_ERRORS = ("ValueError", "KeyError", "ZeroDivisionError", "(TypeError, IndexError)", "Exception", "UnboundLocalError")
_RAISED = ("ValueError(a)", "KeyError", "IndexError('at', b)", "TypeError(c) from None", "ValueError from KeyError(1)")
_EXPRESSIONS = (
    *("{0} + {1}", "{0} - {1}", "{0} * 2", "{0} // {1}", "{0} % 3", "-{0}", "abs({0})", "len(items)", "items[{0}]"),
    *("({0} if {2} else {1})", "({0} and {1})", "({0} or {1})", "sum(items)", "max({0}, {1}, key=lambda v: -v)"),
    *("sum([x * {0} for x in items if x > {1}])", "len({{x % 3 for x in items}})", "sum(x for x in items)"),
    *("(lambda v, w={0}: v + w)({1})", "[x for x in range({0} % 4)][-1]", "len(f'{{{0}!r:>4}}')", "(t := {0})"),
    *("sum({{x: x + {0} for x in items}}.values())", "[[y for y in items if y < x] for x in items][{0} % 2][0]"),
    *("inner({0})", "next(x for x in items if x > {0})", "sum(numbers({0}))", "dict(k={0})['k']", "(*items, {0})[0]"),
)
_CONDITIONS = (
    *("{0} < {1}", "{0} == {1}", "{0} > 0", "not {0}", "{0} in items", "0 <= {0} < 3", "{0} is None", "items"),
    *("{0} % 2", "{0} != {1} and {0}", "{0} < 0 or {1} > 1", "isinstance({0}, int)"),
)
_STATEMENTS = (
    *("{n} = {0}", "{n} = {0}", "{n} += {0}", "{n} -= 1", "print('{n}', {0})", "items.append({0})", "del {n}"),
    *("{n}, *rest = items", "{n}, e = {0}, {1}", "items[{0} % 3] = {1}", "assert {2}, {0}", "items[1:2] = [{0}]"),
    *("[{n}, (e, *f)] = {0}, items", "print(sys.exc_info()[1])", "print(sorted(locals()))", "items.pop()"),
)

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class _Place:
    depth: int
    in_loop: bool = False
    in_handler: bool = False
    in_generator: bool = False

    def within(self, **changed: Any) -> _Place:
        return replace(self, depth=self.depth - 1, **changed)


@dataclass
class _Writer:
    draw: Draw
    left: int
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def value(self, size: int = 1) -> str:
        if not size or self.pick(True, False):
            return self.pick(*_NAMES[:3], "a", "b", "0", "1", "2")
        return self.filled(self.pick(*_EXPRESSIONS), size - 1)

    def filled(self, pattern: str, size: int = 1) -> str:
        condition = self.filled(self.pick(*_CONDITIONS), 0) if "{2}" in pattern else ""
        return pattern.format(self.value(size), self.value(size), condition, n=self.pick(*_NAMES))

    def add(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, place: _Place) -> None:
        for _ in range(self.pick(1, 1, 2, 3)):
            self.statement(indent, place)

    def statement(self, indent: int, place: _Place) -> None:
        self.left -= 1
        kinds = ["plain"] * 4 + ["leave"]
        if place.depth and self.left > 0:
            kinds += ["if", "while", "for", "try", "try", "with", "def", "generator", "match"]
        getattr(self, f"_{self.pick(*kinds)}")(indent, place)

    def _plain(self, indent: int, place: _Place) -> None:
        self.add(indent, self.filled(self.pick(*_STATEMENTS)))

    def _leave(self, indent: int, place: _Place) -> None:
        ways = [f"raise {self.pick(*_RAISED)}", f"return {self.value()}"]
        ways += ["break", "continue", f"if {self.filled(self.pick(*_CONDITIONS))}: break"] * place.in_loop
        ways += ["raise"] * place.in_handler
        ways += [f"d = yield {self.value()}", f"yield {self.value()}", "c = yield from numbers(a)"] * place.in_generator
        self.add(indent, self.pick(*ways))

    def _if(self, indent: int, place: _Place) -> None:
        self.add(indent, f"if {self.filled(self.pick(*_CONDITIONS))}:")
        self.block(indent + 1, place.within())
        if self.pick(True, False):
            self.add(indent, f"elif {self.filled(self.pick(*_CONDITIONS))}:")
            self.block(indent + 1, place.within())
        self._else(indent, place)

    def _else(self, indent: int, place: _Place) -> None:
        if self.pick(True, False):
            self.add(indent, "else:")
            self.block(indent + 1, place.within())

    def _while(self, indent: int, place: _Place) -> None:
        rounds = self.fresh("rounds")
        self.add(indent, f"{rounds} = 0")
        self.add(indent, f"while ({rounds} := {rounds} + 1) < 5 and ({self.filled(self.pick(*_CONDITIONS))}):")
        self.block(indent + 1, place.within(in_loop=True))
        self._else(indent, place)

    def _for(self, indent: int, place: _Place) -> None:
        over = self.pick("range({0} % 4)", "list(items)", "enumerate(items[:3])", "numbers({0})", "zip(items, 'ab')")
        self.add(indent, f"for {self.pick(*_NAMES)} in {self.filled(over)}:")
        self.block(indent + 1, place.within(in_loop=True))
        self._else(indent, place)

    def _try(self, indent: int, place: _Place) -> None:
        self.add(indent, "try:")
        self.block(indent + 1, place.within())
        handlers = self.pick(0, 1, 1, 2)
        star = "*" if handlers and self.pick(*[False] * 5, True) else ""
        for _ in range(handlers):
            self.add(indent, f"except{star} {self.pick(*_ERRORS)}{self.pick('', ' as e')}:")
            inner = place.within(in_handler=True, in_loop=place.in_loop and not star)
            if star:
                self.add(indent + 1, self.pick("print('star', sys.exc_info()[1])", "raise", "raise ValueError(a)"))
            else:
                self.block(indent + 1, inner)
        if handlers:
            self._else(indent, place)
        if not handlers or self.pick(True, False):
            self.add(indent, "finally:")
            self.block(indent + 1, place.within())

    def _with(self, indent: int, place: _Place) -> None:
        managers = [f"Manager({self.value()}){self.pick('', ' as c')}" for _ in range(self.pick(1, 1, 2))]
        self.add(indent, f"with {', '.join(managers)}:")
        self.block(indent + 1, place.within())

    def _def(self, indent: int, place: _Place) -> None:
        name = self.fresh("act")
        self.add(indent, f"def {name}(b={self.value()}, *rest):")
        if indent == 1 and not place.in_generator and self.pick(True, False):
            self.add(indent + 1, "nonlocal d")
        self.block(indent + 1, _Place(place.depth - 1))
        self.add(indent, f"{self.pick(*_NAMES)} = {name}({self.pick('', self.value(0), '*items')})")

    def _generator(self, indent: int, place: _Place) -> None:
        name, made = self.fresh("gives"), self.fresh("made")
        self.add(indent, f"def {name}(c={self.value()}):")
        self.add(indent + 1, f"yield {self.value()}")
        self.block(indent + 1, _Place(place.depth - 1, in_generator=True))
        self.add(indent, f"{made} = {name}()")
        use = self.pick("print(list({0}))", "print(next({0}), {0}.send(a))", "print(next({0}), {0}.throw(KeyError))",
                        "print(next({0}), {0}.close())", "a, *b = {0}")
        self.add(indent, use.format(made))

    def _match(self, indent: int, place: _Place) -> None:
        self.add(indent, f"match {self.pick('a', 'items', '(a, b)', '{chr(97): b}', 'c')}:")
        patterns = ("0 | 1", "[x, *rest]", "(0, e)", "{'a': int(e)}", "int() as e", "[]", "str()", "[_, e, *_]")
        for _ in range(self.pick(1, 2)):
            guard = f" if {self.filled(self.pick(*_CONDITIONS))}" if self.pick(True, False) else ""
            self.add(indent + 1, f"case {self.pick(*patterns)}{guard}:")
            self.block(indent + 2, place.within())


_HEAD = '''import sys

class Manager:
    def __init__(self, how):
        self.how = how

    def __enter__(self):
        print("enter", self.how)
        if self.how == -1:
            raise ValueError("enter")
        return self.how

    def __exit__(self, kind, error, trace):
        print("exit", kind, error, trace is None)
        return self.how == 2

def numbers(n):
    try:
        for i in range(min(n, 4)):
            yield i
    finally:
        print("numbers", n)
    return n

'''


@st.composite
def functions(draw: Draw) -> str:
    """The source of a module with a function ``program``."""
    writer = _Writer(draw, draw(st.sampled_from((6, 12, 20))))
    writer.add(0, "def program(a, b, items):")
    writer.add(1, "def inner(v): return v + d")
    writer.add(1, "c = d = 0")
    generator = draw(st.sampled_from((False, False, False, True)))
    if generator:
        writer.add(1, "yield a")
    while writer.left > 0:
        writer.statement(1, _Place(3, in_generator=generator))
    writer.add(1, "return a, b, c, d, items")
    return _HEAD + "\n".join(writer.lines) + "\n"
