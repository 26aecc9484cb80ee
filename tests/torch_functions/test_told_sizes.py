"""The table's functions again: each size of a result that a program tells beforehand is the size that it has.

The tensors have sizes and ranges of their own here, where `test_table` gives all of them one batch. A size told wrongly
decides conditions that the code asks later.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import sympy
import torch

import stillgraph as sg
from tests.torch_functions.inputs import forms, function_of, spec_of, tensors, used
from tests.torch_functions.left_out import why_refused
from tests.torch_functions.table import EXPRESSIONS

FORMS = forms()
_SAMPLE = 61
_CALLS = 8
_SIZES = (1, 2, 3, 5)


def _told(program: sg.Program, given: dict[str, torch.Tensor]) -> Iterator[list[int | None]]:
    """The sizes of each tensor that a program gives, as it tells them for inputs; None for what only the run knows."""
    known: dict[Any, int] = {}
    for node in program.graph.graph.find_nodes(op="placeholder"):
        if node.name in given:
            sizes = zip(node.meta["val"].shape, given[node.name].shape)
            known.update({told.node.expr: size for told, size in sizes if isinstance(told, torch.SymInt)})
    for node in program.graph.graph.output_node().all_input_nodes:
        if isinstance(value := node.meta.get("val"), torch.Tensor):
            yield [_number(size, known) for size in value.shape]


def _tensor(letter: str, draw: random.Random) -> torch.Tensor:
    """A tensor of any sizes: half of them those of the table's other tensors, for what needs equal ones."""
    made = tensors(letter, draw.choice((5, 5, *_SIZES)), draw.choice((4, 6)))[0]
    for dim, size in enumerate(made.shape):
        if dim > 0 and draw.random() < 0.5:
            made = made.index_select(dim, torch.arange(draw.choice(_SIZES)) % size)
    return made


def _number(size: Any, known: dict[Any, int]) -> int | None:
    if type(size) is int:
        return size
    found = sympy.sympify(size.node.expr.xreplace(known))
    return int(found) if found.is_number else None


def _dimension(letter: str, dim: int, size: int, draw: random.Random) -> sg.Dim | None:
    """Any size, or one of a range: such as leaves few sizes, or none of the small ones."""
    least, most = draw.choice([(None, None), (None, None), (2, 6), (None, 6), (size, size + 3), (size, None)])
    fits = least is None or size >= least > 1
    return sg.Dim(f"{letter}_{dim}", min=least, max=most) if fits and (least or most) else None


def _compared(expression: str, made: dict[str, torch.Tensor], spec: list[sg.InputSpec]) -> bool:
    """Compare what a program tells with what is; whether there is a program, and a result to compare it with."""
    try:
        result = function_of(expression, False)(**made)
    except Exception:  # of any kind: torch takes no such sizes, so there is nothing to compare with
        return False
    try:
        program = sg.export(function_of(expression, False), tuple(made.values()), input_spec=spec)
    except sg.StillgraphError:  # refused; any other exception is a fault of the capture
        return False
    for told, is_ in zip(_told(program, made), torch.utils._pytree.tree_leaves(result)):
        if isinstance(is_, torch.Tensor):
            assert all(a in (None, b) for a, b in zip(told, is_.shape)), f"{expression}: {told}, is {is_.shape}"
    return True


def _holds(expression: str) -> None:
    letters, draw = used(expression), random.Random(0)
    of_table = dict(zip(letters, tensors(letters, 5, 6)))
    known = _compared(expression, of_table, [spec_of(letter, tensor) for letter, tensor in of_table.items()])
    assert known or why_refused(expression, False) or expression not in EXPRESSIONS
    for _ in range(_CALLS):
        made = {letter: _tensor(letter, draw) for letter in letters}
        named = {key: [_dimension(key, *each, draw) for each in enumerate(value.shape)] for key, value in made.items()}
        _compared(expression, made, [sg.InputSpec(named[key], value.dtype) for key, value in made.items()])


@pytest.mark.parametrize("expression", FORMS[::_SAMPLE])
def test_a_sample(expression: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _holds(expression)


@pytest.mark.slow
@pytest.mark.parametrize("expression", FORMS)
def test_all(expression: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _holds(expression)
