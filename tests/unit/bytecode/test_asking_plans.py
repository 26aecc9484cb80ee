"""What a function without a full graph answers: why a call misses, what became of calls, and what it does not take."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.bytecode.segmented import X, held, to_partial


def told(x: Tensor, mode: Any = "a") -> Tensor:
    y = (x * 2).sum()
    print(y.item())
    return x + y if mode == "a" else x - y


# ---- options
@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"full_graph": "no"}, TypeError, "full_graph is True or False, not 'no'"),
        ({"full_graph": None}, TypeError, "full_graph is True or False, not None"),
        ({"full_graph": False, "strict": "yes"}, TypeError, "strict is True or False, not 'yes'"),
        ({"full_graph": False, "check": 1}, ValueError, "check is for full graphs"),
    ],
)
def test_options(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    module = nn.Linear(2, 2)
    with pytest.raises(kind, match=text):
        sg.to_static(module, **options)
    assert "forward" not in vars(module)
    with pytest.raises(kind, match=text):
        sg.to_static(**options)(told)


def test_symbolic_trace_checks_strict() -> None:
    with pytest.raises(TypeError, match="strict is True or False"):
        sg.symbolic_trace(told, strict="yes")


def test_verify_is_for_full_graphs() -> None:
    for static in (to_partial(told), to_partial(nn.Linear(3, 3)).forward):
        with pytest.raises(sg.CheckError, match="static without a full graph") as raised:
            static.verify(X)
        assert raised.value.reason.code == "SG503"
        assert held(static).cache_info().programs == 0


# ---- explain, where the receiver is no call
def deco(function: Any) -> Any:
    def around(self: Any, x: Any) -> Any:
        return function(self, x)

    return around


def of_any(function: Any) -> Any:
    def around(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return around


class Decorated(nn.Module):
    @deco
    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x

    @of_any
    def other(self, x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x

    def nothing(self) -> Tensor:
        print("nothing")
        return X + 1


METHODS: dict[str, Callable[..., Any]] = {
    "forward": lambda **options: sg.to_static(Decorated(), backend="eager", **options).forward,
    "method": lambda **options: sg.to_static(Decorated().forward, backend="eager", **options),
    "of any": lambda **options: sg.to_static(Decorated().other, backend="eager", **options),
}


@pytest.mark.parametrize("how", METHODS)
def test_the_receiver_is_no_call(how: str) -> None:
    partial, full = METHODS[how](full_graph=False), METHODS[how]()
    with pytest.raises(TypeError, match="no program to explain yet"):
        full.explain()
    assert partial.explain().subgraphs == ()
    for x in (X, -X):
        torch.testing.assert_close(partial(x), full(x))
    assert len(partial.explain().subgraphs) == 1
    assert full.explain().program is full.programs[0]
    assert partial.explain(X).program is not None
    assert full.explain(X).program is not None


def test_a_method_that_takes_nothing() -> None:
    method = to_partial(Decorated().nothing)
    method()
    (step,) = method.explain().breaks
    assert step.text == "print('nothing')"


# ---- as data
def test_a_plan_as_data(tmp_path: Path) -> None:
    static = to_partial(told)
    static(X)
    found = static.explain()
    data = json.loads(found.to_json(tmp_path / "plan.json"))
    assert data == found.to_dict() == json.loads((tmp_path / "plan.json").read_text())
    assert (data["name"], data["gave_up"], data["whole"], data["code"]) == ("told", None, None, static.code)
    (step,) = data["breaks"]
    line = told.__code__.co_firstlineno + 2
    assert (step["text"], step["reason"], step["place"]["line"]) == ("print(item)", found.breaks[0].reason, line)
    first, second = (each["subgraphs"] for each in data["entries"])
    assert (first[0]["inputs"], first[0]["step"], first[0]["goes_on"], second[0]["step"]) == (["x"], step, [1], None)
    assert first[0]["guards"]
    assert first[0]["statements"]


def test_what_is_left_as_data() -> None:
    def generated(x: Tensor) -> Any:
        yield x

    data = json.loads(to_partial(generated).explain().to_json())
    assert data["whole"]["code"] == "SG306"


# ---- why a call misses
def test_why_a_call_misses() -> None:
    static = to_partial(told)
    assert static.explain_miss(X) == "nothing has been captured yet"
    static(X)
    assert static.explain_miss(X) is None
    assert static.explain_miss(-X) is None
    assert "x.shape[0] should be 3, but the shape is (2,)" in static.explain_miss(X[:2])
    module = to_partial(Decorated())
    module(X)
    assert module.forward.explain_miss(X) is None
    assert "the shape is (2,)" in module.forward.explain_miss(X[:2])


def test_why_a_call_misses_where_arguments_are_made_anew() -> None:
    def scaled_by(factor: Any) -> Any:
        return lambda x: x * factor

    def f(x: Tensor, scale: Any) -> Tensor:
        y = scale(x)
        print(y.sum().item())
        return y + 1

    static = to_partial(f)
    for _ in range(4):
        static(X, scaled_by(2))
    assert static.explain_miss(X, scaled_by(2)) is None
    for other in (scaled_by("s"), abs):
        why = static.explain_miss(X, other)
        assert why.startswith("scale")
        assert "held" not in why
        assert "Parcel" not in why


def test_why_a_call_misses_that_is_not_captured() -> None:
    def generated(x: Tensor) -> Any:
        yield x

    assert to_partial(generated).explain_miss(X) == (
        "its calls are not captured: 'generated' is a generator: its body runs where its values are asked for"
    )


def test_rolling_back_drops_the_programs() -> None:
    static = to_partial(told)
    static(X)
    assert static.cache_info().programs == 2
    assert static.rollback() is told
    assert static.cache_info().programs == 0
    for x in (X, -X):
        torch.testing.assert_close(static(x), told(x))
    assert static.cache_info().programs == 0
