from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from stillgraph.program.types import (
    JoinFailure,
    NumberType,
    TensorType,
    Type,
    as_tensor_type,
    join_shapes,
    join_types,
    same_dimension,
    show_shape,
)

CPU = torch.device("cpu")
U = None  # unknown_shape of seed 002


def f32(*shape: Any, **facts: Any) -> TensorType:
    return TensorType(torch.float32, CPU, shape, **facts)


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        # The whole table of seed 002's ShapeJoin rules; None is its unknown_rank.
        ((3, 4), (3, 4), (3, 4)),
        ((3, U), (3, 4), (3, U)),
        (None, (3, 4), None),
        ((3, U), (3, U, U), None),
        # Further than seed 002, where this fails: known and different sizes of one rank.
        ((3, 5), (3, 4), (3, U)),
        # Beyond the table.
        ((U,), (U,), (U,)),
        ((), (), ()),
        ((0, 1), (0, 1), (0, 1)),
        ((1,), (2,), (U,)),
        (None, None, None),
        ((), (U,), None),
        ((U,), (U, U, U), None),
    ],
)
def test_shapes_that_join(left: Any, right: Any, joined: Any) -> None:
    assert join_shapes(left, right) == joined
    assert join_shapes(right, left) == joined


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        # The rest of that table: "Join Fail".
        ((3, 4), (3, 4, 1), "shape1 = (3, 4), shape2 = (3, 4, 1)"),
        ((3, U), (4, U, U), "shape1 = (3, ?), shape2 = (4, ?, ?)"),
        ((3, U), (3, 4, U), "shape1 = (3, ?), shape2 = (3, 4, ?)"),
        # Beyond the table.
        ((), (2,), "shape1 = (), shape2 = (2,)"),
        ((3, U), (3, U, 2), "shape1 = (3, ?), shape2 = (3, ?, 2)"),
    ],
)
def test_shapes_that_do_not(left: Any, right: Any, message: str) -> None:
    with pytest.raises(JoinFailure) as caught:
        join_shapes(left, right)
    assert caught.value.code == "SG201"
    assert caught.value.message == f"Shape Join Failed: {message}."


def test_tensors_of_unknown_rank_are_not_joined() -> None:
    with pytest.raises(JoinFailure, match=r"shape1 = \(3, \?\), shape2 = \(3, \?, \?\): .* unknown rank"):
        join_types(f32(3, U), f32(3, U, U))


def test_a_symbolic_dimension_is_equal_to_itself_alone() -> None:
    env = ShapeEnv()
    one, other = env.create_unbacked_symint(), env.create_unbacked_symint()
    assert same_dimension(one, one + 0)
    assert not same_dimension(one, other)
    assert not same_dimension(one, 3)
    assert join_shapes((one, 2), (one, 2)) == (one, 2)
    assert join_shapes((one,), (other,)) == (None,)
    assert show_shape((one, 2, None)) == "(?, 2, ?)"
    assert show_shape(None) == "of unknown rank"


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        (NumberType(int), NumberType(int), NumberType(int)),
        (NumberType(bool), NumberType(int), NumberType(int, mixed=True)),
        (NumberType(bool), NumberType(float), NumberType(float, mixed=True)),
        (NumberType(int), NumberType(float, may_be_none=True), NumberType(float, mixed=True, may_be_none=True)),
        (NumberType(int), NumberType(int, may_be_unbound=True), NumberType(int, may_be_unbound=True)),
        (f32(2), f32(2), f32(2)),
        (f32(2, may_be_none=True), f32(3), f32(None, may_be_none=True)),
        (f32(2, may_be_unbound=True), f32(2), f32(2, may_be_unbound=True)),
    ],
)
def test_types_that_join(left: Type, right: Type, joined: Type) -> None:
    assert join_types(left, right) == joined
    assert join_types(right, left) == joined


def test_a_gradient_on_one_path_is_a_gradient() -> None:
    joined = join_types(f32(2, requires_grad=True), f32(2))
    assert isinstance(joined, TensorType)
    assert joined.requires_grad


@pytest.mark.parametrize(
    ("kind", "dtype", "fits"),
    [
        (bool, torch.bool, True),
        (bool, torch.int64, False),
        (int, torch.int64, True),
        (int, torch.float16, True),
        (int, torch.bool, False),
        (float, torch.float32, True),
        (float, torch.complex64, True),
        (float, torch.int64, False),
    ],
)
def test_a_number_meets_a_scalar(kind: type, dtype: torch.dtype, fits: bool) -> None:
    number, scalar = NumberType(kind), TensorType(dtype, CPU, ())
    if not fits:
        with pytest.raises(JoinFailure) as caught:
            as_tensor_type(number, scalar)
        assert caught.value.code == "SG202"
        return
    for joined in (join_types(number, scalar), join_types(scalar, number)):
        assert isinstance(joined, TensorType)
        assert (joined.dtype, joined.shape) == (dtype, ())


@pytest.mark.parametrize(
    ("left", "right", "code"),
    [
        (f32(2), TensorType(torch.float64, CPU, (2,)), "SG202"),
        (f32(2), TensorType(torch.float32, torch.device("meta"), (2,)), "SG202"),
        (f32(2), f32(), "SG201"),
        (f32(2), NumberType(int), "SG201"),
        (NumberType(float), TensorType(torch.int64, CPU, ()), "SG202"),
    ],
)
def test_types_that_do_not(left: Type, right: Type, code: str) -> None:
    with pytest.raises(JoinFailure) as caught:
        join_types(left, right)
    assert caught.value.code == code
