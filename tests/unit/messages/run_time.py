"""Values that only the run knows, where Python or torch need them before."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.messages.case import refused

X = torch.ones(2)


@sg.not_to_static
def by_hand(x: Tensor) -> Any:
    return x + 1 if x.sum() > 0 else x


@refused("SG301", X)
def left_to_python(x: Tensor) -> Any:
    return by_hand(x)


@refused("SG301", X)
def the_hash_of_a_number(x: Tensor) -> Any:
    return hash(x.sum().item())


@refused("SG310", X)
def numpy_on_a_tensor(x: Tensor) -> Any:
    return torch.from_numpy(np.fft.fft(x.numpy()).real)


@refused("SG301", X)
def a_number_meets_an_array(x: Tensor) -> Any:
    return np.linspace(0, x.sum().item(), 3)


@refused("SG301", X)
def the_id_of_a_number(x: Tensor) -> Any:
    return id(x.sum().item())


@refused("SG301", X)
def the_address_of_a_tensor(x: Tensor) -> Any:
    y = x + 1
    return y.data_ptr()


@refused("SG301", X)
def sorted_one_way_or_the_other(x: Tensor) -> Any:
    return sorted([x.sum(), x.mean()], reverse=bool(x.sum() > 0))


@refused("SG301", X)
def requires_grad_of_one_path(x: Tensor) -> Any:
    y = x if x.sum() > 0 else x + torch.ones(2, requires_grad=True)
    return 1 if y.requires_grad else 2


@refused("SG301", X)
def the_hash_of_a_complex_number(x: Tensor) -> Any:
    return hash(torch.complex(x, x).sum().item())


@refused("SG302", X)
def a_text_as_a_key(x: Tensor) -> Any:
    return {f"head {int(x.argmax())}": x}


@refused("SG306", X, False)
def an_iterator_by_one_of_two_returns(x: Tensor, plain: bool) -> Any:
    if plain:
        return x
    return iter([x.sum()])


@refused("SG306", X)
def an_iterator_by_either_of_two_returns(x: Tensor) -> Any:
    iterator = iter([x.sum()])
    if x.sum() > 0:
        return x, iterator
    return -x, iterator


@refused("SG302", X)
def a_text_taken_apart(x: Tensor) -> Any:
    return str(x.sum().item()).split(".")


@refused("SG303", torch.ones(2, 3), input_spec=[sg.InputSpec([None, 3])])
def a_size_written_out(x: Tensor) -> Any:
    return x.reshape(6)


@refused("SG304", X)
def python_for_each_element(x: Tensor) -> Any:
    return x.clone().apply_(lambda v: v if v > 0 else 0.1 * v)


@refused("SG304", X)
def a_transform_of_torch(x: Tensor) -> Any:
    return torch.func.jacrev(lambda v: v * 2 if v.sum() > 0 else v)(x)


@refused("SG304", torch.ones(6))
def a_size_of_the_run(x: Tensor) -> Any:
    return torch.split_copy(x[x > 0], 2)


@refused("SG304", torch.ones(6, 2))
def a_form_by_the_size(x: Tensor) -> Any:
    return torch.cov(x[x[:, 0] > 0])


@refused("SG306", X)
def a_closure_returned(x: Tensor) -> Any:
    scale = x.mean()
    return lambda y: y * scale


@refused("SG306", X)
def a_generator_returned(x: Tensor) -> Any:
    return (row * 2 for row in x)


@refused("SG306", X)
def an_iterator_returned(x: Tensor) -> Any:
    return iter([x, x + 1])


@refused("SG306", X)
def a_range_returned(x: Tensor) -> Any:
    return range(int(x.sum()))


class Named(dict[str, Any]):
    pass


@refused("SG306", X)
def a_dict_of_a_class_of_its_own(x: Tensor) -> Any:
    found = Named()
    found["x"] = x * 2
    return found


@refused("SG306", X)
class KeepsAClosure(torch.nn.Module):
    def forward(self, x: Tensor) -> Any:
        scale = x.mean()
        self.scaled = lambda y: y * scale
        return x


@refused("SG303", torch.ones(2, 3), input_spec=[sg.InputSpec([None, 3])])
def added_to_a_fixed_size(x: Tensor) -> Any:
    def shifted(y: Tensor) -> Tensor:
        return y + torch.ones(2, 3)

    return shifted(x * 2)


@refused("SG305", X)
def a_class_is_changed(x: Tensor) -> Any:
    x.tag = "seen"  # type: ignore[attr-defined]  # the user's way
    return x


@refused("SG305", X)
def numpy_draws(x: Tensor) -> Any:
    return x if np.random.choice(["up", "down"]) == "up" else -x


@refused("SG306", X)
def a_new_layer_returned(x: Tensor) -> Any:
    layer = torch.nn.Linear(2, 2)
    return layer, layer(x)
