"""Each class of guards has a kind that answers all that is asked of guards."""
from __future__ import annotations

import inspect
import typing

import pytest

from stillgraph.program import guards
from stillgraph.runtime.guards.kinds.kind import Kind
from stillgraph.runtime.guards.kinds.table import KINDS

CLASSES = [
    *typing.get_args(guards.Guard),
    *(each for _, each in inspect.getmembers(guards, inspect.isclass) if each.__name__.endswith("Guard")),
]


@pytest.mark.parametrize("guard", dict.fromkeys(CLASSES), ids=lambda guard: guard.__name__)
def test_a_guard_is_checked_and_explained(guard: type) -> None:
    kind = type(KINDS[guard])
    answers = {name for name in ("miss", "write", "why") if getattr(kind, name) is not getattr(Kind, name)}
    assert "why" in answers
    assert answers & {"miss", "write"}


def test_a_guard_without_a_source_says_what_it_speaks_of() -> None:
    for guard, kind in KINDS.items():
        has_source = "source" in guard.__dataclass_fields__
        assert has_source or type(kind).sources is not Kind.sources, guard


def test_no_other_module_matches_the_classes_of_guards_to_check_or_explain_them() -> None:
    """A new guard is a class of data, a kind, and a row of the table."""
    from stillgraph.runtime.guards import checking, explaining, order

    for module in (checking, explaining, order):
        named = {name for name in vars(module) if name.endswith("Guard")}
        named -= {"Guard", "TensorGuard"}  # the inputs and the tensors of guards are read with the others
        assert not named, module
