"""Guards compiled to one Python function.

`compile_guards` is on the path of every call, so what it generates is flat: each source is read once into a local, each
guard is one ``if``, constants are names of the function's own namespace. `guard_misses.explain_miss` interprets the
same guards in the same order, slowly, and says which does not hold. A property test holds the two together.

A check never keeps alive what it compares: objects are compared through weak references. The exceptions, which the
capture asks for, are what a `Held` source holds and the cells of closures.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from stillgraph.core.lookup import behind_view, is_unset
from stillgraph.program.context import current_context, function_mode_depth
from stillgraph.program.facts.facts import FACTS
from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.guards import (
    AliasGuard,
    ApartGuard,
    BehindGuard,
    BytesGuard,
    Cell,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    EnvironmentGuard,
    FactGuard,
    FunctionGuard,
    Guard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    MembersGuard,
    MissingGuard,
    ModeGuard,
    NoAttributeGuard,
    ReadingGuard,
    SeparateGuard,
    SizeGuard,
    Slot,
    Source,
    TensorGuard,
    TypeGuard,
    UnsetGuard,
)
from stillgraph.program.program import Input
from stillgraph.program.upcoming import are_separate
from stillgraph.runtime.guards.comparing import BY_IDENTITY, Contents, same_reading, strict_key
from stillgraph.runtime.guards.guard_order import Reading, in_checking_order
from stillgraph.runtime.guards.weak import WeakIdentityGuard, WeakObject, are_keys, ids_while_alive, weakened
from stillgraph.runtime.native.backends import TensorCheck, any_autocast
from stillgraph.runtime.native.function_writer import FunctionWriter

Check = Callable[[tuple[Any, ...], dict[str, Any]], "tuple[Any, ...] | None"]


def compile_guards(program_inputs: Sequence[Input], guards: Sequence[Guard]) -> Check:
    """Compile the guards of a program and the reading of its inputs to one function.

    Args:
        program_inputs: the placeholders of the program's graph, in order.
        guards: what must hold for the program to be used.

    Returns:
        ``check(args, kwargs)``, which gives the graph's inputs as a tuple, or None where a guard does not hold or a
        source cannot be read. It raises nothing. Its text is ``check.__source__``.

    Raises:
        ValueError: a `SizeGuard` names something that is neither one of its sizes nor a builtin.
    """
    writer = FunctionWriter()
    pending: list[TensorGuard] = []
    readings = [Reading(item.source) for item in (*program_inputs, *guards) if isinstance(item, (Input, TensorGuard))]
    for guard in in_checking_order([*guards, *readings]):
        if isinstance(guard, Reading):
            writer.read(guard.source)
            continue
        if isinstance(guard, TensorGuard):
            pending.append(guard)
            continue
        _write_tensor_check(writer, pending)
        writer.lines.append(f"if {_miss(guard, writer)}: return None")
    _write_tensor_check(writer, pending)
    values = [writer.read(item.source) for item in program_inputs]
    writer.lines.append(f"return ({''.join(f'{value}, ' for value in values)})")
    # Reading a source runs user code (properties, __getattr__), so anything may be raised: all of it is a miss.
    writer.lines = ["try:", *(f"    {line}" for line in writer.lines), "except Exception:", "    return None"]
    return writer.function("check(args, kwargs)")


def _write_tensor_check(writer: FunctionWriter, pending: list[TensorGuard]) -> None:
    if not pending:
        return
    tensors = ", ".join([writer.read(guard.source) for guard in pending])
    check = writer.constant(TensorCheck(tuple(pending)))
    writer.lines.append(f"if not {check}.native({tensors}) and not {check}.accepts({tensors}): return None")
    pending.clear()


def _miss(guard: Guard, writer: FunctionWriter) -> str:
    """The expression that is true where a guard does not hold."""
    match guard:
        case TypeGuard(source=source, type=kind):
            return f"type({writer.read(source)}) is not {writer.constant(kind)}"
        case BehindGuard(source=source, type=kind):
            return f"type({writer.constant(behind_view)}({writer.read(source)})) is not {writer.constant(kind)}"
        case ConstantGuard(source=source, value=value):
            return _constant_miss(writer.read(source), value, writer)
        case IdentityGuard(source=source):
            return _identity_miss(writer.read(source), guard, writer)
        case BytesGuard(source=source, data=data):
            return f"{writer.constant(fingerprint)}({writer.read(source)}) != {writer.constant(data)}"
        case ContentsGuard(source=source, value=expected):
            return f"not {writer.constant(Contents.of(expected).are_in)}({writer.read(source)})"
        case MembersGuard(source=source, members=members):
            return _members_miss(writer.read(source), members, writer)
        case MissingGuard(source=source, names=names):
            value = writer.read(source)
            if len(names) == 1:
                return f"{names[0]!r} in {value}"
            if len(names) > _MANY:  # more than most namespaces have
                return f"not {writer.constant(frozenset(names))}.isdisjoint({value})"
            return f"not {value}.keys().isdisjoint({writer.constant(names)})"
        case NoAttributeGuard(source=source, name=name):
            return f"hasattr({writer.read(source)}, {name!r})"
        case UnsetGuard(source=source):
            cell = writer.constant(source.cell) if isinstance(source, Cell) else writer.read(source.base)
            return f"not {writer.constant(is_unset)}({cell})"
        case FunctionGuard(source=source, code=code):
            value = writer.read(source)
            without = [n for n in ("defaults", "kwdefaults") if not getattr(guard, n)]
            tests = [f"{value}.__code__ is not {writer.constant(code)}"]
            return " or ".join([*tests, *(f"{value}.__{name}__ is not None" for name in without)])
        case ReadingGuard(function=function, args=args, value=expected):
            call = f"{writer.constant(function)}({', '.join(map(writer.constant, args))})"
            return f"{writer.constant(same_reading)}({call}, {writer.constant(expected)}) is False"
        case EnvironmentGuard(name=name, value=expected):
            environ = f"{writer.constant(os)}.environ"
            found = f"{{**{environ}}}" if name is None else f"{environ}.get({name!r})"
            return f"{found} != {writer.constant(expected)}"
        case LengthGuard(source=source, length=length):
            value = writer.read(source)
            return value if length == 0 and _is_hook_table(source) else f"len({value}) != {length}"
        case ElementsGuard(source=source, type=kind):
            return f"[*map(type, {writer.read(source)})].count({writer.constant(kind)}) != len({writer.read(source)})"
        case KeysGuard(source=source, keys=keys):
            value = writer.read(source)
            if _is_module_table(source):
                return f"[*{value}] != {writer.constant(list(keys))}"
            return _keys_miss(value, guard, writer)
        case AliasGuard(left=left, right=right, same=same):
            return f"{writer.read(left)} {'is not' if same else 'is'} {writer.read(right)}"
        case ApartGuard(sources=sources):
            ids = ", ".join([f"id({writer.read(source)})" for source in sources])
            return f"len({{{ids}}}) != {len(sources)}"
        case SeparateGuard(iterators=iterators, containers=containers):
            read = (", ".join(map(writer.read, side)) for side in (iterators, containers))
            return f"not {writer.constant(are_separate)}([{next(read)}], [{next(read)}])"
        case FactGuard(source=source, name=name, value=expected):
            return f"{writer.constant(FACTS[name])}({writer.read(source)}) != {writer.literal(expected)}"
        case SizeGuard(expression=expression):
            sizes = {
                name: writer.local((SizeGuard, source, dim), f"{writer.read(source)}.size({dim})")
                for name, source, dim in guard.sizes
            }
            return f"not ({_renamed(expression, sizes)})"
        case ModeGuard():
            return _mode_miss(guard, writer)
    raise TypeError(f"not a guard with an expression: {guard!r}")


_MANY = 16


def _constant_miss(value: str, expected: Any, writer: FunctionWriter) -> str:
    if isinstance(expected, BY_IDENTITY):
        return f"{value} is not {writer.constant(expected)}"
    kind = type(expected)
    if kind in (int, str, bytes):
        return f"type({value}) is not {kind.__name__} or {value} != {writer.literal(expected)}"
    if kind is float:
        wrong_type = f"type({value}) is not float"
        if math.isnan(expected):
            sign = math.copysign(1.0, expected)
            return f"{wrong_type} or {value} == {value} or math.copysign(1.0, {value}) != {sign}"
        if expected == 0.0:
            return f"{wrong_type} or {value} != 0.0 or math.copysign(1.0, {value}) != {math.copysign(1.0, expected)}"
        return f"{wrong_type} or {value} != {writer.constant(expected)}"
    # An equal key ends with the value's own ``==``, which may answer with anything that has a truth value.
    return f"{writer.constant(strict_key)}({value}) != {writer.constant(strict_key(expected))}"


def _identity_miss(value: str, guard: IdentityGuard, writer: FunctionWriter) -> str:
    guard = weakened(guard)  # type: ignore[assignment]  # of the same class
    if not isinstance(guard, WeakIdentityGuard):
        return f"{value} is not {writer.constant(guard.expected)}"
    weak: WeakObject = guard.expected
    # A dead reference gives None, which must not match a value that is None.
    return f"{value} is None or {writer.constant(weak.reference)}() is not {value}"


def _members_miss(value: str, members: tuple[tuple[str, Any], ...], writer: FunctionWriter) -> str:
    """Comparing ids at once takes a third of the time of comparing the objects; with the first that dies they go."""
    found = "*map(id, {0}({1}))" if len(members) > 1 else "id({0}({1}))"
    names = writer.constant(operator.itemgetter(*(name for name, _ in members)))
    ids, alive = ids_while_alive([member for _, member in members])
    writer.constant(alive)
    return f"[{found.format(names, value)}] != {writer.constant(ids)}"


def _keys_miss(value: str, guard: KeysGuard, writer: FunctionWriter) -> str:
    guard = weakened(guard)  # type: ignore[assignment]  # of the same class
    keys = guard.keys
    if all(type(key) in _TOLD_BY_EQUALITY for key in keys):
        kinds = writer.constant([*map(type, keys)])
        return f"[*{value}] != {writer.constant(list(keys))} or [*map(type, {value})] != {kinds}"
    if keys and all(isinstance(key, BY_IDENTITY) for key in keys):  # a registry of many classes, say
        writer.constant(keys)  # for as long as they are there, nothing else has their ids
        return f"[*map(id, {value})] != {writer.constant([*map(id, keys)])}"
    if any(isinstance(key, WeakObject) for key in keys):
        return f"not {writer.constant(are_keys)}({value}, {writer.constant(keys)})"
    return f"{writer.constant(strict_key)}((*{value},)) != {writer.constant(strict_key(keys))}"


_TOLD_BY_EQUALITY = frozenset({str, bytes, int, bool, type(None)})  # together with the type


def _is_hook_table(source: Source) -> bool:
    """Whether torch keeps a module's hooks there: a plain dict, whose truth value says whether it is empty."""
    return isinstance(source, Slot) and source.table == "__dict__" and source.name.endswith("_hooks")


