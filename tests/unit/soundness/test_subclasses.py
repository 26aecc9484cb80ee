"""Code that walks over all subclasses of a class, as registries do, where a metaclass is among what it comes to."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tests.unit.soundness.following import X, follows
from tests.unit.trace.agreement import N, P, agree


class Meta(type):
    """Asked for anything that it does not have, it answers."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return 1.0


class Base:
    known = 1.0

    def apply(self, x: Tensor) -> Tensor:
        return x + self.known


class Left(Base):
    known = 2.0


class Far(Left):
    known = 4.0


class Answering(Base, metaclass=Meta):
    pass


def found(kind: Any) -> list[Any]:
    waiting, subclasses = kind.__subclasses__(), []
    while waiting:
        subclass = waiting.pop()
        waiting += type.__subclasses__(subclass)
        subclasses.append(subclass)
    return subclasses


def test_subclasses() -> None:
    def over_all(x: Tensor) -> Any:
        for kind in found(Base):
            x = kind().apply(x)
        return x * len(found(Meta)) + Answering.missing

    agree(over_all, P, N)


def test_a_subclass_more() -> None:
    class Root:
        pass

    kept = []

    def more() -> None:
        kept.append(type("More", (Root,), {}))

    follows(lambda x: x + len(found(Root)), more, args=(X,))
