"""What torch's operators are declared to do: what they write to, whether they draw random numbers, what they return.

An operator's schema answers that, and its tags. A function or method of torch's is answered for by the ATen operators
of its name; functions of torch's that are written in Python have no schema, and are listed in `python_functions.py`.

The one module that reads torch's schemas, for which there is no public way.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

import torch
from torch import fx
from torch._library.custom_ops import CustomOpDef
from torch._ops import OpOverload, OpOverloadPacket

from stillgraph.program.facts.python_functions import (
    COMPUTING,
    DRAWING,
    NORMALISING,
    RENORMALISING,
    WITHOUT_SCHEMA,
    Given,
)

_OUR_OWN = ("stillgraph.program.operations", "stillgraph.program.exceptions")
_NAMESPACES = ("aten", "prims")
_IN_PLACE_OPERATORS = (
    *(operator.setitem, operator.delitem, operator.iadd, operator.isub, operator.imul, operator.itruediv),
    *(operator.ifloordiv, operator.imod, operator.ipow, operator.imatmul, operator.iand, operator.ior, operator.ixor),
    *(operator.ilshift, operator.irshift, setattr),
)
_IN_PLACE_METHODS = frozenset(f"__{each.__name__.strip('_')}__" for each in _IN_PLACE_OPERATORS)
_KEEPS_MEMORY = frozenset({"retain_grad", "record_stream"})
"""What is declared to write to a tensor, and leaves its elements as they are."""

_OFF_SWITCHES: dict[str, Any] = {"train": False, "training": False, "dropout": 0.0, "dropout_p": 0.0}
"""Arguments of operators that draw, and the values with which they do not."""

RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
"""Operators for all the steps of a sequence, and all the layers."""

OPERATORS = (CustomOpDef, OpOverload, OpOverloadPacket)
"""The types of operators that Python can name."""


# ---- questions about nodes
def writes(node: fx.Node) -> list[Any]:
    """The arguments of an operation that it writes to in place, apart from running statistics.

    Args:
        node: of a program.

    Returns:
        Arguments as they stand in the node: nodes, tuples and lists of nodes, None where one is not given.
    """
    if node.op not in ("call_function", "call_method") or getattr(node.target, "__module__", "") in _OUR_OWN:
        return []
    first = node.args[0] if node.args else node.kwargs.get("input", node.kwargs.get("self"))
    if node.target in _IN_PLACE_OPERATORS or (node.op == "call_method" and node.target in _IN_PLACE_METHODS):
        return [first]
    if isinstance(node.target, FunctionType):
        return _written_by_python(node.target, node, first)
    known = _schemas_of(node.target)
    written = _written_by_schema(node) if any(each.written and each.may_be(node) for each in known) else []
    if not isinstance(node.target, OpOverload):
        written.append(node.kwargs.get("out"))
    if not known and _is_torchs(node.target) and _is_in_place_name(_name(node.target)):
        written.append(first)
    return written


def statistics(node: fx.Node) -> list[Any]:
    """The running mean and variance that a normalisation updates."""
    if node.op != "call_function":
        return []
    if isinstance(node.target, FunctionType):
        readings = [_bound(node.target, node)] if node.target in NORMALISING else []
    else:
        has_any = any(each.has_statistics for each in _schemas_of(node.target))
        readings = [each.given(node) for each in _fitting(node)] if has_any else []
    for given in readings:
        if "running_mean" in given and given.get("training", given.get("use_input_stats", False)) is not False:
            return [given["running_mean"], given["running_var"]]
    return []


def draws(node: fx.Node) -> bool:
    """Whether an operation may draw from a random generator of torch's.

    A custom operator draws where it is tagged ``torch.Tag.nondeterministic_seeded``.
    """
    if node.op not in ("call_function", "call_method"):
        return False
    if isinstance(node.target, FunctionType):
        may = DRAWING.get(node.target)
        return may is not None and may(_bound(node.target, node))
    if not any(each.is_seeded for each in _schemas_of(node.target)):
        return False
    return any(each.is_seeded and _is_switched_on(each.given(node)) for each in _fitting(node))


# ---- questions about functions
def parameters_of(target: Any) -> list[tuple[list[str], dict[str, Any]]]:
    """For each operator that may answer a call: the parameters that have positions, and the defaults that some have."""
    known = [[each for each in schema.arguments if not each.kwarg_only] for schema in _schemas_of(target)]
    return [([each.name for each in some], {e.name: e.default for e in some if e.has_default}) for some in known]


def returns_nothing(target: Any) -> bool:
    """Whether every operator that may answer a call returns nothing: it is called for what it does."""
    found = _schemas_of(target)
    return bool(found) and not any(each.returns for each in found)


def is_custom(target: Any) -> bool:
    """Whether this is an operator that is not torch's: it may do what no schema tells, such as to print."""
    return isinstance(target, OpOverload | OpOverloadPacket) and _namespace(target) not in _NAMESPACES


