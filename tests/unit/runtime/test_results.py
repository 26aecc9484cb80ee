from __future__ import annotations

import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from hypothesis import given
from hypothesis import strategies as st

from stillgraph.program.effects import (
    DeleteAttribute,
    ExtendContents,
    SetAttribute,
    SetCell,
    SetContents,
    SetGlobal,
    SetItem,
    SetPersistence,
    SetSlot,
)
from stillgraph.program.outputs import (
    Choice,
    Constant,
    Container,
    Instance,
    Keys,
    Maybe,
    Output,
    Same,
    Shared,
    Template,
)
from stillgraph.program.sources import Argument, Attribute, Cell, Held, Item
from stillgraph.runtime.native.effects import replace_contents
from stillgraph.runtime.native.results import compile_result, compile_template
from tests.unit.runtime.programs import X

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class Frozen:
    x: Any
    y: Any = 0

    def __post_init__(self) -> None:
        assert self.x != "made by __init__"


class Registered:
    def __init__(self, *items: Any) -> None:
        self.items = items


pytree.register_pytree_node(Registered, lambda r: (list(r.items), "context"), lambda items, _: Registered(*items))


class Plain:
    pass


def template_of(value: Any, outputs: list[Any]) -> Template:
    """The template of a pytree whose leaves are outputs."""
    node = pytree.SUPPORTED_NODES.get(pytree._get_node_type(value))
    if node is None:
        outputs.append(value)
        return Output(len(outputs) - 1)
    children, context = node.flatten_fn(value)
    return Container(pytree._get_node_type(value), context, tuple(template_of(child, outputs) for child in children))


def rebuilt(template: Template, *outputs: Any, args: tuple[Any, ...] = (), **kwargs: Any) -> Any:
    return compile_template(template)(outputs, args, kwargs)


leaves = st.integers()
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(lambda items: deque(items, maxlen=5)),
        st.dictionaries(st.one_of(st.text(max_size=2), st.integers(), st.floats(allow_nan=False)), inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(OrderedDict),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(lambda items: defaultdict(list, items)),
        st.tuples(inner, inner).map(lambda pair: Point(*pair)),
    ),
    max_leaves=10,
)


