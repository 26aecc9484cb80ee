"""Users' objects that are printed and logged: as ``str`` or ``repr`` shows them, whichever Python asks for there."""

from __future__ import annotations

import collections
import io
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.importing import loaded

P, N = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])
LOG = logging.getLogger("stillgraph.tests.shown_objects")
Pair = collections.namedtuple("Pair", "first second")


class Both:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Both({self.value})"

    def __str__(self) -> str:
        return f"<{self.value}>"


class OfOne(Both):
    __str__ = Both.__repr__


class OnlyStr:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __str__(self) -> str:
        return f"<{self.value}>"

    def __float__(self) -> float:
        return 2.5


class Counting(Both):
    shown = 0

    def __repr__(self) -> str:
        self.shown += 1
        return f"{self.shown} times"


class Branching(Both):
    def __repr__(self) -> str:
        return "up" if self.value > 0 else "down"


class Failing(Both):
    def __repr__(self) -> str:
        raise KeyError("no text")


class OwnPair(Pair):
    def __repr__(self) -> str:
        return f"OwnPair<{self.first.value}>"


def in_an_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        LOG.info("%r", Both(x.sum().item()))
        print([Both(x.sum().item())], {"k": Both(2)})
    return x


def in_containers(x: Tensor) -> Any:
    thing = Both(x.sum().item())
    print((thing,), [[thing]], {1: {"a": thing}}, thing, Pair(thing, 1), collections.OrderedDict(a=thing))
    return x


def by_fields(x: Tensor) -> Any:
    thing, other = Both(x.sum().item()), Both(3)
    LOG.info("%s %r %a %-12r| %s", thing, thing, other, other, [thing])
    LOG.info("%(o)r %(o)s %(p)r %%", {"o": thing, "p": other})
    LOG.info("%(o)r", {"o": thing})
    LOG.info("%s", {"o": thing})
    LOG.log(logging.INFO, "%r", thing)
    return x


def as_the_message(x: Tensor) -> Any:
    LOG.warning([Both(x.sum().item())])
    LOG.warning(Both(x.sum().item()))
    return x


def in_either_way(x: Tensor) -> Any:
    thing = OfOne(x.sum().item())
    LOG.info("%*s %r", 8, thing, thing)
    LOG.info("%s", 1, extra={"thing": thing})
    return x


def of_a_class_of_pairs(x: Tensor) -> Any:
    print(OwnPair(Both(x.sum().item()), 1), [OwnPair(Both(x.sum().item()), 1)])
    return x


def that_count(x: Tensor) -> Any:
    thing = Counting(x.sum().item())
    print([thing], [thing])
    return x, thing.shown


def that_fail(x: Tensor) -> Any:
    try:
        print([Failing(x.sum().item())])
    except KeyError:
        return x + 1
    return x


class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []

    def forward(self, x: Tensor) -> Tensor:
        self.kept.append(Both(x.sum().item()))
        print(self.kept[-1:], self.kept)
        return x


def only_by_width(x: Tensor) -> Any:
    LOG.info("%*s", 8, Both(x.sum().item()))
    return x


def as_an_attribute_of_the_record(x: Tensor) -> Any:
    LOG.info("said", extra={"thing": Both(x.sum().item())})
    return x


def without_a_repr(x: Tensor) -> Any:
    return print([OnlyStr(x.sum().item())]), x


def as_a_number(x: Tensor) -> Any:
    LOG.info("%.2f", OnlyStr(x.sum().item()))
    return x


def that_count_when_logged(x: Tensor) -> Any:
    thing = Counting(x.sum().item())
    LOG.info("%r", thing)
    return x, thing.shown


def that_fail_when_logged(x: Tensor) -> Any:
    LOG.debug("%r", Failing(x.sum().item()))
    return x


def that_branch(x: Tensor) -> Any:
    return print([Branching(x.sum().item())]), x


def by_a_method(x: Tensor) -> Any:
    return print(Both(x.sum().item()).__init__), x  # type: ignore[misc]


def in_an_exception(x: Tensor) -> Any:
    return print(ValueError(Both(x.sum().item()))), x


def leading_to_itself(x: Tensor) -> Any:
    found: list[Any] = [x.sum().item()]
    found.append(found)
    return print(found), x


class Meter(Both):
    def __repr__(self) -> str:
        return f"Meter({self.value:.2f})"

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}}|"


def in_f_strings(x: Tensor) -> Any:
    one, meter, width = Both(x.sum().item()), Meter(x.max().item()), 12
    print(f"{one!r} {one} {one!s:>10}|{meter!r:>{width}} {{{meter:.3f}}} {Both(2)!r}")
    print(f"{x.sum().item():>{width}.1f} {width} {meter!r}")
    print(f"{OnlyStr(x.sum().item())} {[1]!r:>5} {Both(2)!a} {Meter(2):.1f}")
    return x


SHOWN = [
    *(in_an_arm, in_containers, by_fields, as_the_message, in_either_way, of_a_class_of_pairs, that_count, that_fail),
    *(in_f_strings, in_an_exception),
]
REFUSED = {
    **dict.fromkeys((only_by_width, as_an_attribute_of_the_record, without_a_repr, as_a_number), "SG302"),
    **dict.fromkeys((that_fail_when_logged, by_a_method, leading_to_itself), "SG302"),
    that_count_when_logged: "SG305",
    that_branch: "SG203",
}
Said = Callable[[Callable[..., Any], Tensor], Any]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Iterator[Said]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False

    def of(function: Callable[..., Any], x: Tensor) -> Any:
        result = function(x.clone())
        logged = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return str(result), capsys.readouterr().out, logged

    yield of
    LOG.removeHandler(handler)


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", SHOWN)
def test_as_python_shows_them(function: Any, full_graph: bool, said: Said) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for x in (P, N, P + 1):
        assert said(static, x) == said(function, x)
    assert len(static.programs) == 1 or not full_graph


@pytest.mark.parametrize("full_graph", [True, False])
def test_in_a_list_that_outlives_the_call(full_graph: bool, said: Said) -> None:
    eager, static = Keeping(), sg.to_static(Keeping(), backend="eager", full_graph=full_graph)
    for x in (P, N):
        assert said(static, x) == said(eager, x)


@pytest.mark.parametrize("function", REFUSED)
def test_what_is_refused(function: Any, said: Said) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(P)
    assert caught.value.reason.code == REFUSED[function]


@pytest.mark.parametrize("function", [only_by_width, as_an_attribute_of_the_record, that_count_when_logged])
def test_without_a_full_graph(function: Any, said: Said) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for x in (P, N):
        assert said(static, x) == said(function, x)


def test_in_python_source(tmp_path: Path, said: Said) -> None:
    sg.save(in_containers_of_python, tmp_path / "shown.py", args=(P,))
    module = loaded(tmp_path / "shown.py")
    assert said(module.in_containers_of_python, N) == said(in_containers_of_python, N)


def in_containers_of_python(x: Tensor) -> Any:
    print([Both(x.sum().item())], Both(x.sum().item()))
    LOG.info("%(o)r %(o)s", {"o": Both(x.sum().item())})
    return x * 2
