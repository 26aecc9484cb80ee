"""What is captured through bytecode is as sound as what is captured through source."""
from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

import stillgraph as sg
from stillgraph.bytecode.entry import convert
from tests.cases.compare import assert_same
from tests.front_ends import bytecode
from tests.unit.soundness import test_paths as paths

__all__ = ["bytecode"]  # the fixture

pytestmark = pytest.mark.usefixtures("bytecode")

X = torch.tensor([1.0, 2.0, 3.0])


def test_the_fixture_has_functions_with_source_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = convert.convert

    def noted(function: Any, segment: Any) -> Any:
        seen.append(function)
        return real(function, segment)

    monkeypatch.setattr(convert, "convert", noted)

    def function(x: Tensor) -> Tensor:
        return x + 1

    assert_same(X + 1, sg.to_static(function, backend="eager")(X))
    assert seen[0] is function


# ---- stories of tests/unit/soundness, as they are there
STORIES = [
    paths.test_settings_that_a_parent_has_under_another_name,
    paths.test_settings_that_are_shared_no_longer,
    paths.test_a_tensor_that_is_found_by_a_way_the_code_does_not_take,
    paths.test_an_effect_on_an_object_that_is_found_by_another_way,
    paths.test_two_tensors_that_become_one,
    paths.test_a_dictionary_that_becomes_one_with_defaults,
    paths.test_writes_to_what_a_set_holds,
    paths.test_a_child_that_is_none,
    paths.test_state_of_a_forward_pre_hook,
    paths.test_what_a_hook_records,
    paths.test_metadata_of_a_tensor_that_is_not_computed_with,
    paths.test_state_that_is_made_anew_when_the_batch_changes,
    paths.test_new_containers_stored_where_only_a_callee_leads,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__.removeprefix("test_"))
def test_a_story(story: Callable[[], None]) -> None:
    story()


# ---- what the interpreter asks of the standard library is no reading of the user's
def test_nothing_is_guarded_for_the_interpreters_sake() -> None:
    class Kept:
        step, rate = 1, 2.0

    kept = Kept()
    kept.step, kept.rate = 1, 2.0
    static = sg.to_static(lambda x: x * kept.step * int(x.sum()), backend="eager")
    for kind in (Iterator, Generator):
        ABCMeta._abc_caches_clear(kind)  # type: ignore[attr-defined]  # not in the stubs
    static(X)
    kept.rate += 1
    assert static.explain_miss(X) is None
    kept.step = 3
    assert_same(X * 18, static(X))


# ---- hooks
@pytest.mark.parametrize("is_made_inside", [True, False])
def test_a_hook_that_is_called_too_is_no_mere_hook(is_made_inside: bool) -> None:
    kept: list[Tensor] = []

    def outside(gradient: Tensor) -> Tensor:
        return gradient * len(kept)

    def function(x: Tensor) -> Tensor:
        def inside(gradient: Tensor) -> Tensor:
            return gradient * len(kept)

        hook = inside if is_made_inside else outside
        out = x * 2
        out.register_hook(hook)
        return hook(out).sum()

    static = sg.to_static(function, backend="eager")
    for _ in range(3):
        x = X.clone().requires_grad_()
        assert_same(function(x), static(x))
        kept.append(X)


# ---- values that may be None
def test_a_method_of_a_gradient_that_may_be_none() -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Tensor]:
        torch.manual_seed(0)
        layer = nn.Linear(3, 1)

        def function(x: Tensor) -> Tensor:
            layer.zero_grad(set_to_none=False)
            layer(x).sum().backward()
            return layer.weight.grad.clone()  # type: ignore[union-attr]  # it is a tensor then

        static = wrap(function)
        return [static(X), static(-X)]

    assert_same(run(lambda f: f), run(lambda f: sg.to_static(f, backend="eager")))


# ---- the stack
def leaves_two_loops(x: Tensor) -> Tensor:
    n = 0
    while n < 3 and x.sum() > 0:
        n += 1
        for i, each in enumerate(x):
            if each > 2:
                found: Tensor = each + i
                return found
        x = x - 1
    return x


@pytest.mark.parametrize("values", [[1.0, 3.0, 0.0], [1.0, 1.0, 1.0], [-1.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
def test_a_return_out_of_two_loops(values: list[float]) -> None:
    static = sg.to_static(leaves_two_loops, backend="eager")
    assert_same(leaves_two_loops(torch.tensor(values)), static(torch.tensor(values)))


def test_a_condition_in_a_loop_over_an_iterator_that_was_begun() -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Tensor]:
        torch.manual_seed(0)
        layer = nn.Linear(3, 3)
        averaged = AveragedModel(layer)

        def step(x: Tensor) -> Tensor:
            out: Tensor = layer(x).sum()
            averaged.update_parameters(layer)
            return out

        static = wrap(step)
        out = [static(X), static(X + 1), static(X - 1)]
        return [*out, *(each.clone() for each in averaged.state_dict().values())]

    with torch.no_grad():
        assert_same(run(lambda f: f), run(lambda f: sg.to_static(f, backend="eager")))