def described(value: Any) -> Any:
    """A value with its types, the order of its keys, and what else `==` does not look at."""
    if isinstance(value, dict):
        extra = value.default_factory if isinstance(value, defaultdict) else None
        return type(value), extra, [(type(key), key, described(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return type(value), getattr(value, "maxlen", None), [described(item) for item in value]
    return type(value), value


@given(trees)
def test_a_tree_is_rebuilt_as_it_was(tree: Any) -> None:
    outputs: list[Any] = []
    template = template_of(tree, outputs)
    assert described(rebuilt(template, *outputs)) == described(tree)


def test_every_call_makes_fresh_containers() -> None:
    finish = compile_template(Container(list, None, (Container(dict, ["a"], (Output(0),)),)))
    first, second = finish((1,), (), {}), finish((2,), (), {})
    assert (first, second) == ([{"a": 1}], [{"a": 2}])
    assert first[0] is not second[0]


def test_leaves_are_the_very_objects() -> None:
    constant, argument, held = object(), object(), object()
    leaves = (Output(0), Constant(constant), Same(X), Same(Item(Argument("k"), 0)), Same(Held("held", held)))
    tensor = torch.ones(1)
    found = rebuilt(Container(tuple, None, leaves), tensor, args=(argument,), k=[argument])
    expected = (tensor, constant, argument, argument, held)
    assert list(map(id, found)) == list(map(id, expected))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (Container(tuple, None, ()), ()),
        (Container(tuple, None, (Output(0),)), (1,)),
        (Container(set, None, (Output(0), Output(1))), {1, 2}),
        (Container(set, None, ()), set()),
        (Container(frozenset, None, (Output(0),)), frozenset({1})),
        (Container(Point, Point, (Output(1), Output(0))), Point(2, 1)),
        (Container(dict, [float("inf"), None, ("a",)], (Output(0),) * 3), {float("inf"): 1, None: 1, ("a",): 1}),
    ],
)
def test_containers(template: Template, expected: Any) -> None:
    assert described(rebuilt(template, 1, 2)) == described(expected)


def test_registered_nodes_and_torch_return_types() -> None:
    found = rebuilt(Container(Registered, "context", (Output(0), Output(1))), 1, 2)
    assert (type(found), found.items) == (Registered, (1, 2))
    values = torch.max(torch.ones(2, 2), 0)
    outputs: list[Any] = []
    assert type(rebuilt(template_of(values, outputs), *outputs)) is torch.return_types.max


def test_a_type_that_is_no_node() -> None:
    with pytest.raises(ValueError, match="Plain is not registered"):
        compile_template(Container(Plain, None, ()))


def test_instances_are_made_without_their_init() -> None:
    attributes = (("x", Output(0)), ("y", Constant("y")), ("not a name", Output(0)))
    found = rebuilt(Instance(Frozen, attributes), "made by __init__")
    assert type(found) is Frozen
    assert vars(found) == {"x": "made by __init__", "y": "y", "not a name": "made by __init__"}


def test_an_instance_of_a_subclass_of_a_builtin() -> None:
    found = rebuilt(Instance(type("Special", (ValueError,), {}), (("code", Output(0)),)), 3)
    assert isinstance(found, ValueError)
    assert found.code == 3


# ---- sharing
def test_shared_nodes_are_numbered_in_preorder() -> None:
    inner = Container(list, None, (Container(tuple, None, (Output(0),)), Container(dict, ["a"], (Output(1),))))
    found = rebuilt(Container(tuple, None, (inner, Shared(1), Shared(2), Shared(3))), 1, 2)
    assert found == ([(1,), {"a": 2}], [(1,), {"a": 2}], (1,), {"a": 2})
    assert found[1] is found[0]
    assert found[2] is found[0][0]
    assert found[3] is found[0][1]


def test_a_shared_instance() -> None:
    found = rebuilt(Container(tuple, None, (Instance(Plain, (("x", Output(0)),)), Shared(1))), 1)
    assert found[0] is found[1]


@pytest.mark.parametrize(
    ("kind", "context", "inside"),
    [
        (list, None, lambda value: value[0]),
        (dict, ["me"], lambda value: value["me"]),
        (OrderedDict, Keys(("me",)), lambda value: value["me"]),
        (Counter, Keys(("me",)), lambda value: value["me"]),
        (defaultdict, Keys(("me",), int), lambda value: value["me"]),
        (deque, 4, lambda value: value[0]),
    ],
)
def test_a_container_that_contains_itself(kind: Any, context: Any, inside: Any) -> None:
    found = rebuilt(Container(kind, context, (Shared(0),)))
    assert type(found) is kind
    assert inside(found) is found
    assert getattr(found, "default_factory", int) is int
    assert getattr(found, "maxlen", 4) == 4


@pytest.mark.parametrize(
    ("template", "there", "missing"),
    [
        (Container(dict, ("a", "b"), (Output(1), Maybe(Output(0), Output(1)))), {"a": 1, "b": 1}, {"a": 1}),
        (Container(set, None, (Constant(1), Maybe(Output(0), Constant(2)))), {1, 2}, {1}),
        (Container(list, 1, (Maybe(Output(0), Constant("b")),)), ["b"], []),
        (Container(Counter, Keys(("a",)), (Maybe(Output(0), Output(1)),)), Counter("a"), Counter()),
        (
            Container(defaultdict, Keys(("a",), int), (Maybe(Output(0), Output(1)),)),
            defaultdict(int, a=1),
            defaultdict(int),
        ),
    ],
)
def test_what_may_be_missing(template: Template, there: Any, missing: Any) -> None:
    assert described(rebuilt(template, True, 1)) == described(there)
    assert described(rebuilt(template, False, 1)) == described(missing)


def test_the_order_of_keys_is_that_of_their_ranks() -> None:
    children = (Maybe(Constant(True), Constant(1), Output(0)), Maybe(Output(2), Constant(2), Output(1)))
    template = Container(OrderedDict, Keys(("a", "b")), children)
    assert list(rebuilt(template, 5, 3, True).items()) == [("b", 2), ("a", 1)]
    assert list(rebuilt(template, 3, 5, True).items()) == [("a", 1), ("b", 2)]
    assert list(rebuilt(template, 5, 3, False).items()) == [("a", 1)]


def test_longer_cycles() -> None:
    inner = Container(tuple, None, (Shared(0), Shared(1), Shared(2)))
    template = Container(tuple, None, (Container(dict, ["a"], (Output(0),)), Container(list, None, (inner,))))
    found = rebuilt(template, 1)
    assert found[0] == {"a": 1}
    assert found[1][0][0] is found
    assert found[1][0][1] is found[0]
    assert found[1][0][2] is found[1]


def test_an_instance_that_refers_to_itself() -> None:
    found = rebuilt(Instance(Plain, (("me", Shared(0)), ("pair", Container(tuple, None, (Shared(0),))))))
    assert found.me is found
    assert found.pair == (found,)


def test_a_tuple_cannot_contain_itself_at_once() -> None:
    with pytest.raises(ValueError, match="contains itself"):
        compile_template(Container(tuple, None, (Shared(0),)))


def test_sharing_what_does_not_exist() -> None:
    with pytest.raises(ValueError, match="#1 is shared before"):
        compile_template(Container(tuple, None, (Shared(1),)))


@pytest.mark.parametrize("flag", [True, torch.tensor(True), False, torch.tensor(False)])
def test_a_choice(flag: Any) -> None:
    left = Container(list, None, (Output(1), Choice(Output(0), Constant("yes"), Constant("no"))))
    found = rebuilt(Container(tuple, None, (Choice(Output(0), left, Same(X)), Shared(1))), flag, 2, args=("right",))
    assert found == (([2, "yes"], [2, "yes"]) if flag else ("right", [2, "no"]))
    assert not flag or found[0] is found[1]


# ---- effects
def carried_out(effects: list[Any], *outputs: Any, args: tuple[Any, ...], result: Template = Constant(None)) -> Any:  # noqa: B008
    return compile_result(result, effects)(outputs, args, {})


def test_effects_on_attributes() -> None:
    target = Plain()
    target.old = 1  # type: ignore[attr-defined]
    effects = [SetAttribute(X, "new", Output(0)), SetAttribute(X, "not a name", Output(1)), DeleteAttribute(X, "old")]
    carried_out(effects, 1, 2, args=(target,))
    assert vars(target) == {"new": 1, "not a name": 2}
    carried_out([DeleteAttribute(X, "not a name")], args=(target,))
    assert vars(target) == {"new": 1}


def test_an_attribute_is_set_as_assignment_sets_it() -> None:
    module = torch.nn.BatchNorm1d(2)
    mean = torch.ones(2)
    carried_out([SetAttribute(X, "running_mean", Output(0))], mean, args=(module,))
    assert module._buffers["running_mean"] is mean


def test_effects_on_items_cells_and_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("stillgraph_test_module")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    cell, items = types.CellType(0), {"a": 0}
    effects = [
        SetItem(X, "a", Output(0)),
        SetItem(X, (1,), Output(0)),
        SetCell(Cell("n", cell), Output(1)),
        SetGlobal(module.__name__, "total", Output(2)),
    ]
    carried_out(effects, 1, 2, 3, args=(items,))
    assert items == {"a": 1, (1,): 1}
    assert cell.cell_contents == 2
    assert module.total == 3
    carried_out([SetCell(Item(X, 0), Output(0))], 5, args=([cell],))
    assert cell.cell_contents == 5


def test_sources_are_read_before_the_first_effect() -> None:
    swapped = Plain()
    swapped.a, swapped.b = "a", "b"  # type: ignore[attr-defined]
    a, b = Attribute(X, "a"), Attribute(X, "b")
    effects = [SetAttribute(X, "a", Same(b)), SetAttribute(X, "b", Same(a))]
    result = Container(tuple, None, (Same(a), Same(b)))
    assert carried_out(effects, args=(swapped,), result=result) == ("a", "b")
    assert vars(swapped) == {"a": "b", "b": "a"}


def test_effects_come_in_order() -> None:
    class Log(Plain):
        def __setattr__(self, name: str, value: Any) -> None:
            written.append((name, value))

    written: list[Any] = []
    effects = [SetAttribute(X, "b", Output(0)), SetAttribute(X, "a", Output(1)), SetAttribute(X, "b", Output(2))]
    carried_out(effects, 0, 1, 2, args=(Log(),))
    assert written == [("b", 0), ("a", 1), ("b", 2)]


def test_an_object_in_the_result_and_in_effects_is_one() -> None:
    target = Plain()
    effects = [
        SetAttribute(X, "same", Shared(1)),
        SetAttribute(X, "fresh", Container(list, None, (Shared(0),))),
        SetAttribute(X, "again", Shared(2)),
    ]
    result = Container(tuple, None, (Container(list, None, (Output(0),)),))
    found = carried_out(effects, 1, args=(target,), result=result)
    assert target.same is found[0]  # type: ignore[attr-defined]
    assert target.fresh[0] is found  # type: ignore[attr-defined]
    assert target.again is target.fresh  # type: ignore[attr-defined]


def test_an_object_made_by_an_effect_refers_to_the_result_in_a_cycle() -> None:
    target = Plain()
    effects = [SetAttribute(X, "made", Container(list, None, (Shared(0), Shared(1))))]
    found = carried_out(effects, args=(target,), result=Container(list, None, ()))
    assert target.made[0] is found  # type: ignore[attr-defined]
    assert target.made[1] is target.made  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("target", "template", "expected"),
    [
        ([0, 1, 2], Container(list, None, (Output(0), Same(Item(X, 0)))), ["out", 0]),
        ({"a": 0, "b": 1}, Container(dict, ["b", "a"], (Output(0), Same(Item(X, "a")))), {"b": "out", "a": 0}),
        (OrderedDict(a=0, b=1), Container(OrderedDict, ["b", "a"], (Output(0),) * 2), OrderedDict(b="out", a="out")),
        ({1, 2}, Container(set, None, (Output(0),)), {"out"}),
        (deque([1, 2], 3), Container(deque, 3, (Output(0), Same(Item(X, 1)))), deque(["out", 2], 3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_contents_are_replaced_in_place(target: Any, template: Template, expected: Any) -> None:
    carried_out([SetContents(X, template)], "out", args=(target,))
    assert described(target) == described(expected)


def test_a_list_is_made_longer_in_place() -> None:
    target = [1]
    carried_out([ExtendContents(X, Container(list, 2, (Output(0), Constant(3))))], 2, args=(target,))
    assert target == [1, 2, 3]


def test_an_attribute_past_the_class() -> None:
    class Counts:
        sets = 0

        def __setattr__(self, name: str, value: Any) -> None:
            type(self).sets += 1

    target = Counts()
    carried_out([SetAttribute(X, "value", Output(0), past=True)], 1, args=(target,))
    assert vars(target) == {"value": 1}
    assert Counts.sets == 0


@pytest.mark.parametrize("persistent", [True, False])
def test_an_entry_of_a_table_of_a_module(persistent: bool) -> None:
    module = torch.nn.Module()
    module.late = torch.zeros(2)
    effects = [SetSlot(X, "_buffers", "late", Output(0)), SetPersistence(X, "late", Output(1))]
    carried_out(effects, torch.ones(2), persistent, args=(module,))
    assert "late" not in vars(module)
    assert torch.equal(module.late, torch.ones(2))
    assert ("late" in module.state_dict()) == persistent


def test_methods_of_a_subclass_are_passed_by() -> None:
    def refuse(*args: Any) -> None:
        raise AssertionError("ran twice")

    overridden = dict.fromkeys(["__setitem__", "clear", "update", "extend", "append", "add"], refuse)
    for base, value in [(list, [1]), (dict, {"a": 1}), (OrderedDict, {"a": 1}), (set, {1}), (deque, [1])]:
        target = type("Loud", (base,), overridden)()
        replace_contents(target, value)
        assert list(target) == list(value)


def test_contents_of_anything_with_slices() -> None:
    target = bytearray(b"abc")
    replace_contents(target, b"d")
    assert target == b"d"


def test_the_generated_text_is_kept() -> None:
    finish = compile_template(Container(tuple, None, (Output(0), Output(1))))
    assert finish.__source__ == "def finish(outputs, args, kwargs):\n    return (outputs[0], outputs[1])\n"  # type: ignore[attr-defined]
