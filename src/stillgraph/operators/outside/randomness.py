"""Random generators and their states: the program makes, reads and sets them when it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.operations import generator_state, make_generator, set_generator_state
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import here


def _effect(function: Callable[..., Any], result: Any = None) -> Callable[..., Any]:
    """A function that seeds a generator: an effect of the program."""

    def recorded(*args: Any) -> Any:
        capturing().emit("call_function", function, args, {})
        return result

    return recorded


def _state(op: str, target: Any, args: tuple[Any, ...], size: int) -> Any:
    capture = capturing()
    fake = capture.symbolic.empty((size,), torch.uint8, torch.device("cpu"), False)
    return capture.bind(fake, capture.emit(op, target, args, {}))


def _get_state() -> Any:
    return _state("call_function", generator_state, ("cpu",), torch.get_rng_state().numel())


def _set_state(new_state: Any) -> None:
    capturing().emit("call_function", set_generator_state, (new_state, "cpu"), {})


def _get_cuda_state(device: Any = "cuda") -> Any:
    device = _cuda_device(device)
    return _state("call_function", generator_state, (str(device),), torch.cuda.get_rng_state(device).numel())


def _set_cuda_state(new_state: Any, device: Any = "cuda") -> None:
    capturing().emit("call_function", set_generator_state, (new_state, str(_cuda_device(device))), {})


def _cuda_device(device: Any) -> torch.device:
    return torch.device("cuda", device) if isinstance(device, int) else torch.device(device)


@contextlib.contextmanager
def _fork(
    devices: Any = None, enabled: bool = True, _caller: str = "", _devices_kw: str = "", device_type: str = "cuda"
) -> Iterator[None]:
    """``torch.random.fork_rng``. What is raised in the block finds the states put back, so it counts as watched."""
    if not enabled:
        yield
        return
    if device_type != "cuda":
        raise refuse("SG305", f"the random generators of {device_type} are forked", location=here())
    everywhere = range(torch.cuda.device_count()) if devices is None else list(devices)
    state, cuda_states = _get_state(), [(device, _get_cuda_state(device)) for device in everywhere]

    def put_back() -> None:
        _set_state(state)
        for device, each in cuda_states:
            _set_cuda_state(each, device)

    try:
        yield
    except Exception:  # a capture that ends here ends by what is no Exception
        put_back()
        raise
    put_back()


def _make(device: Any = "cpu") -> torch.Generator:
    """``torch.Generator()``: what stands for it in the capture is one as well, of which only the device matters."""
    capture = capturing()
    made = torch.Generator(device)
    node = capture.emit("call_function", make_generator, (str(made.device),), {})
    node.meta["val"] = made
    capture.region.define(made, node)
    return made


def call_method(capture: Session, generator: torch.Generator, name: str, args: tuple[Any, ...]) -> Any:
    """A method of a generator, be it from outside the function or made inside."""
    if name in ("manual_seed", "set_state"):
        capture.emit("call_method", name, (generator, *args), {})
        return generator
    if name == "get_state":
        return _state("call_method", name, (generator,), generator.get_state().numel())
    if name in ("seed", "initial_seed"):
        return capture.fresh_result(int, capture.emit("call_method", name, (generator,), {}))
    raise refuse("SG305", f"the method {name} of a random generator is called", location=here())


def unwrapped_seed(function: Any) -> Any:
    """``torch.manual_seed`` itself, which Dynamo wraps once it is imported, be that before this package or after."""
    is_seed = isinstance(function, FunctionType) and function.__name__ == "manual_seed"
    inner = getattr(function, "__wrapped__", None) if is_seed else None
    return function if inner is None else getattr(inner, "__wrapped__", inner)


RANDOMNESS: dict[Any, Callable[..., Any]] = {
    torch.random.manual_seed: _effect(torch.random.manual_seed, torch.default_generator),
    torch.cuda.manual_seed: _effect(torch.cuda.manual_seed),
    torch.cuda.manual_seed_all: _effect(torch.cuda.manual_seed_all),
    torch.get_rng_state: _get_state,
    torch.set_rng_state: _set_state,
    torch.cuda.get_rng_state: _get_cuda_state,
    torch.cuda.set_rng_state: _set_cuda_state,
    torch.random.fork_rng: _fork,
    torch.Generator: _make,
}
