"""Writing a Python function that reads what a call gives it, each value once; and reading such a value at once."""

from __future__ import annotations

import collections
import keyword
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stillgraph.program.sources import (
    Argument,
    Attribute,
    Called,
    Cell,
    Element,
    Global,
    Held,
    Item,
    Memory,
    Slot,
    Source,
    Upcoming,
)
from stillgraph.program.upcoming import LookAhead


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
            case Attribute(base=base, name="__dict__"):
                owner = self.read(base)
                return self.local(("__dict__", owner), f"{owner}.__dict__")
            case Attribute(base=base, name=name):
                owner = self.read(base)
                return self.local(source, f"{owner}.{name}" if is_name(name) else f"getattr({owner}, {name!r})")
            case Item(base=base, key=key, kind=None):
                return self.local(source, f"{self.read(base)}[{self.literal(key)}]")
            case Item(base=base):
                return self.local(source, f"{self.constant(source.of)}({self.read(base)})")
            case Slot(base=base, table=table, name=name):
                return self.local(source, f"{self._table(base, table)}[{name!r}]")
            case Global(module=module, name=name):
                names = self.local((Global, module), f"modules[{module!r}].__dict__")
                return self.local(source, f"{names}[{name!r}]")
            case Cell(cell=cell):
                return self.local(source, f"{self.constant(cell)}.cell_contents")
            case Held(value=value):
                return self.constant(value)
            case Called(base=base):
                return self.local(source, f"{self.read(base)}()")
            case Memory(base=base):
                return self.local(source, f"{self.constant(Memory.of)}({self.read(base)})")
            case Element(base=base, position=position):
                return self.local(source, f"[*{self.read(base)}][{position}]")
            case Upcoming(base=base, position=position):
                iterator = self.read(base)
                ahead = self.local((Upcoming, base), f"{self.constant(LookAhead)}({iterator})")
                return self.local(source, f"{ahead}[{position}]")

    def _table(self, base: Source, table: str) -> str:
        owner = self.read(base)
        # Instance dictionaries are read once and subscripted: on a module, each attribute costs three times as much.
        names = self.local(("__dict__", owner), f"{owner}.__dict__")
        return names if table == "__dict__" else self.local((table, owner), f"{names}[{table!r}]")

    def function(self, header: str) -> Callable[..., Any]:
        """Compile what was written; the text is the function's ``__source__``."""
        return self._compiled(header, _with_registers(_inlined(self.lines)))

    def prepared(self, header: str, then: str) -> Callable[..., Any]:
        """As `function`, in two steps: the function reads what there is to read, and gives one that does the rest.

        Args:
            header: of the function that is compiled.
            then: of the one that it gives.
        """
        reads = [line for line in self.lines if _ASSIGNMENT.fullmatch(line)]
        rest = [line for line in self.lines if not _ASSIGNMENT.fullmatch(line)]
        lines = [*reads, f"def {then}:", *(f"    {line}" for line in rest), f"return {then.partition('(')[0]}"]
        return self._compiled(header, [line.replace(_MARK, "_") for line in lines])

    def _compiled(self, header: str, lines: Sequence[str]) -> Callable[..., Any]:
        text = f"def {header}:\n" + "".join(f"    {line}\n" for line in lines)
        name = header.partition("(")[0]
        exec(compile(text, f"<stillgraph {name}>", "exec"), self.namespace)
        function: Callable[..., Any] = self.namespace[name]
        function.__source__ = text  # type: ignore[attr-defined]  # for people to read
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
        case Item(base=base):
            return source.of(read_source(base, args, kwargs))
        case Slot(base=base, table=table, name=name):
            names = read_source(base, args, kwargs).__dict__
            return names[name] if table == "__dict__" else names[table][name]
        case Global(module=module, name=name):
            return sys.modules[module].__dict__[name]
        case Cell(cell=cell):
            return cell.cell_contents
        case Held(value=value):
            return value
        case Called(base=base):
            return read_source(base, args, kwargs)()
        case Memory(base=base):
            return Memory.of(read_source(base, args, kwargs))
        case Element(base=base, position=position):
            return [*read_source(base, args, kwargs)][position]
        case Upcoming(base=base, position=position):
            return LookAhead(read_source(base, args, kwargs))[position]
