"""Values that are None on one path handed to code that is not rewritten: torch's, a library's, the user's."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import stillgraph as sg
from tests.unit.trace.agreement import IF, agree, agree_fresh, count, program_of

UP, DOWN = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[-1.0, -2.0], [-3.0, -4.0]])


def maybe(x: Tensor, value: Any) -> Any:
    return None if x.sum() > 0 else value


@pytest.fixture(scope="module", autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


CELL, LSTM_CELL, RNN, GRU, LSTM = nn.GRUCell(2, 2), nn.LSTMCell(2, 2), nn.RNN(2, 2), nn.GRU(2, 2), nn.LSTM(2, 2)
ATTENTION = nn.MultiheadAttention(2, 1)
ENCODER = nn.TransformerEncoderLayer(2, 1, 4, dropout=0.0)
LINEAR = nn.Linear(2, 2)


def a_cell(x: Tensor) -> Any:
    return CELL(x, maybe(x, x * 2))


def a_cell_with_two(x: Tensor) -> Any:
    return LSTM_CELL(x, maybe(x, (x, x * 2)))


def a_recurrent_layer(x: Tensor) -> Any:
    return RNN(x, maybe(x, x[:1]))


def a_recurrent_layer_with_two(x: Tensor) -> Any:
    return LSTM(x, maybe(x, (x[:1], x[1:])))


def attention(x: Tensor) -> Any:
    return ATTENTION(x, x, x, key_padding_mask=maybe(x, torch.tensor([False, True])))


def attention_with_two(x: Tensor) -> Any:
    mask = maybe(x, torch.tensor([[False, True], [False, False]]))
    return ATTENTION(x, x, x, attn_mask=mask, key_padding_mask=maybe(x, torch.tensor([False, False])))


def an_encoder(x: Tensor) -> Any:
    return ENCODER(x, src_mask=maybe(x, torch.tensor([[0.0, -9.0], [0.0, 0.0]])))


def a_layer_that_wants_a_tensor(x: Tensor) -> Any:
    return LINEAR(maybe(x, x))


# ---- functions of torch's
def a_weight(x: Tensor) -> Any:
    return F.layer_norm(x, (2,), maybe(x, x[0]))


def a_bound(x: Tensor) -> Any:
    return torch.clamp(x, min=maybe(x, -1.5), max=2)


def a_bound_that_is_a_tensor(x: Tensor) -> Any:
    return torch.clamp(x, min=maybe(x, x.mean()))


def an_index(x: Tensor) -> Any:
    return x[maybe(x, 1)]


def the_end_of_a_slice(x: Tensor) -> Any:
    return x[: maybe(x, 1)]


def the_start_of_a_slice(x: Tensor) -> Any:
    return x[maybe(x, x[0].argmax().item()) :].sum()


def an_operation_that_wants_a_tensor(x: Tensor) -> Any:
    return torch.relu(maybe(x, x))


def operands_that_want_tensors(x: Tensor) -> Any:
    return torch.stack([maybe(x, x), x])


def arithmetic(x: Tensor) -> Any:
    return x * (maybe(x, 3.0) + 1)


def a_shape(x: Tensor) -> Any:
    return maybe(x, x).shape[0]


def a_size(x: Tensor) -> Any:
    return maybe(x, x).size(0)


def a_dtype(x: Tensor) -> Any:
    return maybe(x, x).dtype


def a_length(x: Tensor) -> Any:
    return len(maybe(x, x))


# ---- functions of the user's behind others
def block(x: Tensor, v: Any = None) -> Tensor:
    return x * 2 if v is None else x * 3


@sg.not_to_static
def left_alone(x: Tensor, v: Any = None) -> Tensor:
    return x * 2 if v is None else x * 3


@torch.no_grad()
def without_gradients(x: Tensor, v: Any) -> Tensor:
    return x * 2 if v is None else x * 3


class Block(nn.Module):
    def forward(self, x: Tensor, v: Any = None) -> Tensor:
        return block(x, v)


BLOCK = Block()
HOOKED = Block()
HOOKED.register_forward_pre_hook(lambda module, args: (args[0] + (1 if args[1] is None else 2), args[1]))


class Applied(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, v: Any) -> Tensor:
        return x * 2 if v is None else x * 3

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient, None


class Dictionary(dict[str, int]):
    def __init__(self, v: Any) -> None:
        super().__init__()
        self["k"] = 1 if v is None else 2


@dataclasses.dataclass
class Data:
    v: Any
    k: int = 0

    def __post_init__(self) -> None:
        self.k = 1 if self.v is None else 2


def checkpointed(x: Tensor) -> Any:
    return checkpoint(block, x, maybe(x, x), use_reentrant=False)


def partial(x: Tensor) -> Any:
    return functools.partial(block, x)(maybe(x, x))


def mapped(x: Tensor) -> Any:
    return list(map(functools.partial(left_alone, x), [maybe(x, x), x]))


def reduced(x: Tensor) -> Any:
    return functools.reduce(left_alone, [x, maybe(x, x)])


def ignored(x: Tensor) -> Any:
    return left_alone(x, v=maybe(x, x))


def in_a_mode(x: Tensor) -> Any:
    return without_gradients(x, maybe(x, x))


def by_torch(x: Tensor) -> Any:
    return torch.func.functional_call(BLOCK, {}, (x, maybe(x, x)))


def hooked(x: Tensor) -> Any:
    return HOOKED(x, maybe(x, x))


def applied(x: Tensor) -> Any:
    return Applied.apply(x, maybe(x, x))


def made_of_a_dict(x: Tensor) -> Any:
    return x * Dictionary(maybe(x, x))["k"]


def made_by_a_dataclass(x: Tensor) -> Any:
    return x * Data(maybe(x, x)).k


HANDED = (
    *(a_cell, a_cell_with_two, a_recurrent_layer, a_recurrent_layer_with_two, attention, attention_with_two),
    *(an_encoder, a_layer_that_wants_a_tensor, a_weight, a_bound, a_bound_that_is_a_tensor, an_index),
    *(the_end_of_a_slice, the_start_of_a_slice, an_operation_that_wants_a_tensor),
    *(operands_that_want_tensors, arithmetic, a_shape, a_size, a_dtype, a_length, checkpointed, partial, mapped),
    *(reduced, ignored, in_a_mode, by_torch, hooked, applied, made_of_a_dict, made_by_a_dataclass),
)


@pytest.mark.parametrize("function", HANDED, ids=lambda function: function.__name__)
def test_code_that_is_not_rewritten_is_told_of_none(function: Any) -> None:
    agree(function, UP, DOWN)


def test_an_output_of_transformers_leaves_out_what_is_none() -> None:
    output = pytest.importorskip("transformers.modeling_outputs").BaseModelOutput

    def function(x: Tensor) -> Any:
        return output(last_hidden_state=x, hidden_states=maybe(x, x * 2)).to_tuple()

    agree(function, UP, DOWN)


# ---- over several calls, and in loops
class State:
    def __init__(self) -> None:
        self.h: Any = None
        self.step = 0


@pytest.mark.parametrize("layer", [CELL, LSTM_CELL, GRU, LSTM], ids=lambda layer: type(layer).__name__)
@pytest.mark.parametrize("by_tensor", [False, True])
def test_a_state_that_is_reset_begins_anew(layer: nn.Module, by_tensor: bool) -> None:
    whole = isinstance(layer, nn.RNNBase)

    def make() -> Any:
        state = State()

        def step(x: Tensor) -> Any:
            if (x.sum() if by_tensor else state.step) % 3 == 0:
                state.h = None
            if whole:
                result, state.h = layer(x, state.h)
            else:
                result = state.h = layer(x, state.h)
            state.step += 1
            return result

        return step

    calls = [torch.full((1, 2), value) for value in (1.5, 1.0, 2.0, 3.0, 1.0, 0.0, 1.0)]
    agree_fresh(make, *calls, programs=6)


def hidden_from_the_second_on(xs: Tensor) -> Any:
    h = None
    for x in xs:
        if x.sum() > 0:
            h = CELL(x[None], h)
    return h


def hidden_while(x: Tensor) -> Any:
    h = None
    while x.sum() < 10:
        h = CELL(x, h)
        x = x + 1
    return h


@pytest.mark.parametrize("function", [hidden_from_the_second_on, hidden_while], ids=lambda f: f.__name__)
def test_a_loop_may_begin_with_none(function: Any) -> None:
    agree(function, UP, DOWN, UP * 9)


# ---- what is known is not asked again
def made_where_missing(x: Tensor) -> Any:
    h = maybe(x, x * 2)
    if h is None:
        h = torch.zeros_like(x)
    return CELL(x, h), CELL(x + 1, h)


def raised_where_missing(x: Tensor) -> Any:
    h = maybe(x, x * 2)
    if h is None:
        raise ValueError("no state")
    return CELL(x, h), CELL(x + 1, h)


@pytest.mark.parametrize(("function", "branches"), [(made_where_missing, 2), (raised_where_missing, 2)])
def test_a_value_that_is_certainly_there_is_handed_over_once(function: Any, branches: int) -> None:
    agree(function, UP, DOWN)
    assert count(program_of(function, UP), IF) == branches


def early_stopping() -> Any:
    state = State()

    def step(x: Tensor) -> Any:
        loss = x.sum()
        if loss > 30:
            state.h = None
        if not state.h or loss < state.h:
            state.h = loss.item()
        return state.h

    return step


def index_of_the_first(x: Tensor) -> Any:
    index = None
    for i, value in enumerate(x[0]):
        if value > 1:
            index = i
            break
    return x * 2 if index else x * 3


def test_state_that_is_a_number_or_none_is_carried_from_call_to_call() -> None:
    agree_fresh(early_stopping, *(torch.tensor([v, v]) for v in (9.0, 4.0, 7.0, 20.0, 5.0, 0.0, 3.0)), programs=4)
    agree(index_of_the_first, UP, DOWN, UP + 1)
