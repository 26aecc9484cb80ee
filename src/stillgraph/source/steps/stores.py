"""Stores into objects, into globals and in place.

Before::

    self.x = y
    a[i], n = pair
    total += x
    del a[0]

After::

    set_attr(self, "x", y)
    target_1, n = pair      # names after the first such target would wait for it in a temporary variable, too
    set_item(a, i, target_1)
    total = inplace("+", total, x)
    del_item(a, 0)

Python evaluates the value first, then each target's object and key, each of them once. Where a call of an operator
would change that order, the value waits in a temporary variable.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from stillgraph.source import build
from stillgraph.source.places import Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.scopes import imported_name
from stillgraph.source.steps.attributes import read_attribute
from stillgraph.source.steps.subscripts import is_fixed, key_of, read_item, stays
from stillgraph.source.tree import walrus_names, with_fields

SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.MatMult: "@", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&",
}


def assign(node: ast.Assign, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    value = to.expr(node.value)
    if all(to.stores_by_python(target) for target in node.targets):
        return Rewritten([with_fields(node, targets=[to.expr(target) for target in node.targets], value=value)])
    only = node.targets[0]
    if len(node.targets) == 1 and isinstance(only, ast.Tuple | ast.List):
        return Rewritten(_unpack(only, value, to, is_counted=_fits(only, node.value)))
    if len(node.targets) == 1 and _keeps_order(only, node.value, to):
        return Rewritten(_store(only, value, to))
    waiting, name = _wait(value, "value", to)
    stores = [made for target in node.targets for made in _store(target, build.load(name, target), to)]
    return Rewritten([*waiting, *stores])


def _fits(target: ast.Tuple | ast.List, value: ast.expr) -> bool:
    """Whether the text of a value shows that it has as many elements as the target."""
    if not isinstance(value, ast.Tuple | ast.List):
        return isinstance(value, ast.Constant)
    starred = any(isinstance(each, ast.Starred) for each in (*target.elts, *value.elts))
    return not starred and len(value.elts) == len(target.elts)


def star(node: ast.Starred, to: Rewriter) -> ast.expr:
    """`[*values]` and `f(*values)`; where one is stored to, there is nothing to do."""
    if not isinstance(node.ctx, ast.Load):
        return to.children(node)
    return with_fields(node, value=to.op("listed", [to.expr(node.value)], node.value))


def set_display(node: ast.Set, to: Rewriter) -> ast.expr:
    """`{a, *values}` becomes `set_display(a, *drawn(values))`: Python does not ask first how much that will be."""
    def element(each: ast.expr) -> ast.expr:
        if not isinstance(each, ast.Starred):
            return to.expr(each)
        return with_fields(each, value=to.op("drawn", [to.expr(each.value)], each.value))

    elements = [element(each) for each in node.elts]
    if all(isinstance(each, ast.Constant | ast.Starred) for each in node.elts):
        return with_fields(node, elts=elements)
    return to.op("set_display", elements, node)


def dict_display(node: ast.Dict, to: Rewriter) -> ast.expr:
    """`{k: v}` becomes `dict_display((k, v))`, where a key is no constant."""
    keys = [key for key in node.keys if key is not None]
    if len(keys) < len(node.keys) or all(isinstance(key, ast.Constant) for key in keys):
        return to.children(node)
    pairs = [ast.Tuple([to.expr(key), to.expr(value)], ast.Load(), **build.span(key)) for key, value in
             zip(keys, node.values, strict=True)]
    return to.op("dict_display", pairs, node)


def annotated(node: ast.AnnAssign, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    """`x: int = y`. Annotations of variables are not evaluated in a function, and may not name a `nonlocal`."""
    if node.value is not None:
        plain = ast.Assign([node.target], node.value, None, **build.span(node))
        if isinstance(node.target, ast.Name) and not place.in_block:
            return Rewritten([with_fields(node, target=to.expr(node.target), value=to.expr(node.value))])
        return assign(plain, rest, place, to)
    if isinstance(node.target, ast.Name):
        return Rewritten([ast.Pass(**build.span(node)) if place.in_block else node])
    parts = [node.target.value]
    if isinstance(node.target, ast.Subscript):
        parts.append(node.target.slice)
    return Rewritten([build.statement(part) for part in to.exprs(parts)])


def augmented(node: ast.AugAssign, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    symbol = build.constant(SYMBOLS[type(node.op)], node)
    match node.target:
        case ast.Name(id=name) as target:
            repeats = isinstance(node.op, ast.Mult)  # a list, in place
            if name not in to.scope.globals and _is_number(node.value) and not repeats:
                return Rewritten([*_required(target, to), to.children(node)])
            changed = to.op("inplace", [symbol, to.read(target), to.expr(node.value)], node)
            return Rewritten(_store(target, changed, to))
        case ast.Attribute(value=owner, attr=attribute):
            waiting, held = _hold(owner, "object", to)
            read = read_attribute(ast.Attribute(held, attribute, ast.Load(), **build.span(node.target)), to)
            changed = to.op("inplace", [symbol, read, to.expr(node.value)], node)
            return Rewritten([*waiting, build.statement(
                to.op("set_attr", [held, build.constant(to.mangled(attribute), node.target), changed], node))])
        case ast.Subscript(value=owner, slice=key):
            waiting, held, at_key = _hold_item(owner, key, to)
            if stays(key):
                old: ast.expr = ast.Subscript(held, key, ast.Load(), **build.span(node.target))
            else:
                old = read_item(held, at_key, node.target, to)
            changed = to.op("inplace", [symbol, old, to.expr(node.value)], node)
            return Rewritten([*waiting, build.statement(to.op("set_item", [held, at_key, changed], node))])


def delete(node: ast.Delete, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    made: list[ast.stmt] = []
    for target in node.targets:
        made += _delete(target, to)
    return Rewritten(made)


def walrus(node: ast.NamedExpr, to: Rewriter) -> ast.expr:
    """`(x := y)` where `x` is global; any other is left to Python."""
    if node.target.id in to.scope.globals:
        return to.op("set_global", [build.constant(to.mangled(node.target.id), node), to.expr(node.value)], node)
    return to.children(node)


def imports(node: ast.Import | ast.ImportFrom, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    made: list[ast.stmt] = [node]
    for name in map(imported_name, node.names):
        to.bind(name)
        made = announced(made, name, node, to)
    return Rewritten(made)


def announced(made: list[ast.stmt], name: str, at: ast.stmt, to: Rewriter) -> list[ast.stmt]:
    """Statements by which only Python can bind a name; of a global the operators are told, before and after."""
    if name not in to.scope.globals:
        return made
    stored = to.op("set_global", [build.constant(to.mangled(name), at), build.load(name, at)], at)
    return [before(name, at, to), *made, build.statement(stored)]


def before(name: str, at: ast.stmt, to: Rewriter) -> ast.stmt:
    """Tells an operator that Python is about to bind a global."""
    return build.statement(to.op("before_global", [build.constant(to.mangled(name), at)], at))


def _store(target: ast.expr, value: ast.expr, to: Rewriter) -> list[ast.stmt]:
    """Statements that store a value which is evaluated after the target's parts."""
    if to.stores_by_python(target):
        return [ast.Assign([to.expr(target)], value, None, **build.span(target))]
    match target:
        case ast.Name(id=name):
            return [build.statement(to.op("set_global", [build.constant(to.mangled(name), target), value], target))]
        case ast.Attribute(value=owner, attr=attribute):
            name = to.mangled(attribute)
            args = [to.expr(owner), build.constant(name, target), value]
            return [build.statement(to.op("set_attr", args, target))]
        case ast.Subscript(value=owner, slice=key):
            return [build.statement(to.op("set_item", [to.expr(owner), key_of(key, to), value], target))]
        case ast.Tuple() | ast.List():
            return _unpack(target, value, to)
    raise AssertionError(f"not a target: {ast.dump(target)}")


