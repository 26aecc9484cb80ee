# ruff: noqa: UP031  (what users write)
from __future__ import annotations

import collections
import contextlib
import io
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.operators.objects.strings import assert_, is_staged, print_, text
from stillgraph.program.operations import print_ as run_print
from tests.unit.operators import asserting
from tests.unit.trace.agreement import N, P, agree, count, program_of, refusal

CALLS = (P, N, P * 20)


# ---- plain
def test_plain_text() -> None:
    assert text("{} of {!r:>{}}", 1, "b", 5) == "1 of   'b'"


def test_plain_print(capsys: pytest.CaptureFixture[str]) -> None:
    print_(1, "a", sep="-", end="!")
    assert capsys.readouterr().out == "1-a!"


def test_plain_assert() -> None:
    assert_(1)
    assert_([1], lambda: pytest.fail("the message is not needed"))
    with pytest.raises(AssertionError, match=r"^$"):
        assert_(0)
    with pytest.raises(AssertionError, match=r"^why$"):
        assert_([], lambda: "why")


@pytest.mark.parametrize(
    ("value", "staged"),
    [(1, False), ("a", False), ([1, {"a": (2,)}], False), (P, True), ([1, {"a": (P,)}], True), ({P}, True)],
)
def test_what_is_staged(value: object, staged: bool) -> None:
    assert is_staged(value) is staged


# ---- staged
def prints(x: Tensor) -> Tensor:
    k = x.sum().item()
    print("constant", 1, None, [1, "a"], sep="|", end="!\n")
    print(k, int(k), k > 0, x, [k, x[0]], {"a": k})
    print(f"{k:.2f} {k!r:>8} {int(k):+d} {k > 0} {x}")
    print()
    return x


def prints_in_a_loop(x: Tensor) -> Tensor:
    n = 0
    while x.sum() > 1:
        x = x / 2
        print(n, x.sum().item())
        n += 1
    else:
        print("done", n)
    return x


@pytest.mark.parametrize("function", [prints, prints_in_a_loop])
def test_printing(function: Any) -> None:
    agree(function, *CALLS)


def prints_what_was(x: Tensor) -> Tensor:
    items = [x.sum().item()]
    entries = {"items": items, 1: (items, {2})}
    told = [f"{items}", str(entries), "%s" % items, f"{entries!r:>60}", f"{items} {entries}"]
    items.append(2)
    entries[1] = 3
    print(*told, items, entries)
    return x


def test_a_text_is_of_what_was() -> None:
    agree(prints_what_was, (P,), (-P,))


def test_a_text_of_a_tensor_that_is_written() -> None:
    def late(x: Tensor) -> Tensor:
        y = x * 2
        told = f"{[y]}"
        y[:1].add_(1)
        print(told)
        return y

    def in_time(x: Tensor) -> Tensor:
        y = x * 2
        print(f"{y}")
        y[:1].add_(1)
        told = f"{y}"
        print(told, y)
        return y

    agree(in_time, (P,), (-P,))
    agree(late, (P,), (-P,))
    static = sg.to_static(late, full_graph=False, strict=True, backend="eager")
    for x in (P, -P, P):
        with contextlib.redirect_stdout(io.StringIO()) as told:
            assert torch.equal(static(x), torch.cat([x[:1] * 2 + 1, x[1:] * 2]))
        assert told.getvalue() == f"{[x * 2]}\n"


def test_nothing_is_printed_during_capture(capsys: pytest.CaptureFixture[str]) -> None:
    assert count(program_of(prints, P), run_print) == 4
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("function", [asserting.with_message, asserting.with_a_value, asserting.in_a_loop])
def test_assertions(function: Any) -> None:
    agree(function, *CALLS, P * 10)


def test_an_assertion_about_constants_is_decided_during_capture() -> None:
    agree(asserting.of_a_constant, (P, 2), (P, 1), programs=2)
    assert count(program_of(asserting.of_a_constant, P, 2), asserting.of_a_constant) == 0


def raises(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise KeyError(f"{x.sum().item()}", 2)
    if x.sum() > 50:
        raise ValueError
    return x


def test_messages_with_staged_values() -> None:
    agree(raises, *CALLS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: str(x.sum().item()).split("."),
        lambda x: {f"{x.sum()}": 1},
    ],
)
def test_texts_of_staged_values_cannot_be_computed_with(function: Any) -> None:
    error = refusal(function, P)
    assert isinstance(error, sg.CaptureError)
    assert error.reason.code == "SG302"


def test_texts_of_constants_can() -> None:
    def constant(x: Tensor) -> tuple[str, str]:
        return f"{x.dim()}-{x.dtype}" + "!", str(torch.float32)

    agree(constant, P)


def fills_in(x: Tensor) -> None:
    k = x.sum().item()
    print("%d of %5.2f, %s%%" % (1, k, x[0]))
    print("%(sum).1f" % {"sum": k}, "%s" % k)
    print(f"{k:.2f} {k!r}", str(k), repr(k), format(k, ".3f"), str(x[0]), str([k, 1]))
    print("sum " + str(k) + "!", ", ".join(f"{v.item():.1f}" for v in x), "{}".join(["a", str(k)]))
    print([f"{k}", {"a": f"{k:.1f}"}], f"{f'{k}'} {x.dim()}")


def shows_what_it_had(x: Tensor) -> None:
    seen, names = {1}, collections.OrderedDict(a=x.sum())
    print(seen, names, collections.namedtuple("Pair", "a b")(1, x.sum()))
    seen.add(2)
    print(seen)


@pytest.mark.parametrize("function", [fills_in, shows_what_it_had])
def test_texts_that_are_printed(function: Any) -> None:
    agree(function, *CALLS)


# ---- objects that say what their text is
class Meter:
    """As people copy it from torch's examples."""

    def __init__(self) -> None:
        self.name, self.fmt = "loss", ":.4f"
        self.val = self.sum = self.count = 0.0

    def update(self, val: float) -> None:
        self.val = val
        self.sum += val
        self.count += 1

    def __str__(self) -> str:
        return ("{name} {val" + self.fmt + "} of {count}").format(**self.__dict__)


class Shown:
    def __init__(self) -> None:
        self.steps = 0

    def __repr__(self) -> str:
        return f"<{self.steps} steps>"


class Odd:
    def __str__(self) -> Any:
        return 3


def test_objects_are_shown_as_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for static in (True, False):
        meter, shown_by_repr = Meter(), Shown()

        def step(x: Tensor, meter: Meter = meter, shown_by_repr: Shown = shown_by_repr) -> Tensor:
            meter.update(x.sum().item())
            if x.sum() > 0:
                shown_by_repr.steps += 1
            print(meter, shown_by_repr, [meter.val])
            print(f"{meter} | {meter!s} | {shown_by_repr} | {x.sum().item():>8.2f}")
            print("\t".join([str(meter), str(shown_by_repr)]))
            return x

        function = sg.to_static(step, backend="eager") if static else step
        for x in (*CALLS, P):
            function(x)
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert "loss 6.0000 of 1.0 | loss 6.0000 of 1.0 | <1 steps> |     6.00" in outputs[0]


def test_a_text_that_is_none_is_an_error_as_in_eager() -> None:
    agree(lambda x: str(Odd()), P)
