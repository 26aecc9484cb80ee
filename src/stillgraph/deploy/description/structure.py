"""The structure of arguments and results as JSON: with it an artefact is called like the original.

Reading it runs no code: classes are only looked up among modules that are loaded already, and are built in no other
way than namedtuples, dataclasses and pytree nodes are. A class that is not there becomes a plain tuple or dict.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.deploy.description.constants import class_name, decode_constant, encode_constant, is_atom, loaded_class
from stillgraph.passes.lists.lists import items_of
from stillgraph.passes.lists.ragged import elements_of
from stillgraph.passes.numbers.number_errors import EXACT, MIXED
from stillgraph.program.outputs import (
    BOUND,
    Constant,
    Container,
    Instance,
    OfKind,
    OneOf,
    OrNone,
    Output,
    Repeated,
    Same,
    Shared,
    Template,
    has_table,
)
from stillgraph.program.sources import Argument, Attribute, Item, Source

Json = Any


# ---- sources
def encode_source(source: Source) -> Json:
    """A place in the call's arguments; None for any other."""
    if isinstance(source, Argument):
        return source.key
    if isinstance(source, (Item, Attribute)):
        base = encode_source(source.base)
        key = source.key if isinstance(source, Item) else source.name
        step = "item" if isinstance(source, Item) else "attribute"
        return None if base is None or not is_key(key) else [step, base, key]
    return None


def is_key(value: Any) -> bool:
    """Whether JSON has a key as it is, or as a list where it is a tuple."""
    return all(map(is_key, value)) if type(value) is tuple else is_atom(value)


def _key(data: Json) -> Any:
    return tuple(map(_key, data)) if isinstance(data, list) else data


def decode_source(data: Json) -> Source:
    """The inverse of `encode_source`."""
    if isinstance(data, list):
        step, base, key = data
        return Item(decode_source(base), _key(key)) if step == "item" else Attribute(decode_source(base), key)
    return Argument(data)


# ---- results
def leaves_of(template: Template) -> list[Output | Constant]:
    """The tensors and numbers of a result, in order: the outputs of an artefact."""
    match template:
        case Output():
            return [template]
        case Constant(value=value) if is_exactly(value, (bool, int, float)):
            return [template]
        case Container(children=children):
            return [leaf for child in children for leaf in leaves_of(child)]
        case Instance(attributes=attributes):
            return [leaf for _, child in attributes for leaf in leaves_of(child)]
        case Repeated(columns=columns):
            return list(columns)
        case OrNone(flag=flag, child=child):
            return [*leaves_of(child), flag]
        case OfKind(value=value, kind=kind):
            return [value, kind]
        case OneOf(index=index):
            return [index]
    return []


def leaves_that_count(template: Template, read: Callable[[Output], Any]) -> list[bool]:
    """For each of `leaves_of` whether it means anything: what is under ``None`` does not.

    Args:
        template: the result.
        read: gives the value of an output.
    """
    match template:
        case OrNone(flag=flag, child=child):
            there = not read(flag)
            return [*(each and there for each in leaves_that_count(child, read)), True]
        case Container(children=children):
            return [each for child in children for each in leaves_that_count(child, read)]
        case Instance(attributes=attributes):
            return [each for _, child in attributes for each in leaves_that_count(child, read)]
    return [True] * len(leaves_of(template))


def of_widest_kind(template: Template) -> set[Output]:
    """The leaves that are numbers of the widest kind, whichever the path gives."""
    match template:
        case OfKind(value=value):
            return {value}
        case OrNone(child=child):
            return of_widest_kind(child)
        case Container(children=children):
            return set().union(*map(of_widest_kind, children))
        case Instance(attributes=attributes):
            return set().union(*(of_widest_kind(child) for _, child in attributes))
    return set()


def encode_result(template: Template, receiver: int = 0) -> Json:
    """A result's structure; its outputs are numbered as `leaves_of` lists them.

    Args:
        template: the result.
        receiver: how many of the first arguments no caller passes.

    A list of which only the run knows the length is one output for each column: a tensor with a row for each element.
    A column of tensors whose sizes differ is two: all elements one behind another, and a row of sizes for each.
    One of a table of constants is the number of its entry, and the table is here.
    A dict or set whose keys only the run knows has a list of them for its child, and a dict then one of its values.
    What may be ``None`` has an output behind it that tells whether it is, a number whose type depends on the path one
    that tells the type (`operations.kind_code`).

    Raises:
        ExportError: the result holds an object that is neither tensor nor plain data.
    """
    return _encode(template, itertools.count(), receiver)


