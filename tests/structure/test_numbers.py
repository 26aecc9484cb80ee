"""What stands for a number answers nothing by Python's or torch's own code: each special method is a rule of ours."""

from __future__ import annotations

import pytest
import torch

from stillgraph.core.lookup import class_member
from stillgraph.trace.values.numbers import KINDS, StagedNumber
from stillgraph.trace.values.operator_tables import SLOTS

# What says nothing of a number: how objects are made, named and shown their attributes.
_OF_ANY_OBJECT = frozenset(
    {
        *("__class__", "__delattr__", "__dict__", "__dir__", "__doc__", "__getattribute__", "__getstate__", "__init__"),
        *("__init_subclass__", "__module__", "__new__", "__reduce__", "__reduce_ex__", "__setattr__", "__sizeof__"),
        *("__subclasshook__", "__weakref__"),
    }
)
_READ_OF_THE_CLASS = frozenset({"__getformat__", "__getnewargs__"})
"""What Python's number types have for `pickle` and for themselves: no operator asks an instance for it."""


def _special(*kinds: type) -> set[str]:
    names = {name for kind in kinds for name in dir(kind) if name.startswith("__") and name.endswith("__")}
    return names - _OF_ANY_OBJECT - _READ_OF_THE_CLASS


@pytest.mark.parametrize("staged", KINDS, ids=lambda kind: kind.__name__)
def test_every_special_method_is_ours(staged: type) -> None:
    ours = {name for base in staged.__mro__ if issubclass(base, StagedNumber) for name in vars(base)}
    torchs = _special(torch.SymInt, torch.SymFloat, torch.SymBool) - _special(int, float, bool)
    missing = _special(int, float, bool, complex) - ours - torchs
    assert missing <= {"__complex__"}, f"Python or torch would answer {sorted(missing)} for what stands for a number"
    for name in _special(int, float, bool) - {"__complex__"}:
        member = class_member(staged, name)
        assert member is not class_member(KINDS[staged], name)
        assert getattr(member, "__module__", "").startswith("stillgraph."), name


def test_every_operator_of_pythons_numbers_has_a_rule() -> None:
    operators = {name for name in _special(int, float) if name.removeprefix("__r").strip("_") and name in SLOTS}
    assert operators == {name for name in SLOTS if hasattr(int, name) or hasattr(float, name)}
    compared = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
    assert compared <= operators
