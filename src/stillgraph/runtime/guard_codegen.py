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
import copy
import enum
import math
import numbers
import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import torch

from stillgraph.program.context import current_context
from stillgraph.program.guards import (
    AliasGuard,
    Attribute,
    BytesGuard,
    Called,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    FunctionGuard,
    Guard,
    IdentityGuard,
    Item,
    KeysGuard,
    LengthGuard,
    MembersGuard,
    MissingGuard,
    ModeGuard,
    NoAttributeGuard,
    ReadingGuard,
    SizeGuard,
    Slot,
    Source,
    TensorGuard,
    TypeGuard,
)
from stillgraph.program.program import Input
from stillgraph.runtime.backends import TensorCheck, any_autocast, function_mode_depth
from stillgraph.runtime.function_writer import FunctionWriter

Check = Callable[[tuple[Any, ...], dict[str, Any]], "tuple[Any, ...] | None"]


# ---- identity without ownership
_HELD_TYPES = (int, float, complex, str, bytes, range, slice, tuple, type(None), type(Ellipsis), type(NotImplemented))


@dataclass(frozen=True, eq=False)
class WeakObject:
    """Stands for an object without keeping it alive.

    Some types (lists, dicts, tuples) take no weak references; those objects are told by address and type.
    """

    reference: weakref.ref[Any] | None
    address: int
    type: type

    def matches(self, value: Any) -> bool:
        """Whether a value is the object; False once the object is gone."""
        if self.reference is not None:
            return value is not None and self.reference() is value
        return id(value) == self.address and type(value) is self.type


@dataclass(frozen=True, eq=False)
class WeakIdentityGuard(IdentityGuard):
    """An `IdentityGuard` whose ``expected`` is a `WeakObject`."""

    def __str__(self) -> str:
        return f"{self.source} is the same {self.expected.type.__name__}"


def weakened(guard: Guard) -> Guard:
    """The same guard, without a reference that keeps a user's object alive.

    Args:
        guard: any guard; only an `IdentityGuard` is changed.

    Returns:
        A `WeakIdentityGuard`, or the guard itself.
    """
    if not isinstance(guard, IdentityGuard) or isinstance(guard, WeakIdentityGuard):
        return guard
    expected = guard.expected
    if isinstance(expected, _HELD_TYPES):
        return guard
    try:
        reference = weakref.ref(expected)
    except TypeError:
        reference = None
    return WeakIdentityGuard(guard.source, WeakObject(reference, id(expected), type(expected)))


# ---- equality as guards mean it
_BY_IDENTITY = (type, enum.Enum, torch.dtype, torch.layout, torch.memory_format, bool, type(None), type(Ellipsis))


def strict_key(value: Any) -> Any:
    """A value equal for two constants exactly when no program could tell them apart.

    Plain ``==`` is too weak (``1 == True == 1.0``, ``0.0 == -0.0``) and too strong (NaN is not NaN).
    """
    kind = type(value)
    if isinstance(value, _BY_IDENTITY):
        return kind, id(value)
    if isinstance(value, (tuple, list)):
        return kind, tuple(strict_key(item) for item in value)
    if isinstance(value, (set, frozenset)):
        return kind, frozenset(strict_key(item) for item in value)
    if isinstance(value, dict):
        return kind, tuple((strict_key(key), strict_key(item)) for key, item in value.items())
    if isinstance(value, (slice, range)):
        return kind, strict_key((value.start, value.stop, value.step))
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Rational):
        return kind, float(value.real).hex(), float(value.imag).hex()
    return kind, value


@dataclass(frozen=True, eq=False)
class Contents:
    """A container of numbers and texts, to be compared at C's speed with what it holds later."""

    value: Any
    kinds: Any
    exact: Any  # the strict key, where ``==`` and the types do not tell everything

    @classmethod
    def of(cls, value: Any) -> Contents:
        """The contents of a container as they are now; it is copied."""
        zero = any(type(item) in (float, complex) and not item for item in _items(value))
        copied = value if isinstance(value, tuple) else copy.copy(value)
        return cls(copied, _kinds(value), strict_key(value) if zero else None)

    def are_in(self, value: Any) -> bool:
        """Whether a container holds just that."""
        if type(value) is not type(self.value) or value != self.value or _kinds(value) != self.kinds:
            return False
        return self.exact is None or bool(strict_key(value) == self.exact)


