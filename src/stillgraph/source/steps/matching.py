"""`match` statements, which become `if` chains before anything else is looked at.

Before::

    match op:
        case 0:
            a()
        case "scale", factor if factor:
            b()
        case _:
            c()

After (and then the `if`s are rewritten like any others)::

    if op == 0:
        a()
    elif (is_sequence(op) and length(op) == 2 and (parts_1 := elements_of(op, 2, None), True)[1]
            and parts_1[0] == "scale" and (factor := parts_1[1], True)[1] and factor):
        b()
    else:
        c()

The subject is kept in a variable unless it is one already. What a pattern asks of a value is what Python's instructions
ask for it, and names are bound where the whole pattern has matched: by the test where a guard reads them, otherwise in
the body.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from stillgraph.source import build
from stillgraph.source.names import Names
from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.tree import AnyNode, walrus_names, with_fields


class Asked(ast.expr):
    """A call of an operator, as an expression that is still to be rewritten: made and taken by this step only."""

    _fields = ("operands",)
    name: str
    operands: list[ast.expr]

    @classmethod
    def made(cls, name: str, operands: list[ast.expr], at: ast.pattern) -> Asked:
        node = cls(**build.span(at))
        node.name, node.operands = name, operands
        return node


def desugar(node: AnyNode, names: Names, steady: Set[str]) -> AnyNode:
    """The function with every `match` in it replaced by `if`s.

    Args:
        node: the function, or any node in it.
        names: where to get names for subjects.
        steady: variables that only their own function assigns.
    """
    changes: dict[str, Any] = {}
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            made: list[Any] = []
            for each in value:
                if isinstance(each, ast.Match):
                    made += _chain(each, names, steady)
                else:
                    made.append(desugar(each, names, steady) if isinstance(each, ast.AST) else each)
            if len(made) != len(value) or any(new is not old for new, old in zip(made, value, strict=True)):
                changes[name] = made
        elif isinstance(value, ast.AST):
            new = desugar(value, names, steady)
            if new is not value:
                changes[name] = new
    return with_fields(node, **changes) if changes else node


def _chain(node: ast.Match, names: Names, steady: Set[str]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    subject = desugar(node.subject, names, steady)
    if not (isinstance(subject, ast.Name) and subject.id in steady -  _bound_by_cases(node)):
        name = names.fresh("subject")
        made.append(build.assign(name, subject, node.subject))
        subject = build.load(name, node.subject)
    orelse: list[ast.stmt] = []
    for case in reversed(node.cases):
        body: list[ast.stmt] = []
        for each in case.body:
            body += _chain(each, names, steady) if isinstance(each, ast.Match) else [desugar(each, names, steady)]
        guard = case.guard and desugar(case.guard, names, steady)
        orelse = _case(case.pattern, guard, subject, body, orelse, names)
    return made + orelse


def _case(pattern: ast.pattern, guard: ast.expr | None, subject: ast.expr,
          body: list[ast.stmt], orelse: list[ast.stmt], names: Names) -> list[ast.stmt]:
    """The statements for one case, given those for the cases after it."""
    tried = _Tried(names)
    tried.take(pattern, subject)
    tests, binds = tried.tests, [(name, value, pattern) for name, value in tried.bound.items()]
    if guard is not None:
        tests = [*tests, *(_bind(name, value, at) for name, value, at in binds), guard]
    else:
        body = [*(build.assign(name, value, at) for name, value, at in binds), *body]
    if not tests:
        return body
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests, **build.span(pattern))
    return [ast.If(test, body, orelse, **build.span(pattern))]


def _bind(name: str, value: ast.expr, at: ast.pattern) -> ast.expr:
    """An operand of `and` that is true, and binds a name."""
    walrus = ast.NamedExpr(build.store(name, at), value, **build.span(at))
    both = ast.Tuple([walrus, build.constant(True, at)], ast.Load(), **build.span(at))
    return ast.Subscript(both, build.constant(1, at), ast.Load(), **build.span(at))


@dataclass
class _Tried:
    """The tests of a pattern, in order, and what its names are bound to where all of them hold."""

    names: Names
    tests: list[ast.expr] = field(default_factory=list)
    bound: dict[str, ast.expr] = field(default_factory=dict)

    def take(self, pattern: ast.pattern, subject: ast.expr) -> None:
        """Try a pattern on what an expression gives; it is evaluated more than once."""
        match pattern:
            case ast.MatchValue(value=value):
                self._compare(subject, ast.Eq(), value, pattern)
            case ast.MatchSingleton(value=value):
                self._compare(subject, ast.Is(), build.constant(value, pattern), pattern)
            case ast.MatchAs(pattern=inner, name=name):
                if inner is not None:
                    self.take(inner, subject)
                if name is not None:
                    self.bound[name] = subject
            case ast.MatchOr(patterns=patterns):
                self._one_of(patterns, subject, pattern)
            case ast.MatchSequence(patterns=patterns):
                self._sequence(patterns, subject, pattern)
            case ast.MatchMapping():
                self._mapping(pattern, subject)
            case ast.MatchClass():
                self._class(pattern, subject)
            case _:
                raise TypeError(f"not a pattern: {ast.dump(pattern)}")

    def _compare(self, subject: ast.expr, by: ast.cmpop, value: ast.expr, at: ast.pattern) -> None:
        self.tests.append(ast.Compare(subject, [by], [value], **build.span(at)))

    def _keep(self, value: ast.expr, at: ast.pattern) -> ast.expr:
        """Keep in a variable what an expression gives, which is read as often as need be."""
        name = self.names.variable("parts")
        self.tests.append(_bind(name, value, at))
        return build.load(name, at)

    def _parts(self, values: ast.expr, patterns: Sequence[ast.pattern], at: ast.pattern) -> None:
        for place, inner in enumerate(patterns):
            self.take(inner, ast.Subscript(values, build.constant(place, at), ast.Load(), **build.span(inner)))

    def _one_of(self, patterns: list[ast.pattern], subject: ast.expr, at: ast.pattern) -> None:
        """Each of some patterns binds the same names: they go by variables of their own until all has matched."""
        kept = {name: self.names.variable("parts") for name in dict.fromkeys(pattern_names(at))}
        ways: list[ast.expr] = []
        for each in patterns:
            tried = _Tried(self.names)
            tried.take(each, subject)
            tests = [*tried.tests, *(_bind(kept[name], value, each) for name, value in tried.bound.items())]
            tests = tests or [build.constant(True, each)]
            ways.append(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests, **build.span(each)))
        self.tests.append(ast.BoolOp(ast.Or(), ways, **build.span(at)))
        self.bound.update((name, build.load(variable, at)) for name, variable in kept.items())

    def _sequence(self, patterns: list[ast.pattern], subject: ast.expr, at: ast.pattern) -> None:
        self.tests.append(Asked.made("is_sequence", [subject], at))
        star = next((place for place, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), None)
        least = len(patterns) - (star is not None)
        if least or star is None:
            by = ast.Eq() if star is None else ast.GtE()
            self._compare(Asked.made("length", [subject], at), by, build.constant(least, at), at)
        if not any(map(_looks, patterns)):
            return
        shape = (least, None) if star is None else (star, least - star)
        counts = [build.constant(each, at) for each in shape]
        values = self._keep(Asked.made("elements_of", [subject, *counts], at), at)
        self._parts(values, [_without_star(each) for each in patterns], at)

    def _mapping(self, pattern: ast.MatchMapping, subject: ast.expr) -> None:
        self.tests.append(Asked.made("is_mapping", [subject], pattern))
        keys: ast.expr = ast.Tuple(pattern.keys, ast.Load(), **build.span(pattern))
        if pattern.keys:
            if pattern.rest is not None:
                keys = self._keep(keys, pattern)
            values = self._keep(Asked.made("values_of", [subject, keys], pattern), pattern)
            self._is_there(values, pattern)
            self._parts(values, pattern.patterns, pattern)
        if pattern.rest is not None:
            self.bound[pattern.rest] = self._keep(Asked.made("others_of", [subject, keys], pattern), pattern)

    def _class(self, pattern: ast.MatchClass, subject: ast.expr) -> None:
        count = build.constant(len(pattern.patterns), pattern)
        names = build.names_tuple(pattern.kwd_attrs, pattern)
        values = self._keep(Asked.made("parts_of", [subject, pattern.cls, names, count], pattern), pattern)
        self._is_there(values, pattern)
        self._parts(values, [*pattern.patterns, *pattern.kwd_patterns], pattern)

    def _is_there(self, values: ast.expr, at: ast.pattern) -> None:
        self._compare(values, ast.IsNot(), build.constant(None, at), at)


def _looks(pattern: ast.pattern) -> bool:
    """Whether a pattern in a sequence is more than a wildcard."""
    if isinstance(pattern, ast.MatchStar):
        return pattern.name is not None
    return not (isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None)


def _without_star(pattern: ast.pattern) -> ast.pattern:
    """What a sequence has left over is one value like the others, once it has been taken apart."""
    if not isinstance(pattern, ast.MatchStar):
        return pattern
    return ast.copy_location(ast.MatchAs(None, pattern.name), pattern)


def _bound_by_cases(node: ast.Match) -> set[str]:
    """The names that patterns and guards bind, before the case is chosen."""
    bound: set[str] = set()
    for case in node.cases:
        bound |= set(pattern_names(case.pattern)) | (walrus_names(case.guard) if case.guard else set())
    return bound


def pattern_names(pattern: ast.pattern) -> list[str]:
    """The variables that a pattern binds."""
    parts = list(ast.walk(pattern))
    names = [part.rest if isinstance(part, ast.MatchMapping) else getattr(part, "name", None) for part in parts]
    return [name for name in names if name is not None]


def asked(node: Asked, to: Rewriter) -> ast.expr:
    return to.op(node.name, [to.expr(each) for each in node.operands], node)


STEP = Step("matching", expressions={Asked: asked})
