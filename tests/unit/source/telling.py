"""What the functions that are rewritten use: it tells what is done to it, and when."""

from __future__ import annotations

import contextlib
import linecache
from typing import Any


def note(value: Any, *more: Any) -> Any:
    print(value, *more)
    return value


class Thing:
    """Attributes and items, with a word about each access."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        print("set", name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        print("del", name)
        super().__delattr__(name)

    def __getitem__(self, key: object) -> object:
        print("get", key)
        return self.__dict__.get(str(key), 0)

    def __setitem__(self, key: object, value: object) -> None:
        print("item", key, value)
        self.__dict__[str(key)] = value

    def __delitem__(self, key: object) -> None:
        print("del item", key)

    def __repr__(self) -> str:
        return f"Thing({self.__dict__})"


class manager(contextlib.AbstractContextManager):
    def __init__(self, name: str, *swallows: type[BaseException], breaks: bool = False) -> None:
        self.name, self.swallows, self.breaks = name, swallows, breaks

    def __enter__(self) -> str:
        print("enter", self.name)
        return self.name

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> bool:
        print("exit", self.name, kind and kind.__name__)
        if self.breaks:
            raise KeyError(self.name)
        return kind is not None and issubclass(kind, self.swallows)


def define(source: str, name: str | None = None) -> Any:
    file = f"<defined {hash(source)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace: dict[str, Any] = {"note": note, "__name__": __name__}
    exec(compile(source, file, "exec"), namespace)
    return namespace[name or source.split("def ")[1].split("(")[0]]
