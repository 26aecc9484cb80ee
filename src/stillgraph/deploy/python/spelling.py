"""How functions and constants are spelled in a file that imports torch and the standard library alone."""

from __future__ import annotations

import builtins
import enum
import functools
import importlib
import math
import re
import sys
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional
import torch.utils.checkpoint

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.deploy.python.helpers import HELPERS, NAMED

FUNCTIONAL = "import torch.nn.functional as F"
_PREFIXES: dict[str, tuple[str, str]] = {  # in the order in which they are looked into
    "builtins": ("", ""),
    "torch": ("torch", "import torch"),
    "torch.nn.functional": ("F", FUNCTIONAL),
    "torch.linalg": ("torch.linalg", "import torch"),
    "torch.fft": ("torch.fft", "import torch"),
    "torch.special": ("torch.special", "import torch"),
    "torch.autograd": ("torch.autograd", "import torch"),
    "torch.nested": ("torch.nested", "import torch"),
    "torch.utils.checkpoint": ("torch.utils.checkpoint", "import torch.utils.checkpoint"),
    "math": ("math", "import math"),
    "operator": ("operator", "import operator"),
}


@functools.cache
def _public() -> dict[int, tuple[str, str]]:
    """By identity of a function: how it is spelled and what has to be imported for it."""
    found: dict[int, tuple[str, str]] = {}
    for module, (prefix, line) in _PREFIXES.items():
        for name, value in vars(importlib.import_module(module)).items():
            if callable(value) and not name.startswith("_"):
                found.setdefault(id(value), (f"{prefix}.{name}" if prefix else name, line))
    return found


_TORCH_VALUES = (torch.dtype, torch.memory_format, torch.layout)


def _by_name(module: str, name: str) -> Any:
    """What code finds by ``module.name`` behind ``import module``, if anything."""
    try:
        importlib.import_module(module)
        top, *path = f"{module}.{name}".split(".")
        return functools.reduce(getattr, path, sys.modules[top])
    except (ImportError, AttributeError):
        return None


