"""Constants of a result as JSON: those that it has no form for, by name or as Python writes them.

Reading runs no code: a class is only looked up among modules that are loaded already, and a literal is parsed.
"""

from __future__ import annotations

import ast
import enum
import sys
from types import EllipsisType, ModuleType
from typing import Any

import torch

from stillgraph.core.lookup import is_exactly, own_attributes

Json = Any
_ATOMS = (bool, int, float, str, type(None))
_OF_TORCH = (torch.dtype, torch.layout, torch.memory_format)


def is_atom(value: Any) -> bool:
    """Whether JSON has the value as it is."""
    return is_exactly(value, _ATOMS)


def encode_constant(value: Any) -> Json | None:
    """A constant; None for one that a file cannot hold."""
    if is_atom(value):
        return {"constant": value}
    if is_exactly(value, (bytes, EllipsisType)):
        return {"literal": "..." if value is ... else repr(value)}
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if isinstance(value, _OF_TORCH):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, enum.Enum) and loaded_class(class_name(type(value))) is type(value):
        name, held = value._name_, value._value_ if is_atom(value._value_) else value._name_
        several = {} if name in type(value).__members__ else {"bits": value._value_}  # of a flag
        return {"member": class_name(type(value)), "name": name, "value": held, **several}
    return None


def decode_constant(data: Json) -> Any:
    """The inverse of `encode_constant`; of a member whose class is not loaded, its value, or else its name."""
    if "literal" in data:
        return ast.literal_eval(data["literal"])
    if "complex" in data:
        return complex(*data["complex"])
    if "torch" in data:
        found = vars(torch).get(data["torch"])
        return found if isinstance(found, _OF_TORCH) else None
    if "device" in data:
        return torch.device(data["device"])
    if "member" in data:
        kind = loaded_class(data["member"])
        if kind is None or not issubclass(kind, enum.Enum):
            return data["value"]
        return _of_bits(kind, data["bits"]) if "bits" in data else kind.__members__.get(data["name"], data["value"])
    return data["constant"]


def _of_bits(kind: type[enum.Enum], bits: Any) -> Any:
    """Several bits of a flag, or none: Python's own code makes them of the members that there are."""
    member_type = getattr(kind, "_member_type_", None)
    if not issubclass(kind, enum.Flag) or member_type not in (object, int) or type(bits) is not int:
        return bits
    try:
        return vars(enum.Flag)["_missing_"].__func__(kind, bits)
    except ValueError:
        return bits


def class_name(kind: type) -> str:
    """A class by its module and name."""
    return f"{kind.__module__}:{kind.__qualname__}"


def loaded_class(name: str) -> Any:
    """The inverse of `class_name`; None where there is no such class among what is loaded."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        held = own_attributes(found)  # what stands there: no code of a module's or class's own is asked for it
        if not isinstance(found, (ModuleType, type)) or held is None or part not in held:
            return None
        found = held[part]
    return found if isinstance(found, type) else None
