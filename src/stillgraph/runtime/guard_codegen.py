"""Guards compiled to one Python function, and the same guards explained in words.

`compile_guards` is on the path of every call, so what it generates is flat: each source is read once into a local, each
guard is one ``if``, constants are names of the function's own namespace. `explain_miss` interprets the same guards in
the same order, slowly, and says which does not hold. A property test holds the two together.

A check never keeps alive what it compares: objects are compared through weak references. The exceptions, which the
capture asks for, are what a `Held` source holds and the cells of closures.
"""
from __future__ import annotations

import ast
import builtins
import collections
import enum
import keyword
import math
import numbers
import re
import reprlib
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from stillgraph.program.context import current_context
from stillgraph.program.guards import (
    AliasGuard,
    Argument,
    Attribute,
    Cell,
    ConstantGuard,
    Global,
    Guard,
    Held,
    IdentityGuard,
    Item,
    KeysGuard,
    LengthGuard,
    ModeGuard,
    SizeGuard,
    Slot,
    Source,
    TensorGuard,
    TypeGuard,
)
from stillgraph.program.program import Input
from stillgraph.runtime.backends import TensorCheck, any_autocast, function_mode_depth, tensor_holds

Check = Callable[[tuple[Any, ...], dict[str, Any]], "tuple[Any, ...] | None"]


# ---- writing a function
def is_name(text: str) -> bool:
    """Whether ``x.text`` is the source of ``getattr(x, text)`` (Python normalises identifiers beyond ASCII)."""
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)


@dataclass
class FunctionWriter:
    """Collects the lines of one generated function, the values it refers to, and the sources it has read."""

    lines: list[str] = field(default_factory=list)
    namespace: dict[str, Any] = field(default_factory=lambda: {"modules": sys.modules, "math": math})
    _names: dict[int, str] = field(default_factory=dict)
    _read: dict[Any, str] = field(default_factory=dict)

    def constant(self, value: Any) -> str:
        """A name that stands for this very object."""
        if value is None or value is True or value is False:
            return repr(value)
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"k{len(self._names)}"
            self.namespace[name] = value  # also keeps the id from being given to another object
        return name

    def literal(self, value: Any) -> str:
        """An expression equal to a value; written out where that can be read."""
        kind = type(value)
        short = kind in (str, bytes, bool) or (kind is int and value.bit_length() < 64)
        return repr(value) if short else self.constant(value)

    def local(self, key: Any, expression: str) -> str:
        """The local variable that holds an expression, which is evaluated once for each key."""
        try:
            name = self._read.get(key)
        except TypeError:  # an Item whose key cannot be hashed (a slice) is not shared
            key, name = object(), None
        if name is None:
            name = self._read[key] = f"{_MARK}{len(self._read)}{_MARK}"
            self.lines.append(f"{name} = {expression}")
        return name

    def read(self, source: Source) -> str:
        """The local variable that holds what is found at a source."""
        match source:
            case Argument(key=key):
                return self.local(source, f"args[{key}]" if isinstance(key, int) else f"kwargs[{key!r}]")
            case Attribute(base=base, name=name):
                owner = self.read(base)
                return self.local(source, f"{owner}.{name}" if is_name(name) else f"getattr({owner}, {name!r})")
            case Item(base=base, key=key):
                return self.local(source, f"{self.read(base)}[{self.literal(key)}]")
            case Slot(base=base, table=table, name=name):
                return self.local(source, f"{self._table(base, table)}[{name!r}]")
            case Global(module=module, name=name):
                names = self.local((Global, module), f"modules[{module!r}].__dict__")
                return self.local(source, f"{names}[{name!r}]")
            case Cell(cell=cell):
                return self.local(source, f"{self.constant(cell)}.cell_contents")
            case Held(value=value):
                return self.constant(value)

    def _table(self, base: Source, table: str) -> str:
        owner = self.read(base)
        # Instance dictionaries are read once and subscripted: on a module, each attribute costs three times as much.
        names = self.local(("__dict__", owner), f"{owner}.__dict__")
        return names if table == "__dict__" else self.local((table, owner), f"{names}[{table!r}]")

    def function(self, header: str) -> Callable[..., Any]:
        """Compile what was written; the text is the function's ``__source__``."""
        lines = _with_registers(_inlined(self.lines))
        text = f"def {header}:\n" + "".join(f"    {line}\n" for line in lines)
        name = header.partition("(")[0]
        exec(compile(text, f"<stillgraph {name}>", "exec"), self.namespace)
        function: Callable[..., Any] = self.namespace[name]
        function.__source__ = text  # type: ignore[attr-defined]
        return function