@dataclass
class Spelling:
    """Spells things, and keeps what the file needs for it.

    Attributes:
        location: what refusals show that know no line of their own.
        imports: lines.
        helpers: names of `HELPERS`.
        stand_ins: classes of the user's that the file has one of its own for, by name.
        fields: the attributes of those that are plain objects.
        taken: the names of the file's function, and of its parameters.
    """

    location: Any = None
    imports: set[str] = field(default_factory=lambda: {"import torch"})
    helpers: set[str] = field(default_factory=set)
    stand_ins: dict[str, type] = field(default_factory=dict)
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def helper(self, name: str) -> str:
        """A function that the file brings along, by the name that it has there."""
        self.helpers.add({"_bound": "_Unbound"}.get(name, name))
        return self._fresh(name)

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        return name

    def helper_texts(self) -> list[str]:
        """The text of each."""
        names = re.compile(rf"\b({'|'.join((*HELPERS, '_bound'))})\b")
        texts = (HELPERS[name].rstrip() for name in sorted(self.helpers))
        return [names.sub(lambda found: self._fresh(found[0]), text) for text in texts]

    def stand_in(self, kind: type) -> str:
        """A class of the user's by name: the file has one of its own for it, which looks alike.

        Raises:
            ExportError: another class of that name is there already.
        """
        known = self.stand_ins.setdefault(kind.__name__, kind)
        if known is not kind or kind.__name__ in HELPERS:
            message = f"two classes are named '{kind.__name__}', of which Python source can hold one"
            raise refuse("SG402", message, location=self.location)
        return kind.__name__

    def imported(self, module: str) -> str:
        """A module of the standard library."""
        self.imports.add(f"import {module}")
        return module

    def function(self, target: Any, location: Any = None) -> str:
        """A function by its public name.

        Raises:
            ExportError: it has none in torch or the standard library.
        """
        if target in NAMED:
            return self.helper(NAMED[target])
        known = _public().get(id(target))
        if known is not None:
            self.imports |= {known[1]} - {""}
            return known[0]
        if isinstance(target, torch._ops.OpOverload):
            return f"torch.ops.{target}"
        if isinstance(target, torch._ops.OpOverloadPacket):
            return f"torch.ops.{str(target).replace('::', '.')}"
        spelled = self._by_path(target)
        if spelled is None:
            name = getattr(target, "__qualname__", target)
            raise refuse("SG402", f"a file of torch alone cannot call '{name}'", location=location or self.location)
        return spelled

    def _by_path(self, target: Any) -> str | None:
        owner = getattr(target, "__objclass__", None)  # a method of the class torch.Tensor
        if owner is not None and issubclass(torch.Tensor, owner):
            return f"torch.Tensor.{target.__name__}"
        name = getattr(target, "__name__", "")
        if vars(torch).get(name) is target:  # one that torch's own modules call, such as `_pack_padded_sequence`
            return f"torch.{name}"
        module, name = getattr(target, "__module__", None) or "", getattr(target, "__qualname__", "")
        if not is_at_hand(module) or not all(part.isidentifier() for part in name.split(".")):
            return None
        parts = module.split(".")
        for count in range(len(parts), 0, -1):  # a package may have taken its module away, as `torch.optim` does
            package = ".".join(parts[:count])
            if _by_name(package, name) is target:
                self.imports |= set() if module == "builtins" else {f"import {package}"}
                return name if module == "builtins" else f"{package}.{name}"
        return None

    def constant(self, value: Any, location: Any = None) -> str:
        """An expression for an immutable object.

        Raises:
            ExportError: there is none.
        """
        if isinstance(value, enum.Enum):
            return self._member(value)
        if isinstance(value, _TORCH_VALUES):
            return str(value)
        if isinstance(value, torch.device):
            return f"torch.device({quoted(str(value))})"
        if isinstance(value, type) or callable(value):
            return self.function(value, location)
        if isinstance(value, range):
            return repr(value)
        if isinstance(value, torch.Size):
            return f"torch.Size({self.literal(list(value))})"
        if is_exactly(value, (set, frozenset)) and all(is_literal(v) for v in value):
            return f"{type(value).__name__}(({''.join(self.literal(v) + ', ' for v in value)}))"
        message = f"a file of torch alone cannot hold {_brief(value)}"
        raise refuse("SG402", message, location=location or self.location)

    def _member(self, member: enum.Enum) -> str:
        kind = type(member)
        named = self._by_path(kind) or self.stand_in(kind)
        if kind.__members__.get(str(member._name_)) is member:
            return f"{named}.{member._name_}"
        return f"{named}({self.literal(member._value_)})"  # several bits of a flag

    def literal(self, value: Any, location: Any = None) -> str:
        """A number, a text, or what is made of such."""
        if type(value) is str:
            return quoted(value)
        if type(value) is float and not math.isfinite(value):
            return f'float("{value}")'
        if is_exactly(value, (tuple, list)):
            items = [self.literal(each, location) for each in value]
            if type(value) is list:
                return f"[{', '.join(items)}]"
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if type(value) is dict:
            pairs = (f"{self.literal(k, location)}: {self.literal(v, location)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        return "..." if value is ... else repr(value) if is_literal(value) else self.constant(value, location)


def is_at_hand(module: str) -> bool:
    """Whether a module is torch's or the standard library's."""
    root = module.partition(".")[0]
    return root == "torch" or (root in sys.stdlib_module_names and root != "__main__")


_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(...))


def is_literal(value: Any) -> bool:
    """Whether a value is plain data, which Python writes out."""
    if is_exactly(value, (tuple, list)):
        return all(is_literal(each) for each in value)
    if type(value) is dict:
        return all(is_literal(each) for pair in value.items() for each in pair)
    return is_exactly(value, _ATOMS)


def quoted(text: str) -> str:
    """A text in double quotes, where that needs no escapes."""
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in text and "\\'" not in shown else shown


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text[:60]}"


BUILTINS = frozenset(vars(builtins))