def _unpack(target: ast.Tuple | ast.List, value: ast.expr, to: Rewriter, is_counted: bool = False) -> list[ast.stmt]:
    """Unpack into local variables; from the first other target on, through temporary variables and in order.

    Args:
        target: may have a starred element.
        value: what is unpacked.
        to: the rewriter.
        is_counted: whether Python itself sees that the value has as many elements as the target.
    """
    elements: list[ast.expr] = []
    later: list[ast.stmt] = []
    for element in target.elts:
        inner = element.value if isinstance(element, ast.Starred) else element
        if not later and to.stores_by_python(inner):
            elements.append(to.expr(inner))
            continue
        name = to.names.fresh("target")
        elements.append(build.store(name, inner))
        later += _store(inner, build.load(name, inner), to)
    taken = value if is_counted else unpacked(target, value, to)
    return [ast.Assign([with_fields(target, elts=elements)], taken, None, **build.span(target)), *later]


def unpacked(target: ast.Tuple | ast.List, value: ast.expr, to: Rewriter) -> ast.expr:
    """The values of a target's elements, of which one may have a star: how many there are, only the run may know."""
    star = next((index for index, each in enumerate(target.elts) if isinstance(each, ast.Starred)), None)
    counts = [len(target.elts)] if star is None else [star, len(target.elts) - star - 1]
    return to.op("unpack", [value, *(build.constant(count, target) for count in counts)], value)


