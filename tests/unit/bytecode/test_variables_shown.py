"""``locals()`` and the like between programs: they show all variables, as they are."""

from __future__ import annotations

from typing import Any

from tests.unit.bytecode.segmented import CALLS, Record, agrees


def test_variables_behind_a_step() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            count, items = 3, [1, 2]
            print("a step", x.sum().item())
            record({name: value for name, value in sorted(locals().items()) if name != "record"})
            y = x * eval("count + len(items)")
            record(sorted(vars()))
            print("{count} of {items}".format(**locals()))
            return y, "items" in dir()

        return f

    agrees(make, *CALLS)


def test_a_variable_of_an_inner_function() -> None:
    """One that has no value yet, or none any more, is not shown."""

    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            def inner() -> Any:
                return d

            record(sorted(locals()))
            d = x.sum().item()
            record((locals()["d"], inner()))
            del d
            record(sorted(locals()))
            d = 2
            return x * inner()

        return f

    agrees(make, *CALLS)


def test_of_a_function_that_is_called() -> None:
    def make(record: Record) -> Any:
        def inner(x: Any, *, scale: int) -> Any:
            shift = 1
            record(sorted(locals().items(), key=str)[1:])
            return x * scale + shift

        def f(x: Any) -> Any:
            scale = 3
            print("a step", x.sum().item())
            return inner(x, scale=scale)

        return f

    agrees(make, *CALLS)