def _encode(template: Template, numbers: Iterator[int], receiver: int) -> Json:
    match template:
        case Output():
            return {"output": next(numbers)}
        case OrNone(child=child):
            inner = _encode(child, numbers, receiver)
            return {"none": next(numbers), "else": inner}
        case OfKind():
            return {"number": next(numbers), "kind": next(numbers)}
        case Repeated(columns=columns, element=element, sized=sized):
            given = [next(numbers) for _ in columns]
            told = {"sized": list(sized)} if sized else {}
            return {"repeated": given, **told, "element": _encode(element, itertools.count(), receiver)}
        case Constant(value=value) if (encoded := encode_constant(value)) is not None:
            if is_exactly(value, (bool, int, float)):
                next(numbers)
            return encoded
        case OneOf(entries=entries):
            at = next(numbers)  # what is in the table is no output
            table = [[number, _encode(each, itertools.count(), receiver)] for number, each in entries]
            return {"one of": at, "entries": table}
        case Container(type=kind, context=context, children=children) if kind not in BOUND:
            parts = [_encode(child, numbers, receiver) for child in children]
            is_table = issubclass(kind, (dict, set, frozenset)) and has_table(context)
            keys = None if is_table else _keys(kind, context)
            written = {"container": class_name(kind), "keys": keys, "children": parts, **_factory(kind, context)}
            return {**written, "table": True} if is_table else written
        case Instance(type=kind, attributes=attributes):
            parts = [_encode(value, numbers, receiver) for _, value in attributes]
            return {"instance": class_name(kind), "keys": [name for name, _ in attributes], "children": parts}
        case Shared(index=index):
            return {"shared": index}
        case Same(source=source) if encode_source(source) is not None and _is_passed(source, receiver):
            return {"same": encode_source(source)}
    message = f"the result holds {_shown(template)}, which a file cannot hold"
    raise refuse("SG402", message, hint="Return tensors, numbers, texts and containers of these, or save as .py.")


def _is_passed(source: Source, receiver: int) -> bool:
    while isinstance(source, (Item, Attribute)):
        source = source.base
    return isinstance(source, Argument) and (isinstance(source.key, str) or source.key >= receiver)


def _shown(template: Template) -> str:
    """What a result holds, as a message names it."""
    if isinstance(template, Constant):
        return f"{template.value!r} ({type(template.value).__name__})"[:200]
    return str(template)


def _keys(kind: type, context: Any) -> list[Json] | None:
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return list(kind._fields)
    if kind is deque:
        return [context]  # the most elements it holds
    if issubclass(kind, dict):
        keys = list(context)
        encoded = [key if is_atom(key) else encode_constant(key) for key in keys]
        if any(data is None and key is not None for key, data in zip(keys, encoded)):
            message = f"the result is a dict with keys that a file cannot hold: {', '.join(map(str, keys))}"
            raise refuse("SG402", message, hint="Use strings or numbers as keys.")
        return encoded
    return None


_FACTORIES: dict[str, Callable[[], Any]] = {
    class_name(kind): kind
    for kind in (
        *(bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset),
        *(OrderedDict, Counter, deque, defaultdict),
    )
}
"""What a loaded `defaultdict` may call for a key that it lacks: nothing else of a file's choice."""


def _factory(kind: type, context: Any) -> dict[str, Json]:
    """What a `defaultdict` calls for a key that it lacks.

    Raises:
        ExportError: that is of no class of Python's own.
    """
    factory = getattr(context, "default_factory", None)
    if kind is not defaultdict or factory is None:
        return {}
    for name, known in _FACTORIES.items():
        if known is factory:
            return {"factory": name}
    shown = getattr(factory, "__qualname__", type(factory).__name__)
    message = f"the result is a defaultdict whose default_factory is {shown}, which a file cannot hold"
    raise refuse("SG402", message, hint="Return dict(…) of it, or use a class of Python's own, such as int or list.")


def _decoded_keys(keys: list[Json]) -> list[Any]:
    return [decode_constant(key) if isinstance(key, dict) else key for key in keys]


def decode_result(data: Json) -> Callable[[list[Any], Callable[[Source], Any]], Any]:
    """How a result is built: a function of the outputs and of what reads a source of the call."""

    def build(outputs: list[Any], read: Callable[[Source], Any]) -> Any:
        return _build(data, outputs, read, [])

    return build


