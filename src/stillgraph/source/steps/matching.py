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

    subject_1 = op
    if subject_1 == 0:
        a()
    elif matches_1() and factor:
        b()
    else:
        c()

where `matches_1` runs a real `match` of one case, which binds `factor`, and returns whether it matched.
"""
from __future__ import annotations

import ast
from typing import Any

from stillgraph.source import build
from stillgraph.source.names import Names
from stillgraph.source.rewriter import AnyNode, Frame, Rewriter, Step, with_fields


class Matches(ast.expr):
    """The test of a pattern, as an expression that binds the pattern's names: made and taken by this step only."""

    _fields = ("subject", "pattern")
    subject: str
    pattern: ast.pattern


def desugar(node: AnyNode, names: Names) -> AnyNode:
    """The function with every `match` in it replaced by `if`s."""
    changes: dict[str, Any] = {}
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            made: list[Any] = []
            for each in value:
                if isinstance(each, ast.Match):
                    made += _chain(each, names)
                else:
                    made.append(desugar(each, names) if isinstance(each, ast.AST) else each)
            if len(made) != len(value) or any(new is not old for new, old in zip(made, value, strict=True)):
                changes[name] = made
        elif isinstance(value, ast.AST):
            new = desugar(value, names)
            if new is not value:
                changes[name] = new
    return with_fields(node, **changes) if changes else node


def _chain(node: ast.Match, names: Names) -> list[ast.stmt]:
    subject = names.fresh("subject")
    orelse: list[ast.stmt] = []
    for case in reversed(node.cases):
        body = [made for each in case.body for made in (_chain(each, names) if isinstance(each, ast.Match) else [desugar(each, names)])]
        guard = case.guard and desugar(case.guard, names)
        captured = _captures_all(case.pattern)
        if captured is not None and guard is None:
            orelse = [*_binding(captured, subject, case.pattern), *body]
            continue
        test: ast.expr
        if captured == "" and guard is not None:
            test = guard
        else:
            test = Matches(subject=subject, pattern=case.pattern, **build.span(case.pattern))
            if guard is not None:
                test = ast.BoolOp(ast.And(), [test, guard], **build.span(case.pattern))
        orelse = [ast.If(test, body, orelse, **build.span(case.pattern))]
    return [build.assign(subject, desugar(node.subject, names), node.subject), *orelse]


def _captures_all(pattern: ast.pattern) -> str | None:
    """For a pattern that matches anything, the name it binds ("" for `_`); None for any other."""
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        return pattern.name or ""
    return None


def _binding(name: str, subject: str, at: ast.pattern) -> list[ast.stmt]:
    return [build.assign(name, build.load(subject, at), at)] if name else []


def matches(node: Matches, to: Rewriter) -> ast.expr:
    test = _comparison(node.pattern, node.subject, to)
    if test is not None:
        return to.expr(test)
    with to.inner_frame(Frame(prelude=[], in_block=True)) as inner:
        for part in ast.walk(node.pattern):
            name = getattr(part, "rest", None) if isinstance(part, ast.MatchMapping) else getattr(part, "name", None)
            if isinstance(name, str):
                to.bind(name)
    yes = ast.match_case(node.pattern, None, [build.give_back(build.constant(True, node), node)])
    run = ast.Match(build.load(node.subject, node), [yes], **build.span(node))
    body = [*to.declarations(inner, node), run, build.give_back(build.constant(False, node), node)]
    made = build.function(to.names.helper("matches"), build.parameters((), node), body, node)
    assert to.frame.prelude is not None, "a statement has room for definitions"
    to.frame.prelude.append(made)
    return build.call(build.load(made.name, node), [], node)


def _comparison(pattern: ast.pattern, subject: str, to: Rewriter) -> ast.expr | None:
    """A pattern of constants as a comparison, so that a staged subject can be compared; None for any other."""
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(build.load(subject, pattern), [ast.Eq()], [value], **build.span(pattern))
        case ast.MatchSingleton(value=value):
            same = build.constant(value, pattern)
            return ast.Compare(build.load(subject, pattern), [ast.Is()], [same], **build.span(pattern))
        case ast.MatchOr(patterns=patterns):
            tests = [_comparison(each, subject, to) for each in patterns]
            known = [test for test in tests if test is not None]
            return ast.BoolOp(ast.Or(), known, **build.span(pattern)) if len(known) == len(tests) else None
    return None


STEP = Step("matching", expressions={Matches: matches})
