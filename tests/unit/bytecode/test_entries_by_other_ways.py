"""Containers of which code takes single entries, and to which C code, joins or other names come as well."""

from __future__ import annotations

import collections
import copy
import dataclasses
import json
import operator
import pickle
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.bytecode.segmented import observed, to_partial

Made = tuple[Callable[[Tensor], Any], Callable[[], object]]
MADE: dict[str, Callable[[], Made]] = {}
C: dict[str, Any] = {}


def made(make: Callable[[], Made]) -> Callable[[], Made]:
    MADE[make.__name__] = make
    return make


class Held:
    __match_args__ = ("config",)

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def _table() -> dict[str, Any]:
    return {"k": 1, "o": 2, "inner": {"k": 1.0, "o": 2.0}}


# ---- calls with stars
@made
def spread_list() -> Made:
    values = ["one", "two"]

    def join(a: str, b: str = "-", c: str = "-") -> str:
        return a + b + c

    return lambda x: (x, join(*values)), lambda: values.append("three")


@made
def spread_numbers() -> Made:
    values = [2, 3]

    def both(a: int, b: int) -> int:
        return a * 10 + b

    return lambda x: x + both(*values), lambda: values.__setitem__(0, 8)


@made
def spread_of_an_attribute() -> Made:
    held = Held(args=[2, 3])

    def both(a: int, b: int) -> int:
        return a * 10 + b

    return lambda x: x + both(*held.args), lambda: held.args.reverse()


@made
def spread_of_dicts() -> Made:
    values = [{"k": 1.0}, {"k": 2.0}]

    def first(a: dict[str, float], b: dict[str, float]) -> float:
        return a["k"]

    return lambda x: x * first(*values), lambda: values.reverse()


@made
def spread_over_a_step() -> Made:
    values = [2, 3]

    def both(a: int, b: int) -> int:
        return a * 10 + b

    def function(x: Tensor) -> Any:
        mine = list(values)
        print("between")
        return x + both(*mine)

    return function, lambda: values.reverse()


# ---- joined on two paths
@made
def joined_entries() -> Made:
    tables = {"a": {"s": 2.0}, "b": {"s": 3.0}}

    def function(x: Tensor) -> Any:
        table = tables["a"] if x.sum() > 0 else tables["b"]
        return x * table["s"]

    return function, lambda: tables["a"].update(s=20.0)


@made
def joined_names() -> Made:
    a, b = {"s": 2.0}, {"s": 3.0}

    def function(x: Tensor) -> Any:
        table = a
        if x.sum() < 0:
            table = b
        return x * table["s"]

    return function, lambda: a.update(s=20.0)


@made
def joined_attributes() -> Made:
    held = Held(positive={"s": [2.0]}, negative={"s": [3.0]})

    def function(x: Tensor) -> Any:
        table = held.positive if x.mean() > 0 else held.negative
        return x * table["s"][0]

    return function, lambda: held.positive["s"].__setitem__(0, 20.0)


@made
def swapped_in_a_loop() -> Made:
    tables = [{"s": 2.0}, {"s": 3.0}]

    def function(x: Tensor) -> Any:
        table = tables[0]
        while x.sum() < 10:
            x = x + 1
            table = tables[1]
        return x * table["s"]

    return function, lambda: tables[1].update(s=20.0)


# ---- compared, shown, copied by C code
@made
def dataclasses_compared() -> Made:
    kind = dataclasses.make_dataclass("Kind", [("config", dict)])
    a, b = kind(_table()), kind(_table())
    return lambda x: (x, a.config["k"], a == b), lambda: a.config.update(o=3)


@made
def namespaces_compared() -> Made:
    a, b = types.SimpleNamespace(c=_table()), types.SimpleNamespace(c=_table())
    return lambda x: (x, a.c["k"], a == b, a in [b]), lambda: a.c.update(o=3)


@made
def namespace_shown() -> Made:
    a = types.SimpleNamespace(c=_table())
    return lambda x: (x, a.c["k"], f"{a}", str(a)), lambda: a.c.update(o=3)


