"""What an archive may hold before torch reads it: loading a file must run nothing that its author put there.

torch's reader unpickles what an archive says is pickled, evaluates its symbolic expressions, looks functions up by
name, and makes Python code with the names in it. Here everything is refused that a saved program has no need of.
"""

from __future__ import annotations

import ast
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, Any

import torch
from torch.export.pt2_archive import PT2ArchiveReader

from stillgraph.core.diagnostics import load_error

_RECORDS = re.compile(
    r"archive_format|archive_version|byteorder|\.data/version|\.data/serialization_id|extra/[\w.]+"
    r"|models/\w+\.json|data/weights/(weight_\d+|\w+_weights_config\.json)"
    r"|data/constants/(tensor_\d+|\w+_constants_config\.json)|data/sample_inputs/\w+\.pt"
)
_PAYLOAD = re.compile(r"(weight|tensor)_\d+")


def check_records(reader: PT2ArchiveReader, file: IO[bytes]) -> None:
    """Refuse an archive with anything but tensors, graphs and texts.

    Args:
        reader: of the archive.
        file: with the archive.

    Raises:
        LoadError: there is such a thing.
    """
    names = reader.get_file_names()
    sizes = _sizes(reader.archive_file, file)
    for name in names:
        if not _RECORDS.fullmatch(name):
            raise load_error(f"it holds {name[:200]!r}, which is no part of a saved program")
    if len(set(names)) != len(names) or sum(sizes.values()) > file.seek(0, os.SEEK_END):  # they are not compressed
        raise load_error("its records overlap, or are larger than the file")
    for name in names:
        check = next((check for start, check in _CHECKS.items() if name.startswith(start)), None)
        if check is not None and (name.endswith(".json") or name.startswith("data/sample_inputs/")):
            check(reader, name, sizes)


def _sizes(reader: torch._C.PyTorchFileReader, file: IO[bytes]) -> dict[str, int]:
    """The size of each record in bytes."""
    names = reader.get_all_records()
    if hasattr(reader, "get_record_size"):  # since torch 2.13
        return {name: reader.get_record_size(name) for name in names}
    with zipfile.ZipFile(file) as archive:
        found = {each.filename.partition("/")[2]: each.file_size for each in archive.infolist()}
    return {name: found[name] for name in names}


# ---- tensors
def _check_config(reader: PT2ArchiveReader, name: str, sizes: dict[str, int]) -> None:
    folder = name.rpartition("/")[0]
    for payload in json.loads(reader.read_string(name))["config"].values():
        path = payload["path_name"]
        if payload["use_pickle"] is not False or not _PAYLOAD.fullmatch(path):
            raise load_error("it holds a pickled object, which can run code")
        shape = [size["as_int"] for size in payload["tensor_meta"]["sizes"]]
        if sizes[f"{folder}/{path}"] == 0 and math.prod(shape) != 0:
            raise load_error("it is cut off: a tensor has no data")


def _check_examples(reader: PT2ArchiveReader, name: str, sizes: dict[str, int]) -> None:
    """Example inputs are a pickle; torch's restricted reader has to do, for torch falls back to the other."""
    data = reader.read_bytes(name)
    try:
        inner = torch._C.PyTorchFileReader(io.BytesIO(data))
        whole = sum(_sizes(inner, io.BytesIO(data)).values()) <= len(data)
        examples = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu") if whole else None
    except Exception as error:
        raise load_error("its example inputs are no plain tensors, and reading them could run code") from error
    if not isinstance(examples, (tuple, dict)):
        raise load_error("its example inputs are larger than the file, or of an unknown form")


# ---- graphs
_NAME = re.compile(r"[\w.]*")
_FREE = {"as_string", "as_strings", "torch_version", "metadata"}  # texts that are only shown, or are a call's argument
_FORBIDDEN = ("as_custom_obj", "custom_obj", "custom_obj_values", "guards_code", "treespec_namedtuple_fields")


def _check_model(reader: PT2ArchiveReader, name: str, sizes: dict[str, int]) -> None:
    for key, value in _entries(json.loads(reader.read_string(name))):
        if key in _FORBIDDEN and value:
            raise load_error(f"its program has {key}, which can run code")
        if isinstance(value, str):
            _TEXTS.get(key, _check_name)(value)
        if not _NAME.fullmatch(key):
            raise load_error(f"{key[:100]!r} is no name")


