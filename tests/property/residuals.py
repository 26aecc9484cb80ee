"""Programs with steps for Python mixed into them: prints, numbers read, lists, chance, caches, handlers and managers.

They have the control flow of `tests.property.programs`, and one argument more: the list ``kept``, which they write to.
What each of their own statements does, a program cannot, or only some part of it: `to_static(full_graph=False)` leaves
it to Python.
"""
from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.property import programs as plain
from tests.property.programs import FLOAT, INT, SCALAR, VECTOR, Draw, Grammar

HELPERS = '''\
import contextlib
import logging
import random

import torch

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)
LOG.propagate = False
MEMO = {}
HISTORY = []


class Shown(logging.StreamHandler):
    def emit(self, record):
        print("logged", record.levelname, self.format(record), record.lineno)


LOG.handlers[:] = [Shown()]


class State:
    kind = "state"

    def __init__(self, s):
        self.s, self.count, self.log, self.cache = s, 0, [], {}

    @property
    def last(self):
        return self.log[-1] if self.log else None

    def step(self, s, *more, scale=0.5, **named):
        self.count += 1
        self.log.append(s.item())
        if self.count > 2 and self.log[-1] > 0:
            print("state", self.count, f"{self.last:.3f}", len(more), sorted(named))
            return self.s
        self.s = s * scale
        for each in more:
            if isinstance(each, torch.Tensor) and each.item() < 0:
                self.cache[round(each.item(), 1)] = self.count
                break
        else:
            self.s = self.s + len(named)
        return self.s


def remembered(s):
    key = round(s.item(), 1)
    if key not in MEMO:
        if len(MEMO) > 3:
            MEMO.clear()
        MEMO[key] = s.item() * 0.5
        LOG.info("new %.2f of %d", key, len(MEMO))
    return MEMO[key]


def chances(count=3):
    for _ in range(count):
        yield random.random()


def cleaned(v):
    try:
        for e in v:
            if e.item() > 1.5:
                return "large"
            yield e.item()
    except GeneratorExit:
        print("closed")
        raise
    finally:
        print("cleaned")


class Manager:
    def __init__(self, name, swallows=()):
        self.name, self.swallows = name, swallows

    def __enter__(self):
        print("enter", self.name)
        return self

    def __exit__(self, kind, error, trace):
        print("exit", self.name, kind, error)
        return isinstance(error, self.swallows)


@contextlib.contextmanager
def managed(name):
    print("begin", name)
    try:
        yield name
    except KeyError as error:
        print("swallowed", error)
    finally:
        print("end", name)


def told(values):
    print("first")
    for value in values:
        print("gives", value.item())
        yield value * 0.5
    print("last")


def risky(s):
    print("risky", s.item())
    if s > 1.5:
        raise KeyError("big")
    if s.item() < -1.5:
        raise ValueError(f"small: {s.item():.2f}")
    return s * 0.5

'''

_START = '''\
    seen, cache, chance, rounds, state = [], {}, random.Random(3), 0, State(s)
    random.seed(n)

    def note(x, much=True):
        nonlocal rounds
        rounds += 1
        if much:
            seen.append(x.item())
        if x > 1:
            print("noted", rounds, f"{x.item():.3f}")
            return x * 0.5
        return x + 0.125

    def halves(x):
        for _ in range(2):
            x = x * 0.5
            received = yield x
            print("received", received, f"{x.item():.3f}")
'''

