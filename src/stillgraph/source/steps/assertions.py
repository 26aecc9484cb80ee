"""Assertions: `assert test, message` becomes `assert_(test, lambda: message)`."""
from __future__ import annotations

import ast
import dis
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
    return Rewritten([build.statement(to.op("assert_", arguments, _raising(node)))])


def _raising(node: ast.Assert) -> ast.expr | ast.stmt:
    """What Python says an assertion was raised by: the statement or, in some versions, the last comparison in it."""
    return next(reversed(_compared(node.test)), node) if _IS_COMPARISON else node


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


def _raised_at_comparison() -> bool:
    code = compile("assert x > 0", "<assertion>", "exec")
    raising = next(each for each in dis.get_instructions(code) if each.opname == "RAISE_VARARGS")
    return raising.positions is not None and raising.positions.col_offset != 0


_IS_COMPARISON = _raised_at_comparison()


STEP = Step("assertions", statements={ast.Assert: assertion})
