"""What stands for an iterator or a range of Python's, of values that only the run knows."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.code.frames import here


class StandIn:
    """An object in the place of one of Python's.

    A class that is made with a ``kind`` stands for that: it has its name, which Python's errors tell. What Python code
    could only see of the object itself, its text and its parts, is refused.
    """

    __slots__ = ()

    stands_for: ClassVar[type | None] = None

    def __init_subclass__(cls, kind: type | None = None) -> None:
        if kind is not None:
            cls.stands_for = kind
            cls.__name__ = cls.__qualname__ = kind.__name__
            cls.__doc__ = kind.__doc__

    def refuse(self, *args: Any) -> NoReturn:
        """Refuse what only Python's own object can answer.

        Raises:
            CaptureError: always.
        """
        name = "an iterator" if self.stands_for is None else f"a {self.stands_for.__name__}"
        message = f"{name} over values that only the run knows is looked at"
        raise refuse("SG206", message, location=here(), hint="Make a list of it first, with list(...).")

    __repr__ = __copy__ = __deepcopy__ = __reduce_ex__ = __reduce__ = refuse


def kind_of_stand_in(value: Any) -> type | None:
    """The type of Python's for which a value stands; None for all that is no `StandIn`.

    Raises:
        CaptureError: it stands for one of several.
    """
    if not issubclass(type(value), StandIn):
        return None
    if type(value).stands_for is None:
        value.refuse()
    kind: type | None = type(value).stands_for
    return kind