_LINES = (
    'print("value", {s}.item())', 'print("%.3f" % {s}.item(), {n})', 'print("all", {v}.tolist())',
    "kept.append({s}.item())", "seen.append({v}.sum().item())", "kept.append({s})", "seen += [{n}, {c}]",
    ":n = chance.randint(0, 3)", ":c = chance.random() + {c}", ":s = {s} * chance.random()",
    ":s = cache.setdefault(round({s}.item(), 1), {s} * 0.5)", "cache[{n} % 3] = {s}.item()",
    ":c = cache.get({n} % 3, {c})", ":c = {v}.sum().item() * 0.5", ":n = len(kept) + int({s}.item())",
    ":s = note({s})", ":s = note({s}, {n} > 1)", ":v = torch.stack([note({s}), {s}, note({s})])",
    ':v = torch.stack(list(told({v})))', ":s = sum(told({v}), {s})", ":s = next(told({v}))",
    ":c = max(seen, default={c})", 'print(sorted(map(str, cache)), len(kept))', ":s = risky({s})",
    ":n = kept.pop() if kept and isinstance(kept[-1], int) else {n}", "kept.clear()",
    ":s = max([{s}, {s}], key=lambda x: (print('key'), x.item())[1])", ":s = sum(halves({s}), {s})",
    ":s = state.step({s})", ":s = state.step({s}, {s}, scale={c}, extra={n})", ":s = state.step(*{v})",
    ":s = state.step({s}, *seen[:2], **dict(c={c}))", ":n = state.count", "state.count -= 1", ":s = state.s",
    ":c = state.last if state.last is not None else {c}", "state.log.clear()", "state.extra = {s}.item()",
    ":n = getattr(state, 'count', 0) + len(state.cache)", "del state.log[1:]",
    ":c = remembered({s})", ":s = {s} * remembered({s})", "HISTORY.append({c})", ":n = len(MEMO) % 3",
    ":c = HISTORY.pop() if HISTORY else {c}", "MEMO.pop({c}, None)", 'LOG.info("%s", {n})',
    'LOG.debug("unseen %s", {s})',
    'LOG.warning("at %.2f", {s}.item())', ":c = random.random()", ":c = sum(chances({n} % 3)) + {c}",
    ":n = random.choice([0, 1, {n}])", ":c = next(cleaned({v}), {c})", ":c = sum(cleaned({v}))",
    ":n = sum(1 for e in {v} if e.item() > {c})", ":c = max([e.item() for e in {v}])",
    ":n = isinstance(kept[0] if kept else None, float) + len(kept)", 'print("%s %8.2f" % ({n}, {c}), end="|")',
    ":s = (lambda first, *rest: first)(*{v})", "first, *kept[:] = {v}.tolist()",
    ":c = (lambda x, *a: x.item() + len(a))({s}, *seen)",
    ":v = torch.tensor([e.item() for e in {v}])", ":s = torch.tensor({c}) if isinstance({c}, float) else {s}",
    "print(*[round(e, 2) for e in seen[-3:]], sep='/')", "seen.sort()", ":n = seen.index(seen[-1]) if seen else {n}",
)  # fmt: skip
_CONDITIONS = (
    "{s}.item() > {c}", "{v}.sum().item() < 0", "len(seen) > 1", "kept", "round({s}.item(), 1) in cache",
    "chance.random() > 0.5", "{v}.tolist()[0] > 0", "state.count > 1", "state.last and state.last > {c}",
    "random.random() > 0.5", "isinstance(kept and kept[-1], float)", "0 < {s}.item() < {c}",
    "not seen or seen[-1] > {c}", "any(e.item() > 0 for e in {v})", "all(e.item() < {c} for e in {v})",
    "hasattr(state, 'extra')", "len(MEMO) > 1", "HISTORY",
)  # fmt: skip
_MANAGERS = (
    'Manager("plain")', 'Manager({n}, KeyError)', 'Manager({s}.item() > 0, (ValueError, KeyError)) as manager',
    'managed("here")', 'contextlib.suppress(KeyError)', "torch.no_grad()", 'Manager("first"), managed({n})',
)  # fmt: skip


