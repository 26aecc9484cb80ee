"""Containers from before the call, of which code reads single entries: the program depends on these alone."""

from __future__ import annotations

import collections
import copy
import functools
import json
import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from tests.sampling import few, only
from tests.unit.bytecode.segmented import observed, to_partial

X = torch.arange(3.0)
CONFIG: dict[str, Any] = {}
ROWS: list[dict[str, Any]] = []
PAIR: tuple[dict[str, Any], int] = ({}, 0)


class Kept:
    table: ClassVar[dict[str, Any]] = {"kind": "a", "other": "b"}

    def __init__(self) -> None:
        self.config: dict[str, Any] = {"kind": "a", "other": "b", "inner": {"scale": "two", "name": "n"}}


KEPT = Kept()
DUMPS = functools.partial(json.dumps, CONFIG)


def _fill() -> None:
    CONFIG.clear()
    CONFIG.update(kind="a", other="b", inner={"scale": "two", "name": "n"}, more=["x", "y"])
    ROWS[:] = [{"kind": f"k{n}", "values": [f"v{n}", "w"]} for n in range(12)]
    PAIR[0].clear()
    PAIR[0].update(kind="a", other="b")
    Kept.table = {"kind": "a", "other": "b"}
    KEPT.config = {"kind": "a", "other": "b", "inner": {"scale": "two", "name": "n"}}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    _fill()
    yield
    _fill()


def _told(x: Tensor, *said: Any) -> Any:
    """What a program gives has to tell which texts it was made for."""
    return x + sum(len(str(each)) for each in said), said