def _delete(target: ast.expr, to: Rewriter) -> list[ast.stmt]:
    match target:
        case ast.Name(id=name) if name in to.scope.globals:
            return [build.statement(to.op("del_global", [build.constant(to.mangled(name), target)], target))]
        case ast.Name():
            return [*_required(target, to), ast.Delete([to.expr(target)], **build.span(target))]
        case ast.Attribute(value=owner, attr=attribute):
            name = to.mangled(attribute)
            return [build.statement(to.op("del_attr", [to.expr(owner), build.constant(name, target)], target))]
        case ast.Subscript(value=owner, slice=key):
            return [build.statement(to.op("del_item", [to.expr(owner), key_of(key, to)], target))]
        case ast.Tuple() | ast.List():
            return [made for element in target.elts for made in _delete(element, to)]
    raise AssertionError(f"not a target: {ast.dump(target)}")


def _required(target: ast.Name, to: Rewriter) -> list[ast.stmt]:
    """A read of a variable by itself, where it may have no value and what follows is Python's."""
    return [build.statement(to.read(target))] if to.may_be_unset(target) else []


def _keeps_order(target: ast.expr, value: ast.expr, to: Rewriter) -> bool:
    """Whether it cannot be noticed that the parts of a target are evaluated before the value."""
    match target:
        case ast.Name():
            return True
        case ast.Attribute(value=owner):
            parts = [owner]
        case ast.Subscript(value=owner, slice=key):
            parts = [owner] if is_fixed(key) else [owner, key]
        case _:
            return False
    if isinstance(value, ast.Constant):
        return True
    walruses = walrus_names(value)
    return all(_is_still(part, to) and getattr(part, "id", None) not in walruses for part in parts)


def _is_still(node: ast.expr, to: Rewriter) -> bool:
    """Whether a variable is changed by the statements of its own function only, and certainly has a value."""
    scope = to.scope
    return (isinstance(node, ast.Name) and to.holds(node.id) and not to.may_be_unset(node)
            and node.id not in scope.nested_writes and node.id not in scope.deleted)


def _hold(node: ast.expr, stem: str, to: Rewriter) -> tuple[list[ast.stmt], ast.expr]:
    """An expression that can be used twice, and the statements it needs first."""
    if isinstance(node, ast.Name) and not to.may_be_unset(node):
        return [], node
    waiting, name = _wait(to.expr(node), stem, to)
    return waiting, build.load(name, node)


def _hold_item(owner: ast.expr, key: ast.expr, to: Rewriter) -> tuple[list[ast.stmt], ast.expr, ast.expr]:
    """The same for an object and a key; the object is evaluated first."""
    at_key = key_of(key, to)
    if is_fixed(key) or isinstance(key, ast.Name):
        waiting, held = _hold(owner, "object", to)
        return waiting, held, at_key
    if _is_still(owner, to) and getattr(owner, "id", None) not in walrus_names(key):
        waiting, held = [], owner
    else:
        waiting, name = _wait(to.expr(owner), "object", to)
        held = build.load(name, owner)
    more, name = _wait(at_key, "key", to)
    return [*waiting, *more], held, build.load(name, key)


def _wait(value: ast.expr, stem: str, to: Rewriter) -> tuple[list[ast.stmt], str]:
    name = to.names.fresh(stem)
    return [build.assign(name, value, value)], name


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)


STEP = Step("stores",
            expressions={ast.NamedExpr: walrus, ast.Starred: star, ast.Set: set_display, ast.Dict: dict_display},
            statements={ast.Assign: assign, ast.AnnAssign: annotated, ast.AugAssign: augmented, ast.Delete: delete,
                        ast.Import: imports, ast.ImportFrom: imports})
