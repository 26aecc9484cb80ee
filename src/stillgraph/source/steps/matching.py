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
    elif matches_1() and factor:
        b()
    else:
        c()

The subject is kept in a variable unless it is one already. `matches_1` runs a real `match` of one case, which binds
`factor`, and returns whether it matched.
"""
from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Set
from typing import Any

from stillgraph.source import build
from stillgraph.source.names import Names
from stillgraph.source.places import Frame, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.tree import AnyNode, walrus_names, with_fields


class Matches(ast.expr):
    """The test of a pattern, as an expression that binds the pattern's names: made and taken by this step only."""

    _fields = ("subject", "pattern")
    subject: ast.expr
    pattern: ast.pattern

    @classmethod
    def made(cls, subject: ast.expr, pattern: ast.pattern) -> Matches:
        node = cls(**build.span(pattern))
        node.subject, node.pattern = subject, pattern
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
        orelse = _case(case.pattern, guard, subject, body, orelse)
    return made + orelse


def _case(pattern: ast.pattern, guard: ast.expr | None, subject: ast.expr,
          body: list[ast.stmt], orelse: list[ast.stmt]) -> list[ast.stmt]:
    """The statements for one case, given those for the cases after it."""
    always = isinstance(pattern, ast.MatchAs) and pattern.pattern is None
    captured = pattern.name if isinstance(pattern, ast.MatchAs) else None
    if always and guard is None:
        return [*([build.assign(captured, subject, pattern)] if captured else []), *body]
    test: ast.expr = Matches.made(subject, pattern)
    if guard is not None:
        test = guard if always and not captured else ast.BoolOp(ast.And(), [test, guard], **build.span(pattern))
    return [ast.If(test, body, orelse, **build.span(pattern))]


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


def matches(node: Matches, to: Rewriter) -> ast.expr:
    test = _comparison(node.pattern, node.subject, to)
    if test is not None:
        return to.expr(test)
    names = pattern_names(node.pattern)
    stored = {name: to.names.fresh(name) for name in names if name in to.scope.globals}
    with to.inner_frame(Frame(prelude=[], in_block=True)) as inner:
        for name in names:
            if name not in stored:
                to.bind(name)
    stores = [
        build.statement(to.op("set_global", [build.constant(to.mangled(name), node), build.load(held, node)], node))
        for name, held in stored.items()
    ]
    matched = [*stores, build.give_back(build.constant(True, node), node)]
    yes = ast.match_case(_renamed(node.pattern, stored), None, matched)
    run = ast.Match(_checked(node, to), [yes], **build.span(node))
    body = [*to.declarations(inner, node), run, build.give_back(build.constant(False, node), node)]
    made = build.function(to.names.helper("matches"), build.parameters((), node), body, node)
    assert to.frame.prelude is not None, "a statement has room for definitions"
    to.frame.prelude.append(made)
    return build.call(build.load(made.name, node), [], node)


def _renamed(pattern: ast.pattern, names: Mapping[str, str]) -> ast.pattern:
    """A pattern that binds other variables: what a pattern binds that is global, only an operator may store."""
    if not names:
        return pattern
    made = copy.deepcopy(pattern)
    for part in ast.walk(made):
        for field in ("name", "rest"):
            bound = getattr(part, field, None)
            if isinstance(bound, str) and bound in names:
                setattr(part, field, names[bound])
    return made


def _checked(node: Matches, to: Rewriter) -> ast.expr:
    """The subject; where the pattern looks into it, only if it is what it seems to be."""
    layers = _layers(node.pattern)
    if not layers:
        return node.subject
    by_class = any(isinstance(part, ast.MatchClass) for part in ast.walk(node.pattern))
    said = [by_class] if layers == 1 else [by_class, layers]
    return to.op("matched", [node.subject, *(build.constant(each, node) for each in said)], node)


def _layers(pattern: ast.AST) -> int:
    """How many patterns that look into a value stand in one another."""
    looks = isinstance(pattern, ast.MatchClass | ast.MatchSequence | ast.MatchMapping)
    return looks + max(map(_layers, ast.iter_child_nodes(pattern)), default=0)


def _comparison(pattern: ast.pattern, subject: ast.expr, to: Rewriter) -> ast.expr | None:
    """A pattern of constants as a comparison, so that a staged subject can be compared; None for any other."""
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(subject, [ast.Eq()], [value], **build.span(pattern))
        case ast.MatchSingleton(value=value):
            same = build.constant(value, pattern)
            return ast.Compare(subject, [ast.Is()], [same], **build.span(pattern))
        case ast.MatchOr(patterns=patterns):
            tests = [_comparison(each, subject, to) for each in patterns]
            known = [test for test in tests if test is not None]
            return ast.BoolOp(ast.Or(), known, **build.span(pattern)) if len(known) == len(tests) else None
    return None


STEP = Step("matching", expressions={Matches: matches})
