"""Assertions: `assert test, message` becomes `assert_(test, lambda: message)`."""
from __future__ import annotations

import ast
from collections.abc import Sequence

from stillgraph.source import build
from stillgraph.source.places import Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter


def assertion(node: ast.Assert, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if not __debug__:                       # under -O Python leaves assertions out
        return Rewritten([ast.Pass(**build.span(node))])
    if node.msg is None:
        return Rewritten([build.statement(to.op("assert_", [to.expr(node.test)], node))])
    if not to.can_defer(node.msg):
        return Rewritten([to.children(node)])
    return Rewritten([build.statement(to.op("assert_", [to.expr(node.test), to.lazy(node.msg, "message")], node))])


STEP = Step("assertions", statements={ast.Assert: assertion})