@dataclass
class _Writer(plain._Writer):
    """The same writer with steps for Python to choose from."""

    def filled(self, pattern: str, scope: plain._Scope, size: int) -> str:
        target, equals, rest = pattern.partition(" = ")
        if target.startswith(":"):  # something is stored in a variable of this kind
            return f"{self.pick(*scope.assignable[target[1:]])}{equals}{super().filled(rest, scope, size)}"
        return super().filled(pattern, scope, size)

    def condition(self, scope: plain._Scope, size: int = 2) -> str:
        if self.pick("any", "any", "any", "python") == "python":
            return self.filled(self.pick(*_CONDITIONS), scope, min(size, 1))
        return super().condition(scope, size)

    def statement(self, scope: plain._Scope) -> None:
        choices = ["step", "step", "other", "other"]
        choices += ["try", "with", "def", "while", "generator", "drawn"] * (scope.depth < self.grammar.depth)
        match self.pick(*choices):
            case "step":
                self.emit(scope, self.filled(self.pick(*_LINES), scope, 1))
            case "try":
                self.with_a_handler(scope)
            case "with":
                self.emit(scope, f"with {self.filled(self.pick(*_MANAGERS), scope, 0)}:")
                self.block(scope.inside())
            case "def":
                self.function(scope)
            case "while":
                self.asked(scope)
            case "generator":
                self.over_a_generator(scope)
            case "drawn":
                self.over_numbers(scope)
            case _:
                super().statement(scope)

    def with_a_handler(self, scope: plain._Scope) -> None:
        self.emit(scope, "try:")
        self.emit(scope.inside(), f"{self.pick('s', 't')} = risky({self.expression(SCALAR, scope, 1)})")
        self.block(scope.inside())
        kind = self.pick("KeyError", "ValueError", "(KeyError, ValueError)", "LookupError", "")
        if kind:
            self.emit(scope, f"except {kind} as error:")
            self.emit(scope.inside(), self.pick('print("caught", error)', "kept.append(str(error))", "pass"))
            self.block(scope.inside())
            if self.pick("no", "raise") == "raise":
                self.emit(scope.inside(), f"if {self.condition(scope, 1)}:")
                self.emit(scope.inside().inside(), self.pick("raise", 'raise ValueError("after all") from error'))
            if self.pick("no", "else") == "else":
                self.emit(scope, "else:")
                self.block(scope.inside())
        if not kind or self.pick("no", "finally") == "finally":
            self.emit(scope, "finally:")
            self.emit(scope.inside(), 'print("finally", len(seen))')
            self.block(scope.inside())

    def function(self, scope: plain._Scope) -> None:
        """A function of its own with a body of its own, called at once."""
        self.counters += 1
        name = f"f{self.counters}"
        inner = plain._Scope(
            {**scope.names, SCALAR: ("x", *scope.names[SCALAR])},
            {SCALAR: ("x",), VECTOR: ("y",), INT: ("i",), FLOAT: ("z",)},
            scope.depth + 1,
        )
        self.emit(scope, f"def {name}(x, y, i, z=0.5):")
        inner.names.update({VECTOR: ("y", "v"), INT: ("i", "n"), FLOAT: ("z", "c")})
        self.block(inner)
        self.emit(inner, "return x, y, i, z")
        values = ", ".join(self.expression(kind, scope, 1) for kind in (SCALAR, VECTOR, INT))
        self.emit(scope, f"s, v, n, *_ = {name}({values})")

    def asked(self, scope: plain._Scope) -> None:
        """A loop that Python asks whether to go on."""
        self.counters += 1
        counter = f"n{self.counters}"
        inner = scope.inside(loop=True, n=counter)
        self.emit(scope, f"{counter} = 0")
        self.emit(scope, f"while {counter} < 3 and {self.filled('{s}.item() < {c}', scope, 1)}:")
        self.emit(inner, f"{counter} += 1")
        self.emit(inner, f'print("round", {counter}, s)')
        self.block(inner)
        self._maybe_else(scope)

    def over_a_generator(self, scope: plain._Scope) -> None:
        self.counters += 1
        number, element = f"n{self.counters}", f"s{self.counters}"
        pattern = self.pick("told({v})", "halves({s})", "(note(e) for e in {v})", "map(note, {v})")
        source = self.filled(pattern, scope, 0)
        self.emit(scope, f"for {number}, {element} in enumerate({source}):")
        self.block(scope.inside(loop=True, s=element, n=number))
        self._maybe_else(scope)

    def over_numbers(self, scope: plain._Scope) -> None:
        """A loop over what Python reads, which may be left before its end."""
        self.counters += 1
        number = f"c{self.counters}"
        pattern = self.pick("cleaned({v})", "chances(2)", "(e.item() for e in {v})", "{v}.tolist()", "list(seen[-3:])")
        inner = scope.inside(loop=True, c=number)
        self.emit(scope, f"for {number} in {self.filled(pattern, scope, 0)}:")
        self.block(inner)
        if self.pick("on", "leave") == "leave":
            self.emit(inner, f"if {self.condition(inner, 1)}:")
            self.emit(inner.inside(), self.pick("break", "continue", "break"))
        self._maybe_else(scope)


@st.composite
def residual_programs(draw: Draw) -> str:
    """The source text of a module with one function, ``program(s, t, v, w, n, c, kept)``."""
    grammar = Grammar(statements=(3, 5, 8), inplace_tensors=False)
    writer = _Writer(draw, grammar, left=draw(st.sampled_from(grammar.statements)))
    scope = plain._Scope(names=plain._PARAMETERS, assignable=plain._PARAMETERS)
    while writer.left > 0:
        writer.left -= 1
        writer.statement(scope)
    head = [HELPERS, "def program(s, t, v, w, n, c, kept):", _START]
    end = "    return s, t, v, w, n, c, seen, cache, rounds, vars(state)"
    return "\n".join([*head, *writer.lines, end, "", "", "program.kept, program.cache = HISTORY, MEMO", ""])