def _items(container: Any) -> Iterable[Any]:
    return (*container, *container.values()) if isinstance(container, dict) else container


def _kinds(container: Any) -> Any:
    if isinstance(container, (set, frozenset)):
        return {(type(item), item) for item in container}
    if isinstance(container, dict):
        return [*map(type, container.values())], [*container], [*map(type, container)]
    return [*map(type, container)]


def same_reading(value: Any, expected: Any) -> bool:
    """Whether a setting is as it was: the same object, or an equal constant."""
    return value is expected or bool(strict_key(value) == strict_key(expected))


# ---- order
def in_checking_order(guards: Sequence[Guard]) -> list[Guard]:
    """Guards as they are checked: those of the arguments, then objects from the outside inwards, the cheap ones first.

    A guard comes after those of the objects its source goes through. Objects are visited depth first, so that what was
    read of one is still at hand for the next. Tensors inside objects are many and are checked together at the end.
    """
    return sorted(guards, key=_Order().rank)


@dataclass(frozen=True)
class _Reading:
    """Stands among the guards for a source that is only read: an input, or a tensor that is checked at the end."""

    source: Source


@dataclass(frozen=True)
class _Order:
    """Ranks guards; numbers sources as they are first seen."""

    _paths: dict[Source, tuple[int, ...]] = field(default_factory=dict)

    def rank(self, guard: Guard | _Reading) -> tuple[int, tuple[int, ...], int]:
        """The stage (arguments, objects, several objects, tensors, sizes), the place within it, the cost."""
        match guard:
            case ModeGuard() | ReadingGuard():
                return 0, (), 5
            case SizeGuard(sizes=sizes):
                return (0, (), 7) if all(_is_outermost(source) for _, source, _ in sizes) else (4, (), 0)
            case TensorGuard(source=source):
                return (0, (), 6) if _is_outermost(source) else (3, (), 0)
            case AliasGuard(left=left, right=right):
                return (0, (), 1) if _is_outermost(left) and _is_outermost(right) else (2, (), 0)
        cost = _COSTS.get(type(guard), 1)
        return (0, (), cost) if _is_outermost(guard.source) else (1, self._path(guard.source), cost)

    def _path(self, source: Source) -> tuple[int, ...]:
        try:
            path = self._paths.get(source)
        except TypeError:  # an Item whose key cannot be hashed
            return (*self._path(source.base), _LAST) if isinstance(source, _INNER) else (_LAST,)
        if path is None:
            outer = self._path(source.base) if isinstance(source, _INNER) else ()
            path = self._paths[source] = (*outer, len(self._paths))
        return path


_COSTS: dict[type, int] = {TypeGuard: 0, LengthGuard: 2, KeysGuard: 3, _Reading: 4}
_INNER = (Attribute, Item, Slot, Called)
_LAST = 1 << 30


def _is_outermost(source: Source) -> bool:
    return not isinstance(source, _INNER)


