from __future__ import annotations

import operator
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
import torch

from stillgraph.core.diagnostics import CaptureError
from stillgraph.trace.graph.current import active
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.values.numbers import (
    KINDS,
    StagedBool,
    StagedFloat,
    StagedInt,
    is_number,
    kind_of,
    let_kind_vary,
    plain,
)


@pytest.fixture
def recorder() -> Recorder:
    def demanded(number: Any, what: str) -> Any:
        raise LookupError(what)

    return Recorder(lambda tensor: pytest.fail(str(tensor)), demanded)


def number(recorder: Recorder, kind: type, name: str = "n") -> Any:
    made = recorder.fresh_number(kind)
    recorder.region.define(made, recorder.region.placeholder(name, plain(made)))
    return made


@pytest.mark.parametrize(("staged", "kind"), KINDS.items())
def test_kinds(recorder: Recorder, staged: type, kind: type) -> None:
    made = number(recorder, kind)
    if "Mixed" in staged.__name__:
        let_kind_vary(made)
    assert type(made) is staged
    assert is_number(made)
    assert kind_of(made) is kind
    assert type(plain(made)) is not staged
    assert plain(made).node is made.node


@pytest.mark.parametrize(("value", "kind"), [(True, bool), (2, int), (2.5, float)])
def test_kinds_of_plain_numbers(value: Any, kind: type) -> None:
    assert kind_of(value) is kind
    assert is_number(value)
    assert plain(value) is value


@pytest.mark.parametrize("value", ["1", None, [1], 1j, torch.ones(1)])
def test_what_is_no_number(value: Any) -> None:
    assert not is_number(value)


@pytest.mark.parametrize(
    ("operation", "kind", "result"),
    [
        (lambda n: n + 1, int, StagedInt),
        (lambda n: 1 - n, int, StagedInt),
        (lambda n: n / 2, int, StagedFloat),
        (lambda n: n // 2, int, StagedInt),
        (lambda n: n * 0.5, int, StagedFloat),
        (lambda n: n % 3, int, StagedInt),
        (lambda n: -n, int, StagedInt),
        (lambda n: ~n, int, StagedInt),
        (lambda n: abs(n), int, StagedInt),
        (lambda n: n > 2, int, StagedBool),
        (lambda n: n == 2, int, StagedBool),
        (lambda n: n << 1, int, StagedInt),
        (lambda n: n**-1, int, StagedFloat),
        (lambda n: round(n), float, StagedInt),
        (lambda n: round(n, 1), float, StagedFloat),
        (lambda n: n // 2, float, StagedFloat),
        (lambda n: n < 0, float, StagedBool),
        (lambda n: n & True, bool, StagedBool),
        (lambda n: n + 1, bool, StagedInt),
    ],
)
def test_operations_give_pythons_kind(recorder: Recorder, operation: Any, kind: type, result: type) -> None:
    with active(recorder):
        assert type(operation(number(recorder, kind))) is result
    assert [node for node in recorder.region.graph.nodes if node.op == "call_function"]


def test_operations_are_recorded_in_their_order(recorder: Recorder) -> None:
    a, b = number(recorder, int, "a"), number(recorder, float, "b")
    with active(recorder):
        assert a - b is not None
        assert 3 - a is not None
        quotient, rest = divmod(a, 2)
    assert kind_of(quotient) is kind_of(rest) is int
    called = [n for n in recorder.region.graph.nodes if n.op == "call_function"]
    assert [n.target for n in called] == [operator.sub, operator.sub, operator.floordiv, operator.mod]
    assert called[0].args == (recorder.region.node_of(a), recorder.region.node_of(b))
    assert called[1].args == (3, recorder.region.node_of(a))


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (operator.index, "index"),
        (hash, "hash"),
        (str, "text"),
        (repr, "text"),
        (lambda n: f"{n:>3}", "text"),
        (lambda n: {n: 1}, "hash"),
        (lambda n: [1, 2][n], "index"),
    ],
)
def test_python_cannot_take_a_value_by_stealth(recorder: Recorder, use: Any, what: str) -> None:
    with pytest.raises(LookupError, match=what):
        use(number(recorder, int))


@pytest.mark.parametrize("other", [Fraction(1, 2), timedelta(1)])
def test_operations_that_only_python_has_are_refused(recorder: Recorder, other: Any) -> None:
    with pytest.raises(CaptureError, match="SG301"):
        number(recorder, int) * other
    with pytest.raises(CaptureError, match="SG301"):
        other * number(recorder, int)


@pytest.mark.parametrize("other", ["a", None, [1], Decimal(1)])
def test_operations_with_what_is_no_number(recorder: Recorder, other: Any) -> None:
    with pytest.raises(TypeError):
        number(recorder, float) - other
    with pytest.raises(TypeError):
        other - number(recorder, float)
