"""Comparisons that Python does not leave to one method: chains, `in`, and `is`.

Before::

    0 < f(x) <= 10
    x not in [a, b]
    x is not None
    x is y
    x == y
    x <= y

After::

    and_(0 < (middle_1 := f(x)), lambda: middle_1 <= 10)
    not_(in_(x, [a, b]))
    not_(is_none(x))
    is_(x, y)
    eq(x, y)                # left as it is where one of them is a constant other than None
    le(x, y)                # and so is this, for what cannot be a set
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from stillgraph.source import build
from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter


def comparison(node: ast.Compare, to: Rewriter) -> ast.expr:
    if len(node.ops) == 1:
        return _link(node.ops[0], to.expr(node.left), to.expr(node.comparators[0]), node, to)
    if not to.can_defer(*node.comparators[1:]):
        return to.children(node)
    return _chain(to.expr(node.left), node.ops, node.comparators, node, to)


def _chain(left: ast.expr, ops: Sequence[ast.cmpop], operands: Sequence[ast.expr],
           at: ast.expr, to: Rewriter) -> ast.expr:
    """The links of a chain: each operand is evaluated once, and only if all links before it hold.

    Args:
        left: the rewritten operand on the left of the first link.
        ops: the operators.
        operands: the user's operands on the right of each.
        at: the user's comparison.
        to: the rewriter.
    """
    right = to.expr(operands[0])
    if len(ops) == 1:
        return _link(ops[0], left, right, at, to)

    def remaining(middle: ast.expr) -> ast.expr:
        return to.defer(lambda: _chain(middle, ops[1:], operands[1:], at, to), at, "operand")

    keeps = to.keeps_of(at, *operands[1:])
    if _is_steady(operands[0], to):
        return to.op("and_", [_link(ops[0], left, right, at, to), remaining(right)], at, keeps)
    middle = to.names.fresh("middle")
    read = build.load(middle, operands[0])
    if not to.frame.in_iterable:
        held = ast.NamedExpr(build.store(middle, right), right, **build.span(right))
        return to.op("and_", [_link(ops[0], left, held, at, to), remaining(read)], at, keeps)
    start = to.names.fresh("left")
    links = to.op("and_", [_link(ops[0], build.load(start, left), read, at, to), remaining(read)], at, keeps)
    return build.call(build.deferred(links, [start, middle]), [left, right], at)


def _is_steady(node: ast.expr, to: Rewriter) -> bool:
    """Whether an operand may be evaluated twice."""
    if isinstance(node, ast.Name):
        return to.holds(node.id) and node.id not in to.scope.nested_writes
    return isinstance(node, ast.Constant)


def _link(op: ast.cmpop, left: ast.expr, right: ast.expr, at: ast.expr, to: Rewriter) -> ast.expr:
    """One comparison of two rewritten operands."""
    match op:
        case ast.In() | ast.NotIn():
            found = to.op("in_", [left, right], at)
            return found if isinstance(op, ast.In) else to.op("not_", [found], at)
        case ast.Is() | ast.IsNot() if _is_none(left) != _is_none(right):
            other = right if _is_none(left) else left
            same = to.op("is_none", [other], at)
            return same if isinstance(op, ast.Is) else to.op("not_", [same], at)
        case ast.Is() | ast.IsNot() if not _is_none(left):
            same = to.op("is_", [left, right], at)
            return same if isinstance(op, ast.Is) else to.op("not_", [same], at)
        case ast.Eq() | ast.NotEq() if not (_is_plain(left) or _is_plain(right)):
            return to.op("eq" if isinstance(op, ast.Eq) else "ne", [left, right], at)
        case ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() if _may_be_sets(left, right):
            return to.op(_ORDERS[type(op)], [left, right], at)
    return ast.Compare(left, [op], [right], **build.span(at))


_OF_SETS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
_ORDERS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}


def _may_be_sets(*operands: ast.expr) -> bool:
    return not any(isinstance(operand, ast.Constant | ast.UnaryOp) or (
        isinstance(operand, ast.BinOp) and not isinstance(operand.op, _OF_SETS)) for operand in operands)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_plain(node: ast.expr) -> bool:
    """Whether an operand is a constant to which a staged value is compared as Python does it."""
    return isinstance(node, ast.Constant) and node.value is not None


STEP = Step("comparisons", {ast.Compare: comparison})
