"""Random programs: every statement and expression kind, nested in every way that Python allows."""
from __future__ import annotations

from random import Random
from textwrap import indent

VARIABLES = ("a", "b", "c", "d", "e")


class ProgramWriter:
    """Writes a function `program(a, b, o, items)`; `d` and `e` may be unbound when they are read.

    Args:
        random: where choices come from.
        generator: whether the function may yield.
    """

    def __init__(self, random: Random, *, generator: bool = False) -> None:
        self.random = random
        self.generator = generator
        self.nested = 0

    def write(self) -> str:
        body = self.block(4, loop=False, cleanup=False)
        lines = ["def program(a, b, o, items):", indent("c = 1\nglobal G\n" + body, "    ")]
        if self.generator:
            lines.append("    yield a")
        return "\n".join(lines) + "\n"

    # ---- statements
    def block(self, depth: int, *, loop: bool, cleanup: bool) -> str:
        return "\n".join(self.statement(depth, loop, cleanup) for _ in range(self.random.randint(1, 4)))

    def statement(self, depth: int, loop: bool, cleanup: bool) -> str:
        simple = [self.assign, self.assign, self.augmented, self.log, self.leave, self.store, self.unpack, self.delete,
                  self.check, self.throw, self.walrus]
        compound = [self.branch, self.branch, self.branch, self.while_, self.for_, self.try_, self.with_, self.function,
                    self.match, self.branch_out, self.branch_out]
        if depth <= 0 or self.random.random() < 0.45:
            if self.generator and not self.nested and self.random.random() < 0.15:
                return f"yield {self.expr(1)}"
            return self.random.choice(simple)(loop)
        return self.random.choice(compound)(depth - 1, loop, cleanup)

    def assign(self, loop: bool) -> str:
        name = self.random.choice((*VARIABLES, "G"))
        return f"{name} = {self.expr(2)}"

    def augmented(self, loop: bool) -> str:
        target = self.random.choice((*VARIABLES, "G", "o.x", "items[a % 3]", "items[0]", "pick('p', o).x",
                                     "pick('q', items)[pick('k', 1)]"))
        return f"{target} {self.random.choice(('+=', '-=', '*='))} {self.random.choice(('1', self.expr(1)))}"

    def log(self, loop: bool) -> str:
        return f"log({self.random.randint(0, 99)}, {self.expr(2)})"

    def leave(self, loop: bool) -> str:
        choices = ["return", f"return {self.expr(1)}", "pass"] + ["break", "continue"] * (3 if loop else 0)
        return self.random.choice(choices)

    def store(self, loop: bool) -> str:
        target = self.random.choice(("o.x", "items[0]", "items[a % 3]", "pick('o', o).y",
                                     "pick('i', items)[pick('j', 2)]", "o.__z"))
        return f"{target} = {self.expr(2)}"

    def unpack(self, loop: bool) -> str:
        targets = self.random.choice(("a, b", "c, o.x", "o.x, a, items[a % 3]", "(d, o.y), e", "a, *o.rest",
                                      "b, (*c, d)", "a = o.x"))
        value = self.random.choice(("(1, 2)", "(a, b)", "((1, b), 3)", "(1, 2, 3)", "(a, (b, 4))"))
        return f"{targets} = {value}" if self.random.random() < 0.8 else f"{targets} = items[:2]"

    def delete(self, loop: bool) -> str:
        return self.random.choice(("del d", "del o.x", "del items[0]", "pass", "del e, o.x", "a: int = b", "del G"))

    def check(self, loop: bool) -> str:
        return f"assert {self.expr(1)}, {self.expr(1)}"

    def throw(self, loop: bool) -> str:
        return f"raise {self.random.choice(('ValueError', 'KeyError'))}({self.expr(1)})"

    def walrus(self, loop: bool) -> str:
        left, word, name = self.expr(1), self.random.choice(("and", "or")), self.random.choice(VARIABLES)
        return f"log('w', {left} {word} ({name} := {self.expr(1)}))"

    def branch(self, depth: int, loop: bool, cleanup: bool) -> str:
        text = f"if {self.test()}:\n{self.inner(depth, loop, cleanup)}"
        while self.random.random() < 0.3:
            text += f"\nelif {self.test()}:\n{self.inner(depth, loop, cleanup)}"
        if self.random.random() < 0.5:
            text += f"\nelse:\n{self.inner(depth, loop, cleanup)}"
        return text

    def branch_out(self, depth: int, loop: bool, cleanup: bool) -> str:
        return f"if {self.test()}:\n{indent(self.leave(loop), '    ')}"

    def while_(self, depth: int, loop: bool, cleanup: bool) -> str:
        text = f"while tick() and {self.test()}:\n{self.inner(depth, True, cleanup)}"
        return text + (f"\nelse:\n{self.inner(depth, loop, cleanup)}" if self.random.random() < 0.3 else "")

    def for_(self, depth: int, loop: bool, cleanup: bool) -> str:
        target, iterable = self.random.choice((
            ("a", "range(3)"), ("d", "range(b % 3)"), ("a, d", "[(1, 2), (3, b)]"), ("o.x", "range(2)"),
            ("(c, items[0])", "[(1, 2), (3, b)]"), ("G", "range(2)"), ("e, *d", "[(1, 2), (3, b, 5)]")))
        text = f"for {target} in {iterable}:\n{self.inner(depth, True, cleanup)}"
        return text + (f"\nelse:\n{self.inner(depth, loop, cleanup)}" if self.random.random() < 0.3 else "")

    def try_(self, depth: int, loop: bool, cleanup: bool) -> str:
        text = f"try:\n{self.inner(depth, loop, cleanup)}"
        kind = self.random.randint(0, 3)
        if kind:
            kinds = "ValueError", "(KeyError, TypeError)", "ValueError as e", "NameError", "Exception as d"
            text += f"\nexcept {self.random.choice(kinds)}:\n{self.inner(depth, loop, cleanup)}"
            if self.random.random() < 0.4:
                text += f"\nelse:\n{self.inner(depth, loop, cleanup)}"
        if kind in (0, 1):
            text += f"\nfinally:\n{self.inner(depth, loop, True)}"
        return text

    def with_(self, depth: int, loop: bool, cleanup: bool) -> str:
        items = self.random.choice(("manager(1)", "manager(2) as a", "swallow(ValueError)", "manager(3) as o.x",
                                    "manager(4) as o.x, manager(5) as (d, e)", "manager(6), swallow(KeyError)",
                                    "grumpy(a)", "swallow(ValueError), grumpy(1)"))
        return f"with {items}:\n{self.inner(depth, loop, cleanup)}"

    def function(self, depth: int, loop: bool, cleanup: bool) -> str:
        self.nested += 1
        shared = self.random.sample(VARIABLES[2:], self.random.randint(0, 2))
        body = self.block(min(depth, 2), loop=False, cleanup=False)
        self.nested -= 1
        number = self.random.randint(0, 9)
        declared = f"nonlocal {', '.join(shared)}\n" if shared else ""
        text = f"def helper_{number}(a, b={self.expr(1)}):\n" + indent(f"global G\n{declared}{body}", "    ")
        return text + f"\nlog('h', helper_{number}({self.expr(1)}))"

    def match(self, depth: int, loop: bool, cleanup: bool) -> str:
        cases = self.random.sample(("0", "1 | 2", "None", "[d, e]", "int(c)", "(a, b) if a", "{'k': d, **e}", "-1",
                                    "str() as a"), 2)
        subject = self.random.choice(("a", "(a, b)", "c", "o.x", "{'k': a, 'z': 2}"))
        text = f"match {subject}:\n"
        for case in cases:
            text += f"    case {case}:\n{indent(self.inner(depth, loop, cleanup), '    ')}\n"
        if self.random.random() < 0.6:
            last = self.random.choice(("_", "d", "_ if a", "e if b"))
            text += f"    case {last}:\n{indent(self.inner(depth, loop, cleanup), '    ')}\n"
        return text.rstrip()

    def inner(self, depth: int, loop: bool, cleanup: bool) -> str:
        return indent(self.block(depth, loop=loop, cleanup=cleanup), "    ")

    # ---- expressions
    def test(self) -> str:
        return self.expr(2)

    def expr(self, depth: int) -> str:
        pick = self.random.randint(0, 22 if depth > 0 else 5)
        left, right = (self.expr(depth - 1), self.expr(depth - 1)) if pick > 5 else ("", "")
        match pick:
            case 0 | 1 | 2:
                return self.random.choice(VARIABLES[:3])
            case 3:
                return self.random.choice((*VARIABLES, "G"))
            case 4 | 5:
                return str(self.random.randint(-1, 4))
            case 6 | 7:
                return f"({left} {self.random.choice('+-*')} {right})"
            case 8 | 9:
                return f"({left} {self.random.choice(('<', '<=', '==', '!=', 'is', 'is not'))} {right})"
            case 10:
                return f"({left} < {right} <= {self.expr(depth - 1)})"
            case 11 | 12:
                return f"({left} {self.random.choice(('and', 'or'))} {right})"
            case 13:
                return f"(not {left})"
            case 14:
                return f"({left} if {right} else {self.expr(depth - 1)})"
            case 15:
                return f"log({self.random.randint(0, 99)}, {left})"
            case 16:
                return f"({left} {self.random.choice(('in', 'not in'))} ({right}, 1))"
            case 17:
                return f"({self.random.choice(VARIABLES)} := {left})"
            case 18:
                return self.random.choice((
                    f"[{left} for a in range(2) if {right}]", f"sum(a for a in range(3) if {left} != 2)",
                    f"{{a: {left} for a, q in [(1, 2), (3, 4)] if q != {right}}}",
                    f"[(lambda: a)() for a in range(2) if {left}]",
                    f"[a + b for a in range(2) for b in ({left}, {right})]")) if ":=" not in left + right else left
            case 19:
                return f"(lambda a, z=2: {left})({right})" if ":=" not in left else left
            case 20:
                return self.random.choice(("o.x", "items[0]", "items[a % 3]", "items[:b % 3]", "len(items)"))
            case 21:
                return f"f'{{{left}}} {{{right}!r:>4}}'" if "'" not in left + right else left
            case _:
                return f"({left} is None)"