# Locals are written between these until they are named: a character that repr() never leaves in a literal.
_MARK = "\x1f"
_LOCAL = re.compile(f"{_MARK}\\d+{_MARK}")
_ASSIGNMENT = re.compile(f" *({_MARK}\\d+{_MARK}) = (.*)", re.DOTALL)


def _inlined(lines: Sequence[str]) -> list[str]:
    """Write what a local holds in its place where only the next line reads it, and reads it once."""
    uses = collections.Counter(local for line in lines for local in _LOCAL.findall(line))
    result: list[str] = []
    for line in lines:
        assigned = _ASSIGNMENT.fullmatch(result[-1]) if result else None
        if assigned and uses[assigned[1]] == 2 and assigned[1] in line and _is_path(assigned[2]):
            result[-1] = line.replace(assigned[1], assigned[2])
        else:
            result.append(line)
    return result


def _is_path(expression: str) -> bool:
    """Whether an expression may stand before a dot, a bracket or an operator."""
    return expression.startswith(_MARK) and " " not in expression


def _with_registers(lines: Sequence[str]) -> list[str]:
    """Name the locals, each name anew once its last value is dead: a frame of a thousand locals is a fifth slower."""
    last_use = {local: number for number, line in enumerate(lines) for local in _LOCAL.findall(line)}
    names: dict[str, str] = {}
    free: list[str] = []
    named = []
    for number, line in enumerate(lines):
        new: list[str] = []
        used: list[str] = []
        for local in dict.fromkeys(_LOCAL.findall(line)):
            (used if local in names else new).append(local)
        free += [names[local] for local in used if last_use[local] == number]
        for local in new:  # the one this line assigns
            names[local] = free.pop() if free else f"v{len(names)}"
        named.append(_LOCAL.sub(lambda match: names[match.group()], line))
    return named


