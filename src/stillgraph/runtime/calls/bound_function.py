"""A static function as a method of one object."""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from stillgraph.runtime.native.tracebacks import without_first

if TYPE_CHECKING:
    from stillgraph.runtime.calls.static_function import StaticFunction

P = ParamSpec("P")
R = TypeVar("R")

_SHARED_NAMES = frozenset({"__name__", "__qualname__", "__wrapped__"})


_NOT_SCRIPTED = (
    "a static method has no __globals__. torch.jit.script asks for them, and takes the original: script the module "
    "before it is made static, or behind `del module.forward`, which makes it plain again"
)


# A static function as a method of one object; its other attributes are the static function's. (No docstring: an
# instance's is the user's.)
class BoundStaticFunction(Generic[P, R]):
    __slots__ = ("__func__", "__self__", "__weakref__")

    def __init__(self, function: StaticFunction[P, R], receiver: Any) -> None:
        self.__func__ = function
        self.__self__ = receiver

    def __stillgraph_behind__(self) -> Any:
        return types.MethodType(self.__func__.original, self.__self__)

    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        try:
            return self.__func__(self.__self__, *args, **kwargs)
        except BaseException as error:
            without_first(error)
            raise

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(types.MethodType(self.__func__.original, self.__self__))

    @property
    def __code__(self) -> types.CodeType:
        """The original's: `torch.export` reads it to name the inputs of a module."""
        return self.__func__.original.__code__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _SHARED_NAMES:  # what copying and pickling ask for is our own affair
            raise AttributeError(_NOT_SCRIPTED if name == "__globals__" else name)
        taking = self.__func__.takes_call.get(name)
        return getattr(self.__func__, name) if taking is None else self._given_receiver(taking)

    def _given_receiver(self, name: str) -> Any:
        return functools.partial(getattr(self.__func__, name), self.__self__)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *dir(self.__func__)})

    __doc__ = property(lambda self: self.__func__.__doc__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundStaticFunction):
            return NotImplemented
        return self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        both = (getattr(self, name, None) for name in BoundStaticFunction.__slots__[:2])  # not set: as Dynamo makes one
        return hash(tuple([id(each) for each in both]))

    def __reduce__(self) -> Any:
        return type(self), (self.__func__, self.__self__)  # a copy of an object has methods of its own

    def __repr__(self) -> str:
        return f"<bound {self.__func__!r} of {self.__self__!r}>"