def _is_module_table(source: Source) -> bool:
    """Whether torch keeps a module's children there, and sees to it that their names are strings."""
    tables = ("_modules", "_parameters", "_buffers")
    return isinstance(source, Slot) and source.table == "__dict__" and source.name in tables


_CPU = torch.device("cpu")


def _mode_miss(guard: ModeGuard, writer: FunctionWriter) -> str:
    context = writer.constant(current_context)
    dtype, device = writer.constant(guard.default_dtype), writer.constant(guard.default_device)
    default_device = f"{writer.constant(torch.get_default_device)}() != {device}"
    if guard.default_device == _CPU:  # a default device is a torch function mode: without any, it is the CPU
        default_device = f"({writer.constant(function_mode_depth)}() and {default_device})"
    autocast = f"{context}().autocast != {writer.constant(guard.context.autocast)}"
    if not guard.context.autocast:
        autocast = f"({writer.constant(any_autocast)}() and {autocast})"
    return " or ".join(
        [
            f"{writer.constant(torch.is_grad_enabled)}() is not {guard.context.grad}",
            f"{writer.constant(torch.is_inference_mode_enabled)}() is not {guard.context.inference}",
            f"{writer.constant(torch.get_default_dtype)}() is not {dtype}",
            autocast,
            default_device,
            *([f"{context}().switches != {writer.constant(guard.context.switches)}"] if guard.switches_matter else ()),
        ]
    )


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], expression: str) -> None:
        self.names = names
        self.expression = expression

    def visit_Name(self, node: ast.Name) -> ast.Name:
        known = self.names.get(node.id)
        if known is None and node.id != "math" and not hasattr(builtins, node.id):
            raise ValueError(f"size guard {self.expression!r} names {node.id!r}, which is not one of its sizes")
        return ast.Name(known or node.id, node.ctx)


def _renamed(expression: str, names: dict[str, str]) -> str:
    return ast.unparse(_Renamer(names, expression).visit(ast.parse(expression, mode="eval")))