@made
def copied_in_a_list() -> Made:
    a = Held(config=_table())
    return lambda x: (x, a.config["k"], copy.deepcopy([a])[0].config["o"]), lambda: a.config.update(o=3)


@made
def copied_around() -> Made:
    a = Held(config=_table())
    around = Held(inner=a)
    return lambda x: (x, a.config["k"], copy.deepcopy(around).inner.config["o"]), lambda: a.config.update(o=3)


@made
def dumped() -> Made:
    a = Held(config=_table())
    return lambda x: (x, a.config["k"], json.dumps([a], default=vars)), lambda: a.config.update(o=3)


@made
def pickled() -> Made:
    a = Held(config=_table())
    return lambda x: (x, a.config["k"], len(pickle.dumps([a]))), lambda: a.config.update(o="long " * 20)


@made
def formatted() -> Made:
    a = Held(config=_table())
    return lambda x: (x, a.config["k"], "{.config[o]}".format(a)), lambda: a.config.update(o=3)  # noqa: UP032  # `format` itself reads


@made
def attribute_by_map() -> Made:
    a = Held(config=_table())
    return lambda x: (x, a.config["k"], json.dumps([*map(getattr, [a], ["config"])])), lambda: a.config.update(o=3)


@made
def global_by_map() -> Made:
    C.update(_table())
    return lambda x: (x, C["k"], json.dumps([*map(globals().get, ["C"])])), lambda: C.update(o=3)


@made
def global_by_getter() -> Made:
    C.update(_table())
    both = operator.itemgetter("C", "C")

    def function(x: Tensor) -> Any:
        return x, C["k"], json.dumps(both(globals()))

    alone = {"C": C, "json": json}  # those of this module lead to all that the process has imported
    return types.FunctionType(function.__code__, alone, closure=function.__closure__), lambda: C.update(o=3)


@made
def by_a_cell() -> Made:
    table = _table()

    def inner() -> Any:
        return table["k"]

    def function(x: Tensor) -> Any:
        return x, inner(), json.dumps([*map(operator.attrgetter("cell_contents"), inner.__closure__ or ())])

    return function, lambda: table.update(o=3)


# ---- views, and the variables themselves
@made
def below_a_proxy() -> Made:
    proxy = types.MappingProxyType({"inner": {"k": 1, "o": 2}})
    return lambda x: (x, proxy["inner"]["k"], json.dumps(dict(proxy))), lambda: proxy["inner"].update(o=3)


@made
def beside_a_proxy() -> Made:
    table = _table()
    proxy = types.MappingProxyType(table)
    return lambda x: (x, table["inner"]["k"], json.dumps([*proxy.values()])), lambda: table["inner"].update(o=3)


@made
def all_variables() -> Made:
    table = _table()

    def function(x: Tensor) -> Any:
        mine = table
        del x
        return mine, json.dumps(locals())

    return lambda x: function(x)[1], lambda: table.update(k=2)


@made
def variables_of_a_helper() -> Made:
    table = _table()

    def helper(config: Any) -> str:
        return "{config[o]}".format(**locals())

    return lambda x: (x, helper(table["inner"])), lambda: table["inner"].update(o=3.0)


# ---- statements
@made
def matched() -> Made:
    held = Held(config={"k": "v"})

    def function(x: Tensor) -> Any:
        match held:
            case Held({"k": "v"}):
                return x, "v"
            case Held({"k": other}):
                return x, other
        return x, None

    return function, lambda: held.config.update(k="changed")


@made
def counted() -> Made:
    counter = collections.Counter(a=1, b=2)
    held = Held(config={"counter": counter, "k": 1})
    return lambda x: (x, held.config["k"], held.config["counter"].most_common(1)), lambda: counter.update(a=5)


@pytest.mark.parametrize("name", MADE)
def test_what_has_changed_is_seen(name: str) -> None:
    C.clear()
    function, change = MADE[name]()
    static = to_partial(function)
    for turn in range(4):
        for x in (torch.ones(2), -torch.ones(2)):
            wanted, found = observed(function, (x,)), observed(static, (x,))
            assert repr((found.value, found.error, found.printed)) == repr((wanted.value, wanted.error, wanted.printed))
        if turn == 1:
            change()