def _entries(data: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Everything in a JSON value with the key it is under, but what is free to be anything."""
    if key in _FREE:
        return
    yield key, data
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _entries(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from _entries(value, key)


def _check_name(text: str) -> None:
    """Names become part of Python code that is made for a graph."""
    if not _NAME.fullmatch(text):
        raise load_error(f"{text[:100]!r} is no name")


def _check_number(text: str) -> None:
    """A float that JSON has no number for."""
    if text not in ("Infinity", "-Infinity", "NaN"):
        raise load_error(f"{text[:100]!r} is no number")


_OPERATORS = frozenset({
    *("_operator.getitem", "_operator.add", "_operator.sub", "_operator.mul", "_operator.floordiv"),
    *("_operator.truediv", "_operator.mod", "_operator.pow", "_operator.neg", "_operator.pos", "_operator.abs"),
    *("_operator.lt", "_operator.le", "_operator.gt", "_operator.ge", "_operator.eq", "_operator.ne"),
    *("_operator.and_", "_operator.or_", "_operator.not_", "_operator.xor", "_operator.invert"),
    *("_operator.lshift", "_operator.rshift"),
})
_HIGHER_ORDER = frozenset({
    *("torch.ops.higher_order.cond", "torch.ops.higher_order.while_loop", "torch.ops.higher_order.scan"),
    *("torch.ops.higher_order.associative_scan", "torch.ops.higher_order.map_impl"),
    *("torch.ops.higher_order.wrap_with_set_grad_enabled", "torch.ops.higher_order.wrap_with_autocast"),
})
_WRITES_FILES = frozenset({"aten::from_file", "aten::save"})


def _check_target(text: str) -> None:
    """A function by its name: an operation of the dispatcher, or arithmetic."""
    if text in _OPERATORS or text in _HIGHER_ORDER or re.fullmatch(r"torch\._?sym_[a-z]+|math\.[a-z]\w*", text):
        return
    found = re.fullmatch(r"torch\.ops\.([a-z]\w*)\.(\w+)\.(\w+)", text)
    overload = _overload(*found.groups()) if found and found[1] != "higher_order" else None
    if not isinstance(overload, torch._ops.OpOverload):
        raise load_error(f"its program calls {text[:100]!r}, which is no operation that is known here")
    if overload._schema.name in _WRITES_FILES:
        raise load_error(f"its program calls {text!r}, which opens files")


def _overload(namespace: str, name: str, overload: str) -> Any:
    return getattr(getattr(getattr(torch.ops, namespace, None), name, None), overload, None)


def _check_structure(text: str) -> None:
    """The structure of a module's arguments or results."""
    for key, value in _entries(json.loads(text)):
        plain = value in ("builtins.tuple", "builtins.list", "builtins.dict")
        if key == "type" and value is not None and not plain:
            raise load_error(f"its program takes or gives a {str(value)[:100]}")
        if key == "context" and isinstance(value, str) and "__enum__" in value:
            raise load_error("its program takes or gives an enumeration")


# ---- sizes
_FUNCTIONS = frozenset({
    *("Symbol", "Integer", "Float", "Rational", "Add", "Mul", "Pow", "Min", "Max", "Mod", "Abs", "floor", "ceiling"),
    *("And", "Or", "Not", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality", "StrictLessThan", "LessThan"),
    *("StrictGreaterThan", "GreaterThan", "FloorDiv", "ModularIndexing", "Where", "PythonMod", "CleanDiv", "CeilToInt"),
    *("FloorToInt", "CeilDiv", "LShift", "RShift", "PowByNatural", "FloatPow", "FloatTrueDiv", "IntTrueDiv"),
    *("TruncToFloat", "TruncToInt", "RoundToInt", "RoundDecimal", "ToFloat", "Identity"),
})
_DECIMAL = re.compile(r"-?\d{1,20}(\.\d{0,40})?(e[+-]?\d{1,3})?")  # as sympy writes a float
_MOST_BITS = 128  # of a float
_SYMBOL = re.compile(r"[a-z]+\d{0,6}")
_PLAIN = (ast.Expression, ast.Load, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.operator, ast.unaryop)
_ALLOWED = (*_PLAIN, ast.cmpop, ast.boolop, ast.Name, ast.Constant, ast.Call, ast.keyword)


def _check_expression(text: str) -> None:
    """A size as an expression: torch evaluates it as Python."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise load_error(f"{text[:100]!r} is no size") from error
    if not all(isinstance(node, _ALLOWED) and _is_size(node) for node in nodes):
        raise load_error(f"{text[:100]!r} is no size")


def _is_size(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="Pow" | "PowByNatural" as name), args=[_, exponent]):
            return name in _FUNCTIONS and len(ast.unparse(exponent)) < len("Integer(100)")
        case ast.Call(func=function):
            return isinstance(function, ast.Name) and function.id in _FUNCTIONS
        case ast.BinOp(op=ast.Pow() | ast.LShift()):
            return False
        case ast.Name(id=name):
            return name in _FUNCTIONS or _SYMBOL.fullmatch(name) is not None
        case ast.keyword(arg="precision", value=value):
            return isinstance(value, ast.Constant) and type(value.value) is int and 0 < value.value <= _MOST_BITS
        case ast.Constant(value=str() as value):
            return _SYMBOL.fullmatch(value) is not None or _DECIMAL.fullmatch(value) is not None
        case ast.Constant(value=value):
            return isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 2**64)
    return True


_TEXTS: dict[str, Callable[[str], None]] = {
    "target": _check_target,
    "as_operator": _check_target,
    "expr_str": _check_expression,
    **dict.fromkeys(("as_float", "as_floats", "as_float_lists", "real", "imag"), _check_number),
    "in_spec": _check_structure,
    "out_spec": _check_structure,
}
_CHECKS: dict[str, Callable[[PT2ArchiveReader, str, dict[str, int]], None]] = {
    "models/": _check_model,
    "data/weights/": _check_config,
    "data/constants/": _check_config,
    "data/sample_inputs/": _check_examples,
}