def implementations(op: Any) -> list[Callable[..., Any]]:
    """The functions of the user's that an operator runs, as far as Python shows them.

    Args:
        op: of one of the types `OPERATORS`.
    """
    return [op._init_fn, *op._backend_fns.values()] if isinstance(op, CustomOpDef) else []


def is_effectful(target: Any) -> bool:
    """Whether a call has to run even where nothing it returns is used; what torch's profiler is told need not."""
    if isinstance(target, OpOverload | OpOverloadPacket) and _namespace(target) == "profiler":
        return False
    if is_custom(target) or returns_nothing(target):
        return True
    name = _name(target)
    return name in _IN_PLACE_METHODS or (_is_in_place_name(name) and (_is_torchs(target) or _is_pythons(target)))


def is_known(target: Any) -> bool:
    """Whether this is an operator, a function or a method of torch's of which it is known what it does to tensors."""
    if isinstance(target, OpOverload | OpOverloadPacket):
        return not is_custom(target)
    if isinstance(target, FunctionType):
        return target.__module__ in COMPUTING
    return target in WITHOUT_SCHEMA or bool(_schemas_of(target))


def _written_by_python(function: FunctionType, node: fx.Node, first: Any) -> list[Any]:
    given = _bound(function, node)
    written = [given.get("out")]
    if given.get("inplace", False) is not False or _is_in_place_name(function.__name__):
        written.append(first)
    if function in RENORMALISING and given.get("max_norm") is not None:
        written.append(given["weight"])
    return written


def _bound(function: FunctionType, node: fx.Node) -> Given:
    """The arguments of a function of torch's by name, defaults included; of any other, those that are given by name."""
    if not _is_pythons(function):
        return node.kwargs
    try:
        bound = _signature(function).bind(*node.args, **node.kwargs)
    except (TypeError, ValueError):  # the second of what is not written in Python behind its wrapper
        return node.kwargs
    bound.apply_defaults()
    return bound.arguments


@functools.cache
def _signature(function: FunctionType) -> inspect.Signature:
    return inspect.signature(function)


# ---- schemas
@dataclass(frozen=True)
class _Argument:
    """What a schema says of an argument."""

    name: str
    kind: str
    kwarg_only: bool
    is_written: bool
    has_default: bool
    default: Any


@dataclass(frozen=True, eq=False)
class _Schema:
    """What is declared of an operator; torch makes this anew whenever it is asked for it.

    Attributes:
        arguments: in order.
        written: names of the arguments whose elements it writes to.
        outputs: names of those among them that take results, and have to be given (``out=``).
        returns: whether it returns anything.
        is_seeded: whether it may draw.
        has_statistics: whether it takes a running mean and variance.
    """

    arguments: tuple[_Argument, ...]
    written: tuple[str, ...]
    outputs: frozenset[str]
    returns: bool
    is_seeded: bool
    has_statistics: bool

    def may_be(self, node: fx.Node) -> bool:
        """Whether a node gives what this operator has to be given for its results, if anything."""
        return not self.outputs or bool(self.outputs & node.kwargs.keys())

    def fits(self, node: fx.Node) -> bool:
        """Whether a node's positional arguments can be those of this operator."""
        places = [each for each in self.arguments if not each.kwarg_only]
        if len(node.args) > len(places):
            return False
        return all(_can_be(place.kind, value) for place, value in zip(places, node.args))

    def given(self, node: fx.Node) -> dict[str, Any]:
        """The arguments of a node by the names that they have here, defaults included."""
        given: dict[str, Any] = {}
        position = 0
        for each in self.arguments:
            if not each.kwarg_only and position < len(node.args):
                given[each.name] = node.args[position]
                position += 1
            elif each.name in node.kwargs:
                given[each.name] = node.kwargs[each.name]
            elif each.name == "self" and "input" in node.kwargs:  # what torch's functions call it
                given[each.name] = node.kwargs["input"]
            elif each.has_default:
                given[each.name] = each.default
        return given


