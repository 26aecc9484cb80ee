from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from stillgraph.cli.inputs import Example, parse_inputs, read_values, told


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("float32[2,3]", torch.float32, (2, 3)),
        ("float32[]", torch.float32, ()),
        (" bfloat16[ 4 ] ", torch.bfloat16, (4,)),
        ("int64[2]", torch.int64, (2,)),
        ("bool[5]", torch.bool, (5,)),
        ("complex64[2]", torch.complex64, (2,)),
        ("float64[0,3]", torch.float64, (0, 3)),
    ],
)
def test_a_tensor(text: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    example = parse_inputs([text])
    (tensor,) = example.args
    assert tensor.dtype is dtype
    assert tensor.shape == shape
    assert example.input_spec is None


def test_the_numbers_are_random_but_the_same_each_time() -> None:
    first, second = parse_inputs(["float32[8]", "float32[8]"]).args
    assert not torch.equal(first, second)
    assert torch.equal(first, parse_inputs(["float32[8]"]).args[0])


@pytest.mark.parametrize("text", ["int64[1000](3..5)", "float32[1000](3..5)", "float32[1000]( 3.0 .. 5.0 )"])
def test_a_range_holds_its_lower_end_only(text: str) -> None:
    (tensor,) = parse_inputs([text]).args
    assert tensor.min() >= 3
    assert tensor.max() < 5
    assert tensor.unique().numel() > 1


def test_negative_bounds() -> None:
    (tensor,) = parse_inputs(["int32[1000](-3..-1)"]).args
    assert set(tensor.tolist()) == {-3, -2}


@pytest.mark.parametrize(("text", "value"), [("=3", 3), ("='a'", "a"), ("=(1, None)", (1, None)), ("= True", True)])
def test_a_python_value(text: str, value: object) -> None:
    assert parse_inputs([text]).args == (value,)


def test_keywords() -> None:
    example = parse_inputs(["float32[2]", "scale=float32[]", "times==3"])
    assert len(example.args) == 1
    assert example.kwargs["scale"].shape == ()
    assert example.kwargs["times"] == 3


def test_an_open_size_is_a_specification() -> None:
    example = parse_inputs(["float32[?,3]", "=2", "int64[5]"])
    assert example.args[0].shape[1:] == (3,)
    assert example.input_spec is not None
    first, number, last = example.input_spec
    assert tuple(first.shape) == (None, 3)
    assert number is None
    assert example.args[1] == 2
    assert tuple(last.shape) == (5,)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["float32"], "neither a tensor such as"),
        (["float99[2]"], "'float99' is no dtype"),
        (["nn[2]"], "'nn' is no dtype"),
        (["float32[2,x]"], "'x' in 'float32[2,x]' is neither a size nor ?"),
        (["float32[-1]"], "neither a size nor ?"),
        (["int64[2](a..b)"], "two numbers"),
        (["int64[2](5..5)"], "holds no value"),
        (["int64[2](0.5..2)"], "two numbers of its dtype"),
        (["bool[2](0..1)"], "holds no value of its dtype"),
        (["=x"], "'x' is not a Python literal"),
        (["="], "not a Python literal"),
        (["a==1", "a==2"], "'a' is given twice"),
        (["a=float32[?]"], "needs a positional argument"),
    ],
)
def test_what_is_wrong_is_said(texts: list[str], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_inputs(texts)
    assert says in str(caught.value)


def test_lists_tuples_and_dicts() -> None:
    texts = ["[float32[2,3], int64[](0..5)]", "(float32[2], =(1, 2),)", "{mask: bool[4], pair: [=1, float32[]]}"]
    xs, pair, named, nothing, empty = parse_inputs([*texts, "[]", "()", "state=[float32[2]]"]).args
    assert [x.shape for x in xs] == [(2, 3), ()]
    assert isinstance(pair, tuple)
    assert (pair[0].shape, pair[1]) == ((2,), (1, 2))
    assert list(named) == ["mask", "pair"]
    assert named["mask"].dtype is torch.bool
    assert named["pair"][0] == 1
    assert (nothing, empty) == ([], ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[float32[?]]", "needs an argument of its own"),
        ("[float]", "'float' is neither a tensor"),
        ("{bool[4]}", "wants a name before each value"),
        ("[float32[2]", "neither a tensor"),
        ("[,]", "'' is neither a tensor"),
    ],
)
def test_wrong_lists(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_inputs([text])


# ---- values from a file
NOTHING = Example((), {}, None)


def test_arrays_in_order_or_by_name(tmp_path: Path) -> None:
    path = tmp_path / "values.npz"
    np.savez(path, np.ones(2, "float32"), np.int64(3))
    example = read_values(path, NOTHING)
    assert [value.tolist() for value in example.args] == [[1.0, 1.0], 3]
    np.savez(path, scale=np.ones(2))
    assert read_values(path, NOTHING).kwargs["scale"].dtype is torch.float64
    np.savez(path, np.ones(1), scale=np.ones(2))
    with pytest.raises(ValueError, match="some arrays have names and others have none"):
        read_values(path, NOTHING)


def test_a_tensor_or_a_dict(tmp_path: Path) -> None:
    path = tmp_path / "values.pt"
    torch.save(torch.ones(2), path)
    assert len(read_values(path, NOTHING).args) == 1
    torch.save({"x": torch.ones(2), "scale": 3}, path)
    assert read_values(path, NOTHING).kwargs["scale"] == 3


def test_a_file_that_could_run_code_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "values.pt"
    torch.save((torch.ones(2), re.compile), path)
    with pytest.raises(ValueError, match="holds no arguments"):
        read_values(path, NOTHING)


def test_an_example_in_a_few_words() -> None:
    args = (torch.tensor([1.0, 2.5]), torch.tensor(3), torch.ones(2, dtype=torch.bool), torch.ones(0), "mean")
    assert told(Example(args, {"k": 1}, None)) == (
        "(float32[2] from 1 to 2.5, int64[] of 3, bool[2], float32[0], 'mean', k=1)"
    )
