"""Calling a loaded program like the original: its parameters by name, its defaults, and what it was saved for."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stillgraph.deploy.description.constants import decode_constant, encode_constant

Json = Any
Key = int | str


class _Unknown:
    """A default that a file has no form for, or whose class this process has not loaded."""

    def __repr__(self) -> str:
        return "..."


_UNKNOWN = _Unknown()


@dataclass(frozen=True)
class _Default:
    """A default as a file has it; the class of a member may be loaded after the file."""

    data: Json

    def value(self) -> Any:
        """What it is, or `_UNKNOWN` where this process does not have it."""
        value = _decoded(self.data)
        return value if self.is_of(value) else _UNKNOWN

    def is_of(self, value: Any) -> bool:
        """Whether a caller passes this very default."""
        return repr(_encoded(value)) == repr(self.data)  # -0.0 is not 0.0, and True is not 1

    def __repr__(self) -> str:
        return repr(self.value())


def _encoded(value: Any) -> Json | None:
    """A default that nobody can change, as JSON; None where there is no form for it."""
    if type(value) is not tuple:
        return encode_constant(value)
    parts = [_encoded(part) for part in value]
    return None if None in parts else {"tuple": parts}


def _decoded(data: Json) -> Any:
    return tuple(map(_decoded, data["tuple"])) if "tuple" in data else decode_constant(data)


def encode_parameters(function: Any) -> Json:
    """The parameters of a callable as it is called, so without a receiver; None where Python does not tell."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    return [_encode_parameter(parameter) for parameter in parameters.values()]


def _encode_parameter(parameter: inspect.Parameter) -> Json:
    given = [] if parameter.default is parameter.empty else [_encoded(parameter.default), "coded"]
    return [parameter.name, parameter.kind.value, given]


def _decode_parameter(data: Json) -> inspect.Parameter:
    name, kind, given = data
    default: Any = inspect.Parameter.empty
    if len(given) == 1:  # a file from before defaults were coded
        default = _Default({"constant": given[0]})
    elif given:
        default = _UNKNOWN if given[0] is None else _Default(given[0])
    return inspect.Parameter(name, inspect._ParameterKind(kind), default=default)


@dataclass(frozen=True)
class Binding:
    """How the arguments of a call find the places that the example call had them in.

    Attributes:
        name: of the program, for messages.
        signature: of the original without its receiver, or None where it is not known.
        receiver: 1 where place 0 is the receiver's.
        given: the arguments of the example call: positions, the receiver's counted, and keywords.
    """

    name: str
    signature: inspect.Signature | None
    receiver: int
    given: tuple[Key, ...]

    def place(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments where the example call had them; the receiver's place holds None.

        Raises:
            TypeError: the original would not take them, or an argument is given or left out unlike in the example call.
        """
        values = self._by_key(args, kwargs) if self.signature is None else self._by_name(args, kwargs)
        missing = [key for key in self.given if key not in values]
        if missing:
            raise TypeError(f"{self.name}: the argument {self.shown(missing[0])} is missing; it was saved with one")
        positions = [None] * self.receiver + [values[key] for key in self.given if isinstance(key, int)]
        return tuple(positions), {key: values[key] for key in self.given if isinstance(key, str)}

    def _by_key(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[Key, Any]:
        values: dict[Key, Any] = dict(enumerate(args, self.receiver))
        values.update(kwargs)
        for key in values:
            if key not in self.given:
                raise TypeError(f"{self.name} was saved without the argument {self.shown(key)}")
        return values

    def _by_name(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[Key, Any]:
        assert self.signature is not None
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        passed = dict(bound.arguments)
        bound.apply_defaults()
        values: dict[Key, Any] = {}
        for key, name, value in self._arguments(bound):
            if key in self.given:
                value = value.value() if isinstance(value, _Default) else value
                if value is not _UNKNOWN:
                    values[key] = value
            elif name not in self.signature.parameters:  # one of *args or **kwargs
                raise TypeError(f"{self.name} was saved without the argument {self.shown(key)}")
            elif name in passed and not self._is_default(name, value):
                raise TypeError(f"{self.name} was saved without the argument {name}: it has its default value")
        return values

    def _arguments(self, bound: inspect.BoundArguments) -> list[tuple[Key, str, Any]]:
        """Every argument: where the example call would have it, the parameter's name, the value."""
        assert self.signature is not None
        found: list[tuple[Key, str, Any]] = []
        position = self.receiver
        for name, parameter in self.signature.parameters.items():
            value = bound.arguments[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                found += [(position + index, "", item) for index, item in enumerate(value)]
            elif parameter.kind is parameter.VAR_KEYWORD:
                found += [(key, key, item) for key, item in value.items()]
            else:
                named = name in self.given and parameter.kind is not parameter.POSITIONAL_ONLY
                by_keyword = named or parameter.kind is parameter.KEYWORD_ONLY
                found.append((name if by_keyword else position, name, value))
                position += 1
        return found

    def _is_default(self, name: str, value: Any) -> bool:
        assert self.signature is not None
        default = self.signature.parameters[name].default
        return isinstance(default, _Default) and default.is_of(value)

    def shown(self, key: Key) -> str:
        """An argument's place as its name, where that is known."""
        if isinstance(key, str):
            return key
        known = [] if self.signature is None else self.signature.parameters.values()
        names = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        index = key - self.receiver
        return names[index] if index < len(names) else f"number {index + 1}"


def binding_of(name: str, parameters: Json, receiver: int, given: Sequence[Key]) -> Binding:
    """A binding as it was saved: see `encode_parameters`."""
    signature = None if parameters is None else inspect.Signature([_decode_parameter(data) for data in parameters])
    return Binding(name, signature, receiver, tuple(given))
