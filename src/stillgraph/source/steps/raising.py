"""`raise`: `raise error` becomes `raise raised(error)`, as only the run may know which exception it is.

`raise error from cause` becomes `raise caused(error, cause)`. What names or makes one of Python's own exceptions stays
as it is, with `from known(cause)` behind it.
"""
from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from stillgraph.source.places import Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.tree import with_fields


def raising(node: ast.Raise, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if node.exc is None:
        return Rewritten([node])
    if node.cause is None or _is_pythons(node.exc, to):
        return Rewritten([with_fields(node, exc=_operand(node.exc, "raised", node, to),
                                      cause=node.cause and _operand(node.cause, "known", node, to))])
    made = to.op("caused", [to.expr(node.exc), to.expr(node.cause)], node)
    return Rewritten([with_fields(node, exc=made, cause=None)])


def _operand(node: ast.expr, operator: str, at: ast.Raise, to: Rewriter) -> ast.expr:
    """What is raised, or its cause; a traceback shows the whole statement."""
    made = to.expr(node)
    return made if _is_pythons(node, to) else to.op(operator, [made], at)


def _is_pythons(node: ast.expr, to: Rewriter) -> bool:
    """Whether an expression names or makes an exception of Python's own, of constants, or is None."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call) and not all(isinstance(each, ast.Constant) for each in (*node.args, *node.keywords)):
        return False
    kind = node.func if isinstance(node, ast.Call) else node
    if not isinstance(kind, ast.Name) or to.name_scope.owns(kind.id) or to.holds(kind.id):
        return False
    found = getattr(builtins, kind.id, None)
    return isinstance(found, type) and issubclass(found, BaseException)


STEP = Step("raising", statements={ast.Raise: raising})