# ---- fast
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
    readings = [_Reading(item.source) for item in (*program_inputs, *guards) if isinstance(item, (Input, TensorGuard))]
    for guard in sorted([*guards, *readings], key=_Order().rank):
        if isinstance(guard, _Reading):
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
        case ConstantGuard(source=source, value=value):
            return _constant_miss(writer.read(source), value, writer)
        case IdentityGuard(source=source):
            return _identity_miss(writer.read(source), guard, writer)
        case BytesGuard(source=source, data=data):
            return f"{writer.read(source)}.tobytes() != {writer.constant(data)}"
        case ContentsGuard(source=source, value=expected):
            return f"not {writer.constant(Contents.of(expected).are_in)}({writer.read(source)})"
        case MembersGuard(source=source, members=members):
            return _members_miss(writer.read(source), members, writer)
        case MissingGuard(source=source, names=names):
            value = writer.read(source)
            if len(names) == 1:
                return f"{names[0]!r} in {value}"
            return f"not {value}.keys().isdisjoint({writer.constant(names)})"
        case NoAttributeGuard(source=source, name=name):
            return f"hasattr({writer.read(source)}, {name!r})"
        case FunctionGuard(source=source, code=code):
            value = writer.read(source)
            without = [n for n in ("defaults", "kwdefaults") if not getattr(guard, n)]
            tests = [f"{value}.__code__ is not {writer.constant(code)}"]
            return " or ".join([*tests, *(f"{value}.__{name}__ is not None" for name in without)])
        case ReadingGuard(function=function, args=args, value=expected):
            call = f"{writer.constant(function)}({', '.join(map(writer.constant, args))})"
            return f"{writer.constant(same_reading)}({call}, {writer.constant(expected)}) is False"
        case LengthGuard(source=source, length=length):
            value = writer.read(source)
            return value if length == 0 and _is_hook_table(source) else f"len({value}) != {length}"
        case ElementsGuard(source=source, type=kind):
            return f"[*map(type, {writer.read(source)})].count({writer.constant(kind)}) != len({writer.read(source)})"
        case KeysGuard(source=source, keys=keys):
            value = writer.read(source)
            if _is_module_table(source):
                return f"[*{value}] != {writer.constant(list(keys))}"
            return _keys_miss(value, keys, writer)
        case AliasGuard(left=left, right=right, same=same):
            return f"{writer.read(left)} {'is not' if same else 'is'} {writer.read(right)}"
        case SizeGuard(expression=expression):
            sizes = {
                name: writer.local((SizeGuard, source, dim), f"{writer.read(source)}.size({dim})")
                for name, source, dim in guard.sizes
            }
            return f"not ({_renamed(expression, sizes)})"
        case ModeGuard():
            return _mode_miss(guard, writer)
    raise TypeError(f"not a guard with an expression: {guard!r}")


def _constant_miss(value: str, expected: Any, writer: FunctionWriter) -> str:
    if isinstance(expected, _BY_IDENTITY):
        return f"{value} is not {writer.constant(expected)}"
    kind = type(expected)
    if kind in (int, str, bytes):
        return f"type({value}) is not {kind.__name__} or {value} != {writer.literal(expected)}"
    if kind is float:
        wrong_type = f"type({value}) is not float"
        if math.isnan(expected):
            return f"{wrong_type} or {value} == {value}"
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
    if weak.reference is not None:  # a dead reference gives None, which must not match a value that is None
        return f"{value} is None or {writer.constant(weak.reference)}() is not {value}"
    return f"id({value}) != {weak.address} or type({value}) is not {writer.constant(weak.type)}"


def _members_miss(value: str, members: tuple[tuple[str, Any], ...], writer: FunctionWriter) -> str:
    if len(members) == 1:
        ((name, member),) = members
        return f"{value}[{name!r}] is not {writer.constant(member)}"
    # Comparing ids at once takes a third of the time; the members stay alive, for the namespace has them here.
    names = writer.constant(operator.itemgetter(*(name for name, _ in members)))
    expected = tuple(member for _, member in members)
    ids = writer.constant(_Ids(map(id, expected), expected))
    return f"(*map(id, {names}({value})),) != {ids}"


class _Ids(tuple[int, ...]):
    """The ids of objects, which are kept alive."""

    held: tuple[Any, ...]

    def __new__(cls, ids: Iterable[int], held: tuple[Any, ...]) -> Self:
        made = super().__new__(cls, ids)
        made.held = held
        return made


def _keys_miss(value: str, keys: tuple[Any, ...], writer: FunctionWriter) -> str:
    if all(type(key) is str for key in keys):
        kinds = writer.constant([str] * len(keys))
        return f"[*{value}] != {writer.constant(list(keys))} or [*map(type, {value})] != {kinds}"
    return f"{writer.constant(strict_key)}((*{value},)) != {writer.constant(strict_key(keys))}"


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