def _schemas_of(target: Any) -> tuple[_Schema, ...]:
    """Of the operators that may answer a call of an operator, or of a function or method that is not in Python."""
    if isinstance(target, OpOverload):
        return (_declared(target),)
    if isinstance(target, OpOverloadPacket):
        return _overloads(target)
    return _aten(_name(target)) if isinstance(target, str) or _is_torchs(target) else ()


@functools.cache
def _aten(name: str) -> tuple[_Schema, ...]:
    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
    return _overloads(packet) if isinstance(packet, OpOverloadPacket) else ()


def _overloads(packet: OpOverloadPacket) -> tuple[_Schema, ...]:
    """Of the overloads of an operator; those for TorchScript's own lists and dicts are not the dispatcher's."""
    found = (getattr(packet, name) for name in packet.overloads())
    return tuple(_declared(each) for each in found if torch._C._dispatch_has_kernel(each.name()))


@functools.lru_cache(maxsize=4096)
def _declared(op: OpOverload) -> _Schema:
    schema = op._schema
    arguments = tuple(map(_argument, schema.arguments))
    written = [] if schema.name.partition("::")[2] in _KEEPS_MEMORY else [each for each in arguments if each.is_written]
    outputs = (each.name for each in written if each.kwarg_only and not each.has_default)
    seeded = torch.Tag.nondeterministic_seeded in op.tags
    return _Schema(
        arguments,
        tuple(each.name for each in written),
        frozenset(outputs),
        bool(schema.returns),
        seeded,
        {"running_mean", "running_var"} <= {each.name for each in arguments},
    )


def _argument(declared: Any) -> _Argument:
    alias = declared.alias_info
    return _Argument(
        declared.name,
        str(declared.type),
        declared.kwarg_only,
        alias is not None and alias.is_write,
        declared.has_default_value(),
        declared.default_value,
    )


def _fitting(node: fx.Node) -> list[_Schema]:
    """The operators that a node may call, going by its arguments; all of the name where that leaves none."""
    known = _schemas_of(node.target)
    if isinstance(node.target, OpOverload):
        return list(known)
    found = [each for each in known if each.may_be(node)]
    if len(found) < 2:
        return found
    return [each for each in found if each.fits(node)] or found


def _written_by_schema(node: fx.Node) -> list[Any]:
    written: list[Any] = []
    for each in _fitting(node):
        given = each.given(node) if each.written else {}
        new = [given[name] for name in each.written if name in given]
        written += [value for value in new if all(value is not known for known in written)]
    return written


def _can_be(kind: str, value: Any) -> bool:
    if isinstance(value, fx.Node) or value is None:
        return True
    if "List" in kind:
        return isinstance(value, (tuple, list)) or kind in ("List[int]", "Optional[List[int]]")
    if "bool" in kind:
        return isinstance(value, bool)
    return not isinstance(value, (tuple, list)) and not ("Tensor" in kind and isinstance(value, (bool, str)))


def _is_switched_on(given: Given) -> bool:
    return not any(name in given and given[name] == off for name, off in _OFF_SWITCHES.items())


# ---- names
def _name(target: Any) -> str:
    return target if isinstance(target, str) else str(getattr(target, "__name__", "")).split(".")[0]


def _namespace(op: OpOverload | OpOverloadPacket) -> str:
    return str(op).partition(".")[0]


def _is_torchs(target: Any) -> bool:
    """Whether this is a method's name, or one of torch's own functions and methods that are not written in Python."""
    if isinstance(target, (str, OpOverload, OpOverloadPacket)):
        return True
    if isinstance(target, MethodDescriptorType):
        return issubclass(torch.Tensor, target.__objclass__)
    module = getattr(target, "__module__", None) or ""
    return isinstance(target, BuiltinFunctionType) and module.partition(".")[0] == "torch"


def _is_pythons(target: Any) -> bool:
    """Whether this is one of torch's functions and methods that are written in Python."""
    return isinstance(target, FunctionType) and target.__module__.partition(".")[0] == "torch"


def _is_in_place_name(name: str) -> bool:
    """Whether a function or method of torch's writes to its first argument, by what torch's names mean."""
    return name.endswith("_") and not name.endswith("__")