def read_source(source: Source, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What is found at a source of a call now.

    Raises:
        Exception: whatever reading an attribute, an item or a cell on the way raises.
    """
    match source:
        case Argument(key=key):
            return args[key] if isinstance(key, int) else kwargs[key]
        case Attribute(base=base, name=name):
            return getattr(read_source(base, args, kwargs), name)
        case Item(base=base, key=key):
            return read_source(base, args, kwargs)[key]
        case Slot(base=base, table=table, name=name):
            names = read_source(base, args, kwargs).__dict__
            return names[name] if table == "__dict__" else names[table][name]
        case Global(module=module, name=name):
            return sys.modules[module].__dict__[name]
        case Cell(cell=cell):
            return cell.cell_contents
        case Held(value=value):
            return value


# ---- identity without ownership
_HELD_TYPES = (int, float, complex, str, bytes, range, slice, type(None), type(Ellipsis), type(NotImplemented))


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
            case ModeGuard():
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
_INNER = (Attribute, Item, Slot)
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
        case LengthGuard(source=source, length=length):
            value = writer.read(source)
            return value if length == 0 and _is_hook_table(source) else f"len({value}) != {length}"
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
    guard = weakened(guard)  # type: ignore[assignment]
    if not isinstance(guard, WeakIdentityGuard):
        return f"{value} is not {writer.constant(guard.expected)}"
    weak: WeakObject = guard.expected
    if weak.reference is not None:  # a dead reference gives None, which must not match a value that is None
        return f"{value} is None or {writer.constant(weak.reference)}() is not {value}"
    return f"id({value}) != {weak.address} or type({value}) is not {writer.constant(weak.type)}"


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
    return isinstance(source, Slot) and source.table == "__dict__" and source.name == "_modules"


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


# ---- in words
def explain_miss(
    guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any], inputs: Sequence[Input] = ()
) -> str | None:
    """Say why a program does not fit a call.

    Args:
        guards: the program's guards.
        args: the call's positional arguments.
        kwargs: the call's keyword arguments.
        inputs: the program's inputs, which must be found too.

    Returns:
        One sentence on the first guard that does not hold, with what was expected and what was found; None where all
        do.
    """
    return next(failures(guards, args, kwargs, inputs), None)


def failures(
    guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any], inputs: Sequence[Input] = ()
) -> Iterator[str]:
    """One sentence on each guard that does not hold, in the order of checking (see `explain_miss`)."""

    def read(source: Source) -> Any:
        return read_source(source, args, kwargs)

    for guard in in_checking_order(guards):
        try:
            sentence = _failure(guard, read)
        except Exception as error:
            sentence = f"{guard}, but reading it raised {type(error).__name__}: {error}"
        if sentence is not None:
            yield sentence
    for item in inputs:
        try:
            read(item.source)
        except Exception as error:
            yield f"{item.source} should be there, but reading it raised {type(error).__name__}: {error}"


def _failure(guard: Guard, read: Callable[[Source], Any]) -> str | None:
    match guard:
        case TensorGuard(source=source):
            value = read(source)
            return None if tensor_holds(guard, value) else f"{_expected_tensor(guard)}, but is {_shown(value, guard)}"
        case TypeGuard(source=source, type=kind):
            found = type(read(source))
            return None if found is kind else f"{source} should be a {kind.__qualname__}, but is a {found.__qualname__}"
        case ConstantGuard(source=source, value=expected):
            value = read(source)
            if strict_key(value) == strict_key(expected):
                return None
            kinds = (f" ({type(expected).__name__})", f" ({type(value).__name__})")
            if type(value) is type(expected):
                kinds = ("", "")
            return f"{source} should be {_shown(expected)}{kinds[0]}, but is {_shown(value)}{kinds[1]}"
        case IdentityGuard(source=source):
            return _identity_failure(guard, read(source))
        case LengthGuard(source=source, length=length):
            found_length = len(read(source))
            return None if found_length == length else f"len({source}) should be {length}, but is {found_length}"
        case KeysGuard(source=source, keys=keys):
            found_keys = (*read(source),)
            if strict_key(found_keys) == strict_key(keys):
                return None
            return f"the keys of {source} should be {_shown(list(keys))}, but are {_shown(list(found_keys))}"
        case AliasGuard(left=left, right=right, same=same):
            if (read(left) is read(right)) is same:
                return None
            wanted, found_as = ("the same object", "different objects")[:: 1 if same else -1]
            return f"{left} and {right} should be {wanted}, but are {found_as}"
        case SizeGuard(expression=expression, sizes=sizes):
            found_sizes = {name: read(source).size(dim) for name, source, dim in sizes}
            if eval(expression, {"math": math}, found_sizes):
                return None
            values = ", ".join(f"{name} (size {dim} of {src}) is {found_sizes[name]}" for name, src, dim in sizes)
            return f"{expression} should hold, but {values}"
        case ModeGuard():
            return _mode_failure(guard)


def _identity_failure(guard: IdentityGuard, value: Any) -> str | None:
    guard = weakened(guard)  # type: ignore[assignment]
    if isinstance(guard, WeakIdentityGuard):
        holds, kind = guard.expected.matches(value), guard.expected.type
    else:
        holds, kind = value is guard.expected, type(guard.expected)
    return None if holds else f"{guard.source} should be the same {kind.__name__} as before, but is {_shown(value)}"


def _mode_failure(guard: ModeGuard) -> str | None:
    now = current_context()
    facts = (
        ("grad mode", guard.context.grad, now.grad),
        ("inference mode", guard.context.inference, now.inference),
        ("the default dtype", guard.default_dtype, torch.get_default_dtype()),
        ("autocast", guard.context.autocast, now.autocast),
        ("the default device", guard.default_device, torch.get_default_device()),
    )
    for name, expected, found in facts:
        if expected != found:
            return f"{name} should be {_mode_value(expected)}, but is {_mode_value(found)}"
    return None


def _mode_value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " and ".join(str(item) for item in value) or "off"
    return str(value)


def _expected_tensor(guard: TensorGuard) -> str:
    dims = ["?" if size is None else str(size) for size in guard.shape]
    text = _tensor_text(guard.type, guard.dtype, dims, guard.device, guard.requires_grad, guard.strides)
    return f"{guard.source} should be {text}"


def _tensor_text(
    kind: type, dtype: torch.dtype, dims: Sequence[str], device: torch.device, grad: bool, strides: Any
) -> str:
    text = f"{kind.__name__} {str(dtype).removeprefix('torch.')}[{', '.join(dims)}] on {device}"
    text += f" with strides {tuple(strides)}" if strides is not None else ""
    return text + (", requires grad" if grad else "")


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80


def _shown(value: Any, guard: TensorGuard | None = None) -> str:
    """A value in a few words; a tensor by its metadata."""
    if not isinstance(value, torch.Tensor):
        try:
            return repr(value) if isinstance(value, (type, types.FunctionType)) else _REPR.repr(value)
        except Exception:
            return f"a {type(value).__qualname__}"
    strides = value.stride() if guard is not None and guard.strides is not None else None
    dims = [str(size) for size in value.shape]
    return _tensor_text(type(value), value.dtype, dims, value.device, value.requires_grad, strides)