def _build(data: Json, outputs: list[Any], read: Callable[[Source], Any], made: list[Any]) -> Any:
    if "output" in data:
        return outputs[data["output"]]
    if "one of" in data:
        number = int(outputs[data["one of"]])
        return next(_build(each, outputs, read, made) for at, each in data["entries"] if at == number)
    if "shared" in data:
        return made[data["shared"]]
    if "same" in data:
        return read(decode_source(data["same"]))
    if "opaque" in data:
        return None
    if "none" in data:
        value = _build(data["else"], outputs, read, made)  # in any case: what is in it may be elsewhere as well
        return None if outputs[data["none"]] else value
    if "number" in data:
        return _of_kind(outputs[data["number"]], outputs[data["kind"]])
    if "children" not in data:
        return decode_constant(data)
    place = len(made)
    made.append(None)
    children = [each for child in data["children"] for each in _build_children(child, outputs, read, made)]
    made[place] = _container(data, children) if "container" in data else _instance(data, children)
    return made[place]


_NUMBERS = (bool, int, float)


def _of_kind(value: Any, code: int) -> Any:
    """A number as its path has it.

    Raises:
        OverflowError: a whole number that floats do not tell from the next one.
    """
    kind = _NUMBERS[code]
    if kind is int and isinstance(value, float) and abs(value) >= EXACT:
        raise OverflowError(MIXED.removeprefix("OverflowError: "))
    return kind(value)


def _build_children(data: Json, outputs: list[Any], read: Callable[[Source], Any], made: list[Any]) -> list[Any]:
    """What one entry of a container's children stands for: one child, or as many as a list has in the run."""
    if "repeated" not in data:
        return [_build(data, outputs, read, made)]
    rows = zip(*_columns(data, outputs), strict=True)
    return [_build(data["element"], list(row), read, []) for row in rows]


def _columns(data: Json, outputs: list[Any]) -> list[list[Any]]:
    """The elements of each column of a list; one of tensors whose sizes differ is two outputs."""
    given = (outputs[index] for index in data["repeated"])
    sized = data.get("sized", ())
    count = len(data["repeated"]) - len(sized)
    return [elements_of(next(given), next(given)) if n in sized else _items(next(given)) for n in range(count)]


def _items(column: Any) -> list[Any]:
    return items_of(column) if isinstance(column, torch.Tensor) else column


_PLAIN: dict[str, Callable[[list[Any]], Any]] = {
    "builtins:tuple": tuple,
    "builtins:list": list,
    "builtins:set": set,
    "builtins:frozenset": frozenset,
    "builtins:complex": lambda parts: complex(*parts),
    "torch:Size": torch.Size,
}


def _container(data: Json, children: list[Any]) -> Any:
    name, keys = data["container"], data["keys"]
    if data.get("table"):  # a list of the keys, and one of the values
        keys, children = children[0], children[1] if len(children) > 1 else children[0]
    if name in _PLAIN:
        return _PLAIN[name](children)
    kind = loaded_class(name)
    if keys is None:
        return kind(children) if _is_of_torch(kind) else children
    keys = keys if data.get("table") else _decoded_keys(keys)
    if kind is deque:
        return deque(children, *keys)
    if kind is not None and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind(*children)
    if kind in (OrderedDict, Counter):
        return kind(dict(zip(keys, children)))
    if kind is defaultdict:
        return defaultdict(_FACTORIES.get(str(data.get("factory"))), zip(keys, children))
    if kind is not None and kind in pytree.SUPPORTED_NODES and kind is not dict:
        return _unflatten(kind, keys, children)
    return dict(zip(keys, children))


def _is_of_torch(kind: Any) -> bool:
    """Whether a class is that of what an operation of torch gives, with a name for each part."""
    return kind is not None and kind.__module__ == "torch.return_types" and issubclass(kind, tuple)


def _unflatten(kind: Any, keys: list[Any], children: list[Any]) -> Any:
    try:
        return kind(**dict(zip(keys, children)))
    except TypeError:
        return dict(zip(keys, children))


def _instance(data: Json, children: list[Any]) -> Any:
    kind = loaded_class(data["instance"])
    values = dict(zip(data["keys"], children))
    if kind is None or not dataclasses.is_dataclass(kind):
        return values
    fresh: Any = object.__new__(kind)  # type: ignore[arg-type]  # a class, as loaded_class saw
    fresh.__dict__.update(values)
    return fresh
