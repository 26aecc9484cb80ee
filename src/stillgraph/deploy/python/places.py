"""Where a written file keeps what is not an argument: weights, buffers, numbers that a call reads and writes."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.signature import place_key, written_place
from stillgraph.deploy.python.calls import Call, is_given
from stillgraph.deploy.python.spelling import Spelling, is_literal
from stillgraph.program.effects import Effect, ExtendContents, SetContents, SetItem
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Cell, Global, Held, Item, Slot, Source
from stillgraph.runtime.native.function_writer import read_source

_OF_CONTENTS = (SetContents, ExtendContents, SetItem)
_SMALL = 16  # elements of a tensor that is written out


@dataclass
class Places:
    """Expressions for sources, and the attributes that the file's own module has.

    Attributes:
        lines: what makes the attributes, in ``__init__``.
        base, begin: the class that the file's own derives from, and the arguments of its ``__init__``.
        weights: the tensors of the weights file, by their path.
        trainable: whether parameters take gradients.
    """

    call: Call
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    spelling: Spelling
    trainable: bool
    location: Any
    lines: list[str] = field(default_factory=list)
    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    base: str = "nn.Module"
    begin: str = ""
    _own: dict[Any, str] = field(default_factory=dict)  # by `place_key`: where the file's module has it
    _paths: set[str] = field(default_factory=set)  # of what is there
    _members: dict[int, str] = field(default_factory=dict)  # of enumerations that are arguments, by identity
    _known: dict[int, str] = field(default_factory=dict)  # tensors and modules by identity: where they are

    @property
    def is_class(self) -> bool:
        """Whether the file has a module: a function would have nowhere to keep things."""
        return bool(self.call.receiver or self.lines)

    # ---- reading
    def text(self, source: Source) -> str:
        """The expression that reads a source.

        Raises:
            ExportError: the file has nothing there.
        """
        own = self._own.get(place_key(source))
        if own is not None:
            return own
        match source:
            case Argument(key=key):
                return "self" if self.call.receiver and key == 0 else self.call.texts[key]
            case Attribute(base=base, name=name) | Slot(base=base, name=name):
                return self._attribute(self.text(base), name)
            case Item(base=base, key=key) if self.holds(base):
                return f"{self.text(base)}[{self.spelling.literal(key)}]"
        raise refuse("SG402", f"Python source has nothing in the place of '{source}'", location=self.location)

    def holds(self, source: Source) -> bool:
        """Whether a call of the file has what is found at a source: it keeps no more of the objects than it needs."""
        if is_given(source, self.call.receiver) or place_key(source) in self._own:
            return True
        return isinstance(source, (Attribute, Slot)) and self._is_path(source) and self.text(source) in self._paths

    def _attribute(self, base: str, name: str) -> str:
        if f"{base}[{name}]" in self._paths:
            return f"{base}[{name}]"
        return f"{base}.{name}" if name.isidentifier() else f"getattr({base}, {self.spelling.literal(name)})"

    def read(self, source: Source) -> Any:
        """What the example call has at a source."""
        return read_source(source, self.args, self.kwargs)

    def passed(self, member: enum.Enum) -> str | None:
        """The argument in which a call has a member of an enumeration: it may be of the user's own class."""
        return self._members.get(id(member))

    def _note_members(self, program: Program) -> None:
        for guard in program.guards:
            source = getattr(guard, "source", None)
            if isinstance(source, Argument) and is_given(source, self.call.receiver):
                value = self.read(source)
                if isinstance(value, enum.Enum):
                    self._members.setdefault(id(value), self.text(source))

    # ---- the file's module
    def build(self, program: Program) -> None:
        """Make an attribute of everything that the program reads or writes and no caller passes."""
        if self.call.receiver and isinstance(self.args[0], nn.Module):
            self._paths.add("self")
            made = _empty_module(self.args[0])
            if made != "nn.Module()":
                self.base, self.begin = "nn.ModuleList", made.removeprefix("nn.ModuleList(").removesuffix(")")
            self._module("self", self.args[0])
        self._note_members(program)
        effects = [*program.effects, *(each for group in program.midway for each in group)]
        for effect in effects:
            if isinstance(effect, _OF_CONTENTS):  # before what is read of it
                self._effect(effect)
        for item in program.inputs:
            if not is_given(item.source, self.call.receiver):
                self._place(item.source, item.name)
        for effect in effects:
            self._effect(effect)

    def _module(self, path: str, module: nn.Module) -> None:
        """A module's tensors, and those of the modules in it."""
        self._known[id(module)] = path
        children = {name: child for name, child in module._modules.items() if child is not None}
        listed = bool(children) and list(children) == [str(i) for i in range(len(children))]
        for name, tensor in [*module._parameters.items(), *module._buffers.items()]:
            if tensor is not None:
                persistent = name in module._parameters or name not in module._non_persistent_buffers_set
                self._tensor(path, name, tensor, persistent)
        for name, child in children.items():
            place = f"{path}[{name}]" if listed else self._attribute(path, name)
            if listed:
                self._paths.add(place)
            known = self._known.get(id(child))
            if known is not None and not listed:
                self._assign(path, name, known)
            elif listed and known is not None:
                self.lines.append(f"{place} = {known}")
            elif _has_tensors(child):
                made = _empty_module(child)
                if not listed:
                    self._assign(path, name, made)
                elif made != "nn.Module()":
                    self.lines.append(f"{place} = {made}")
                self._module(place, child)

    def _assign(self, owner: str, name: str, value: str) -> None:
        if name.isidentifier():
            self.lines.append(f"{owner}.{name} = {value}")
        else:
            self.lines.append(f"{owner}.add_module({self.spelling.literal(name)}, {value})")
        self._paths.add(self._attribute(owner, name))

    def _tensor(self, owner: str, name: str, tensor: torch.Tensor, persistent: bool, small: bool = False) -> None:
        """A parameter or buffer."""
        if type(tensor) not in (torch.Tensor, nn.Parameter, nn.Buffer) or tensor.layout is not torch.strided:
            kind = type(tensor).__name__ if tensor.layout is torch.strided else str(tensor.layout)
            raise refuse("SG402", f"Python source cannot hold '{name}', a {kind}", location=self.location)
        path = self._attribute(owner, name)
        known = self._known.get(id(tensor))
        value = known or self._made(path, tensor, small)
        self._known.setdefault(id(tensor), path)
        self._paths.add(path)
        if isinstance(tensor, nn.Parameter) or tensor.requires_grad:
            grad = "" if self.trainable and tensor.requires_grad else ", requires_grad=False"
            value = value if known else f"nn.Parameter({value}{grad})"
            if name.isidentifier():
                self.lines.append(f"{path} = {value}")
            else:
                self.lines.append(f"{owner}.register_parameter({self.spelling.literal(name)}, {value})")
        else:
            extra = "" if persistent else ", persistent=False"
            self.lines.append(f"{owner}.register_buffer({self.spelling.literal(name)}, {value}{extra})")

    def _made(self, path: str, tensor: torch.Tensor, small: bool) -> str:
        dtype = "" if tensor.dtype == torch.float32 else f", dtype={tensor.dtype}"
        device = "" if tensor.device.type == "cpu" else f', device="{tensor.device}"'
        if small and tensor.numel() <= _SMALL and tensor.dtype not in (torch.bfloat16, torch.float16):
            return f"torch.tensor({self.spelling.literal(tensor.detach().tolist())}{dtype}{device})"
        self.weights[key_of(path)] = tensor.detach().clone()
        return f"torch.empty({', '.join(map(str, tensor.shape)) or '()'}{dtype}{device})"

    # ---- single places
    def _place(self, source: Source, name: str) -> None:
        """An attribute for what is found at a source, under the same path where there is one."""
        if place_key(source) in self._own:
            return
        if isinstance(source, Item) and self.holds(source.base):
            self._own[place_key(source)] = f"{self.text(source.base)}[{self.spelling.literal(source.key)}]"
            return
        value = self.read(source)
        if isinstance(source, (Attribute, Slot)) and self._is_path(source.base):
            owner, name = self._owner(source.base), source.name
            if self._attribute(owner, name) in self._paths:
                first = self._known.get(id(value))
                if isinstance(value, nn.Parameter) and first is not None:  # tied: it is known by its first name
                    self._own[place_key(source)] = first
                return
        elif isinstance(source, (Cell, Global, Held, Item, Attribute, Slot)):
            owner, name = "self", self._fresh(name)
            self._own[place_key(source)] = f"self.{name}"
        else:
            raise refuse("SG402", f"Python source has nothing in the place of '{source}'", location=self.location)
        if isinstance(value, torch.Tensor):
            self._tensor(owner, name, value, persistent=False, small=True)
        else:
            self._plain(owner, name, value, source)

    def _plain(self, owner: str, name: str, value: Any, source: Source) -> None:
        if not is_literal(value) and not isinstance(value, enum.Enum):
            said = f"Python source cannot hold '{source}', a {type(value).__name__}"
            raise refuse("SG402", said, location=self.location)
        self.lines.append(f"{owner}.{name} = {self.spelling.literal(value)}")
        self._paths.add(f"{owner}.{name}")

    def _is_path(self, source: Source) -> bool:
        """Whether a source is the receiver, or an attribute of it."""
        while isinstance(source, (Attribute, Slot)):
            if not source.name.isidentifier() and f"{self.text(source)}" not in self._paths:
                return False
            source = source.base
        return bool(self.call.receiver) and isinstance(source, Argument) and source.key == 0

    def _owner(self, source: Source) -> str:
        """The module at a path, made where it is not there yet."""
        text = self.text(source)
        if text != "self" and text not in self._paths and isinstance(source, (Attribute, Slot)):
            base = self._owner(source.base)
            self._assign(base, source.name, "nn.Module()")
        return text

    def _fresh(self, name: str) -> str:
        while f"self.{name}" in self._paths or hasattr(nn.Module, name):
            name += "_"
        return name

    def _effect(self, effect: Effect) -> None:
        """A place for what an effect writes, holding what it holds now."""
        place = written_place(effect)
        if place is None and isinstance(effect, _OF_CONTENTS):
            place = effect.target
        if place is None or is_given(place, self.call.receiver):
            return
        try:
            value = self.read(place)
        except Exception:  # it is not there before the first call
            value = None
        if isinstance(place, (Attribute, Slot)) and self._is_path(place.base):
            path = f"{self._owner(place.base)}.{place.name}"
            if path not in self._paths:
                held = is_literal(value) or isinstance(value, enum.Enum)
                written = written_place(effect) is not None and not held
                self._plain(path.rpartition(".")[0], place.name, None if written else value, place)
        elif place_key(place) not in self._own:
            self._place(place, _name_of(place))


def _name_of(place: Source) -> str:
    match place:
        case Cell(name=name) | Held(name=name) | Global(name=name) | Attribute(name=name) | Slot(name=name):
            return name.rpartition(".")[2] if name.rpartition(".")[2].isidentifier() else "state"
    return "state"


def is_own(path: str) -> bool:
    """Whether an expression reads something of the file's own module."""
    return re.match(r"(getattr\()*self[.\[,]", path) is not None


def key_of(path: str) -> str:
    """The name that a module's ``state_dict`` has for what is found by an expression."""
    path = re.sub(r"\[(\d+)\]", r".\1", path)
    while "getattr(" in path:
        path = re.sub(r"getattr\(([^()]*), ['\"]([^'\"]*)['\"]\)", r"\1.\2", path)
    return path.removeprefix("self.")


def _has_tensors(module: nn.Module) -> bool:
    return any(True for _ in (*module.parameters(), *module.buffers()))


def _empty_module(module: nn.Module) -> str:
    """A module with the same children, where these have numbers for names."""
    names = [name for name, child in module._modules.items() if child is not None]
    if not names or names != [str(i) for i in range(len(names))]:
        return "nn.Module()"
    return f"nn.ModuleList(nn.Module() for _ in range({len(names)}))"
