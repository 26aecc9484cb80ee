"""Assertions: `assert test, message` becomes `assert_(test, lambda: message)`."""
from __future__ import annotations

import ast
import dis
import functools
from collections.abc import Sequence

from stillgraph.source import build
from stillgraph.source.places import Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter


def assertion(node: ast.Assert, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if not __debug__:                       # under -O Python leaves assertions out
        return Rewritten([ast.Pass(**build.span(node))])
    if node.msg is None:
        return Rewritten([build.statement(to.op("assert_", [to.expr(node.test)], _raising(node)))])
    if not to.can_defer(node.msg):
        return Rewritten([to.children(node)])
    arguments = [to.expr(node.test), to.lazy(node.msg, "message")]
    return Rewritten([build.statement(to.op("assert_", arguments, _raising(node), to.keeps_of(node.test, node.msg)))])


def _raising(node: ast.Assert) -> ast.expr | ast.stmt:
    """What Python says an assertion was raised by: the statement; in 3.13 its test, in 3.11 its last comparison."""
    if _column("assert x") > 0:
        return node.test
    return next(reversed(_compared(node.test)), node) if _column("assert x > 0") > 0 else node


def _compared(test: ast.expr) -> list[ast.expr]:
    """The comparisons that decide a condition by themselves, in the order of their code."""
    match test:
        case ast.Compare():
            return [test]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _compared(operand)
        case ast.BoolOp(values=values):
            return [each for value in values for each in _compared(value)]
        case ast.IfExp(test=first, body=body, orelse=orelse):
            return [each for value in (first, body, orelse) for each in _compared(value)]
    return []


@functools.cache
def _column(assertion: str) -> int:
    """Where Python says this assertion is raised."""
    code = compile(assertion, "<assertion>", "exec")
    raising = next(each for each in dis.get_instructions(code) if each.opname == "RAISE_VARARGS")
    return (raising.positions and raising.positions.col_offset) or 0


STEP = Step("assertions", statements={ast.Assert: assertion})