def entry(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"])


def entry_behind_a_step(x: Tensor) -> Any:
    print(x.sum().item())
    return _told(x, CONFIG["kind"])


def inner(x: Tensor) -> Any:
    return _told(x, CONFIG["inner"]["scale"])


def by_variable(x: Tensor) -> Any:
    table = CONFIG["inner"]
    print("between")
    return _told(x, table["scale"], CONFIG["kind"])


def of_a_row(x: Tensor) -> Any:
    return _told(x, ROWS[3]["values"][0])


def of_an_object(x: Tensor) -> Any:
    return _told(x, KEPT.config["inner"]["scale"], KEPT.config["kind"])


def of_a_class(x: Tensor) -> Any:
    return _told(x, Kept.table["kind"])


def membership(x: Tensor) -> Any:
    return _told(x, "late" in CONFIG, "kind" in CONFIG)


def by_get(x: Tensor) -> Any:
    return _told(x, CONFIG.get("kind"), KEPT.config.get("kind", 1), Kept.table.get("late"), CONFIG.get("late", "none"))


def by_get_of_inner(x: Tensor) -> Any:
    return _told(x, (CONFIG.get("inner") or {}).get("scale", "none"), (KEPT.config.get("inner") or {}).get("scale"))


def by_a_get_that_is_kept(x: Tensor) -> Any:
    get = CONFIG.get
    print("between")
    return _told(x, get("kind"), get("late", 3))


def not_none(x: Tensor) -> Any:
    said = "none" if Kept.table is None else "some"
    return _told(x, said, CONFIG is not None, None is KEPT.config, ROWS is None)


def _kind(config: dict[str, Any], key: str = "kind") -> Any:
    return config[key]


def handed_on(x: Tensor) -> Any:
    return _told(x, _kind(CONFIG))


def _others() -> None:
    """Change what none of the functions above reads."""
    CONFIG.update(other="changed", new="entry")
    CONFIG["inner"]["name"] = "changed"
    CONFIG["more"].append("z")
    ROWS[5]["kind"] = "changed"
    ROWS[3]["values"][1] = "changed"
    ROWS.append({"kind": "last", "values": []})
    KEPT.config["other"] = KEPT.config["inner"]["name"] = Kept.table["other"] = "changed"


READ_IN_PART = (
    *(entry, entry_behind_a_step, inner, by_variable, of_a_row, of_an_object, of_a_class, membership, handed_on),
    *(by_get, by_a_get_that_is_kept, not_none),
)


@pytest.mark.parametrize("function", READ_IN_PART, ids=lambda each: each.__name__)
def test_other_entries_make_no_program(function: Callable[..., Any]) -> None:
    static = to_partial(function)
    for _ in range(2):
        static(X)
    programs = len(static.programs)
    _others()
    assert static.explain_miss(X) is None
    _same(static, function)
    assert len(static.programs) == programs


def _scale() -> None:
    CONFIG["inner"]["scale"] = KEPT.config["inner"]["scale"] = ROWS[3]["values"][0] = "another"


def _kinds() -> None:
    CONFIG["kind"] = KEPT.config["kind"] = Kept.table["kind"] = PAIR[0]["kind"] = "other kind"


def _new_tables() -> None:
    CONFIG["inner"] = {"scale": "of a new one"}
    KEPT.config = {"kind": "new", "inner": {"scale": "new one"}}
    Kept.table = {"kind": "of a new class's"}
    ROWS[3] = {"values": ["of a new row"]}


def _gone() -> None:
    del CONFIG["kind"], CONFIG["inner"], KEPT.config["inner"], Kept.table["kind"], ROWS[2:]
    PAIR[0].clear()


def _late() -> None:
    CONFIG["late"] = None


def _other_types() -> None:
    CONFIG["kind"], Kept.table["kind"], CONFIG["inner"] = 3, 4.0, {"scale": None}
    ROWS[3] = {"values": ("in a tuple",)}  # type: ignore[dict-item]  # it was a list


def _shorter() -> None:
    ROWS[3]["values"].clear()


class Lenient(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return f"no {key}"


def _of_other_classes() -> None:
    Kept.table = Lenient(other="b")
    KEPT.config = collections.defaultdict(lambda: {"scale": "made"}, kind="of a defaultdict")
    CONFIG["inner"] = collections.Counter()
    ROWS[3] = collections.OrderedDict(values=["v3", "w"])


def _none() -> None:
    Kept.table = KEPT.config = CONFIG["inner"] = CONFIG["kind"] = None  # type: ignore[assignment]  # they were there


FAST = (_kinds, _new_tables, _gone)
CHANGES = (
    *(_others, _scale, _kinds, _new_tables, _other_types, _late, _shorter, _gone, _of_other_classes, _none),
)


# ---- ways by which code reads more than its steps show
def asked_whole(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"], json.dumps(CONFIG))


def asked_whole_around(x: Tensor) -> Any:
    return _told(x, CONFIG["inner"]["scale"], json.dumps(CONFIG))


def _by_default(config: dict[str, Any] = CONFIG) -> str:
    return json.dumps(config)


def asked_by_default(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"], _by_default())


def in_a_tuple(x: Tensor) -> Any:
    return _told(x, PAIR[0]["kind"], json.dumps(PAIR))


def spread(x: Tensor) -> Any:
    return _told(x, PAIR[0]["kind"], json.dumps(*PAIR[:1]))


def _length(*given: Any) -> int:
    return len(json.dumps(given))


def handed_on_with_others(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"], _length(CONFIG, 1))


def by_a_method(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"], *map(CONFIG.get, ("other", "kind", "late")))


def length(x: Tensor) -> Any:
    return _told(x, ROWS[3]["values"][0], len(ROWS), len(CONFIG))


def by_another_name(x: Tensor) -> Any:
    table = KEPT.config
    return _told(x, table["kind"], [*table], KEPT.config["inner"])


def in_order(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"], *CONFIG, *(row["kind"] for row in ROWS))


def elements_asked_for(x: Tensor) -> Any:
    return _told(x, "x" in CONFIG["more"], 1 in ROWS, CONFIG["kind"])


def compared(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"], KEPT.config == CONFIG, ROWS[3] == ROWS[5])


def written(x: Tensor) -> Any:
    before = CONFIG["kind"]
    CONFIG["kind"] = f"{before}!"
    return _told(x, before, CONFIG["kind"], list(CONFIG))


def written_elsewhere(x: Tensor) -> Any:
    ROWS[0]["values"].append(CONFIG["kind"])
    return _told(x, ROWS[0]["values"][0], ROWS[3]["values"][0])


def last(x: Tensor) -> Any:
    return _told(x, ROWS[-1]["kind"], ROWS[3:5])


def from_the_end(x: Tensor) -> Any:
    return _told(x, CONFIG["more"][-1], ROWS[3]["values"][-1], ROWS[5]["values"][-2])


def from_both_ends(x: Tensor) -> Any:
    return _told(x, CONFIG["more"][-1], CONFIG["more"][1], ROWS[3]["values"][0], ROWS[3]["values"][-2])


def got_or_another(x: Tensor) -> Any:
    found = CONFIG.get("late", KEPT.config)
    return _told(x, CONFIG["kind"], json.dumps(found), json.dumps(CONFIG.get("inner", {})))


def by_truth(x: Tensor) -> Any:
    return _told(x, ROWS[True]["kind"], ROWS[False]["values"][0])


def formatted(x: Tensor) -> Any:
    return _told(x, f"{CONFIG}", CONFIG["kind"])


def _generated(config: dict[str, Any]) -> Iterator[Any]:
    yield config["kind"]
    yield len(config)


def in_a_generator(x: Tensor) -> Any:
    made = _generated(CONFIG)
    number = len(CONFIG["more"])
    return _told(x, number, *made)


def caught(x: Tensor) -> Any:
    try:
        return _told(x, CONFIG["inner"]["scale"])
    except KeyError as error:
        return _told(x, *error.args)


def by_its_dict(x: Tensor) -> Any:
    return _told(x, KEPT.config["kind"], json.dumps(vars(KEPT)), json.dumps(KEPT.__dict__))


def by_the_classes_dict(x: Tensor) -> Any:
    return _told(x, Kept.table["kind"], json.dumps([each for each in vars(Kept).values() if isinstance(each, dict)]))


def by_globals(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"], json.dumps(globals()["CONFIG"]))


def by_all_globals(x: Tensor) -> Any:
    tables = [each for name, each in globals().items() if name in ("CONFIG", "ROWS")]
    return _told(x, CONFIG["inner"]["scale"], json.dumps(tables))


def copied(x: Tensor) -> Any:
    return _told(x, KEPT.config["kind"], copy.deepcopy(KEPT).config, CONFIG["kind"], CONFIG.copy())


def by_a_partial(x: Tensor) -> Any:
    return _told(x, CONFIG["kind"], DUMPS())


def asked_by_a_library(x: Tensor) -> Any:
    return _told(x, KEPT.config["kind"], json.dumps(KEPT, default=operator.attrgetter("config")))


READ = (
    *(by_its_dict, by_the_classes_dict, by_globals, by_all_globals, copied, by_a_partial, asked_by_a_library),
    *(asked_whole, asked_whole_around, asked_by_default, in_a_tuple, spread, handed_on_with_others, by_a_method),
    *(by_another_name, in_order, elements_asked_for, compared, written, written_elsewhere, last, by_truth, formatted),
    *(in_a_generator, caught, length, by_get_of_inner, from_the_end, from_both_ends, got_or_another),
)


def _same(static: Callable[..., Any], function: Callable[..., Any]) -> None:
    """One call of each, from the same state."""
    before = copy.deepcopy([CONFIG, ROWS, PAIR, Kept.table, KEPT.config])
    wanted = observed(function, (X,))
    after = repr([CONFIG, ROWS, PAIR, Kept.table, KEPT.config])
    config, rows, pair, Kept.table, KEPT.config = before
    CONFIG.clear()
    CONFIG.update(config)
    ROWS[:] = rows
    PAIR[0].clear()
    PAIR[0].update(pair[0])
    found = observed(static, (X,))
    assert repr((found.value, found.error, found.printed)) == repr((wanted.value, wanted.error, wanted.printed))
    assert repr([CONFIG, ROWS, PAIR, Kept.table, KEPT.config]) == after


@pytest.mark.parametrize("change", only(CHANGES, FAST), ids=lambda each: each.__name__.strip("_"))
@pytest.mark.parametrize("function", few(READ_IN_PART + READ, 2, (by_all_globals,)), ids=lambda each: each.__name__)
def test_as_in_eager(function: Callable[..., Any], change: Callable[[], None]) -> None:
    static = to_partial(function)
    for _ in range(2):
        _same(static, function)
    change()
    for _ in range(2):
        _same(static, function)


def test_one_container_in_two_places() -> None:
    first: dict[str, Any] = {"kind": "a"}
    second: dict[str, Any] = {"kind": "b"}
    places = {"one": first, "two": second}

    def function(x: Tensor) -> Any:
        places["one"]["kind"] = "written"
        return _told(x, places["two"]["kind"])

    static = to_partial(function)
    for one, two in ((first, second), (first, first), (second, first)):
        first["kind"], second["kind"], places["one"], places["two"] = "a", "b", one, two
        wanted = function(X)
        first["kind"], second["kind"] = "a", "b"
        assert repr(static(X)) == repr(wanted)


def test_the_end_of_a_list_that_grows() -> None:
    losses = [1.0, 2.0]
    static = to_partial(lambda x: x * losses[-1])
    for loss in (3.0, 4.0, 2.5, 5.0, 4.0, 7.0):
        losses.append(loss)
        assert torch.equal(static(X), X * loss)
    assert len(static.programs) <= 2
    losses[-1] = 8  # type: ignore[call-overload]  # another type
    assert static(X).tolist() == (X * 8).tolist()
    losses.clear()
    with pytest.raises(IndexError):
        static(X)


def test_both_ends_of_a_list_that_grows() -> None:
    values = [1.0, 2.0, 3.0]
    static = to_partial(lambda x: x * values[-1] + values[2])
    for value in (3.0, 4.0, 3.0, 5.0, 4.0):
        values.append(value)
        assert torch.equal(static(X), X * value + 3.0)
    values[2] = 7.0
    assert torch.equal(static(X), X * 4.0 + 7.0)


def test_a_long_list_of_which_one_element_is_read() -> None:
    rows = [{"x": torch.full((3,), float(n)), "label": n} for n in range(1000)]
    static = to_partial(lambda x: x + rows[7]["x"] * rows[7]["label"])
    assert torch.equal(static(X), X + 49)
    assert len(static.programs[0].guards) < 20


def test_an_entry_that_is_an_input_beside_others_that_change() -> None:
    config: dict[str, Any] = {"rate": 0.5, "label": "a"}
    static = to_partial(lambda x: x * config["rate"])
    for number in range(6):
        config.update(rate=0.5 + number, label=f"label {number}")
        assert torch.equal(static(X), X * config["rate"])
    assert len(static.programs) <= 2
    config["rate"] = 3
    assert static(X).tolist() == (X * 3).tolist()
    del config["rate"]
    with pytest.raises(KeyError):
        static(X)


def test_an_entry_that_is_an_input_and_written() -> None:
    def function(x: Tensor, config: dict[str, Any]) -> Any:
        config["rate"] = config["rate"] + 1
        return x * config["rate"], config["label"]

    counted = {"rate": 0, "label": "a"}
    static = to_partial(lambda x: function(x, counted))
    for number in range(6):
        counted.update(rate=number * 2, label=f"label {number % 2}", **{f"more {number}": number})
        wanted = dict(counted)
        expected = function(X, wanted)
        assert repr(static(X)) == repr(expected)
        assert counted == wanted
