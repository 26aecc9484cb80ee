"""Modules that torch.distributed wraps, in a group of one process; `tests/e2e/test_distributed.py` has several."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace import agreement

INPUTS = [torch.full((3, 4), 0.5), -torch.ones(3, 4), torch.linspace(-1, 1, 12).reshape(3, 4), torch.full((3, 4), 3.0)]


@pytest.fixture(scope="module", autouse=True)
def group() -> Iterator[None]:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


# ---- eager against static
def refusal(function: Any, code: str) -> str:
    """What a refusal says."""
    error = agreement.refusal(function, INPUTS[0])
    assert error.reason.code == code
    return error.message


def calls(make: Callable[[], nn.Module], use: Callable[[Any], Any], static: bool) -> tuple[list[Any], Any]:
    """What each call gives: the result or the exception, the gradients of input and parameters, the buffers."""
    torch.manual_seed(0)
    module = make()
    function = use(module)
    function = sg.to_static(function, backend="eager") if static else function
    seen: list[Any] = []
    for given in (*INPUTS, *INPUTS):
        module.zero_grad(set_to_none=True)
        x = given.clone().requires_grad_()
        try:
            result = function(x)
            leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, Tensor)]
            sum((leaf.float().sum() for leaf in leaves if leaf.requires_grad), torch.zeros(())).backward()
        except (ValueError, RuntimeError) as error:
            if isinstance(error, sg.CaptureError):
                raise
            seen.append((type(error), str(error)))
            continue
        gradients = {name: whole(p.grad) for name, p in module.named_parameters()}
        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        seen.append((result, x.grad, gradients, buffers))
    return seen, function


def whole(gradient: Any) -> Any:
    return gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient


def agree(make: Callable[[], nn.Module], use: Callable[[Any], Any]) -> list[Any]:
    """Assert that static calls do what eager ones do, in one program; what they do."""
    expected, _ = calls(make, use, static=False)
    found, function = calls(make, use, static=True)
    for number, (theirs, mine) in enumerate(zip(expected, found, strict=True)):
        assert_same(theirs, mine, f"call {number}")
    assert getattr(function, "forward", function).cache_info().programs == 1
    return expected


# ---- what is wrapped
class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        h = self.a(x)
        return self.b(h).relu() if h.sum() > 0 else h.tanh()


class Keywords(Block):
    def forward(self, x: Tensor, *, mask: Tensor | None = None, scale: float = 1.0) -> dict[str, Any]:
        return {"y": super().forward(x) * scale, "mask": mask, "n": 3, "x": x}


@dataclass
class Result:
    y: Tensor
    n: int
    none: None = None


class GivesDataclass(Block):
    def forward(self, x: Tensor) -> Result:
        return Result(super().forward(x), 2)


class GivesPerhapsNone(Block):
    def forward(self, x: Tensor) -> Any:
        y = super().forward(x)
        return (y, None) if y.sum() > 0 else (y, y * 2)


class GivesItsInput(Block):
    def forward(self, x: Tensor) -> Any:
        return x, super().forward(x)


class Raises(Block):
    def forward(self, x: Tensor) -> Any:
        if x.sum() > 5:
            raise ValueError("too large")
        return super().forward(x)


class Counts(Block):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Tensor) -> Any:
        self.steps += 1
        x = self.norm(x)
        return super().forward(x) * self.steps if x.max() > 0.5 else x


class Lengthens(Block):
    def forward(self, x: Tensor) -> Any:
        found = []
        while x.abs().max() > 0.3 and len(found) < 4:
            x = super().forward(x) * 0.5
            found.append(x)
        return found


def parallel(module: nn.Module) -> Any:
    return DistributedDataParallel(module, find_unused_parameters=True)


def called(module: Any) -> Any:
    return lambda x: module(x)


# ---- DistributedDataParallel
KINDS = [Block, Keywords, GivesPerhapsNone, GivesItsInput, Raises, Counts]


@pytest.mark.parametrize("kind", KINDS)
def test_a_static_function_calls_a_parallel_module(kind: type[nn.Module]) -> None:
    agree(lambda: parallel(kind()), called)


@pytest.mark.parametrize("kind", KINDS)
def test_a_parallel_module_is_static(kind: type[nn.Module]) -> None:
    agree(lambda: parallel(kind()), lambda module: module)


def test_what_goes_in_and_comes_out_may_be_structured() -> None:
    def keywords(module: Any) -> Any:
        return lambda x: module(x, mask=[x, (x > 0,)], scale=2.0)

    def parts(module: Any) -> Any:
        def function(x: Tensor) -> Any:
            result = module(x)
            return result.y, result.n, result.none

        return function

    agree(lambda: parallel(Keywords()), keywords)
    agree(lambda: parallel(GivesDataclass()), parts)


def test_what_has_no_history_passes_through_as_itself() -> None:
    def use(module: Any) -> Any:
        def function(x: Tensor) -> Any:
            passed, result = module(x)
            return passed is x, result

        return function

    seen = agree(lambda: parallel(GivesItsInput()), use)
    assert seen[0][0][0] is True


def test_a_parallel_module_in_a_branch_and_in_a_loop() -> None:
    def branch(module: Any) -> Any:
        return lambda x: module(x) if x.mean() > 0.1 else x * 2

    def loop(module: Any) -> Any:
        def function(x: Tensor) -> Any:
            times = 0
            while x.abs().max() > 0.3 and times < 1:
                x = module(x) * 0.5
                times += 1
            return x, times

        return function

    agree(lambda: parallel(Block()), branch)
    agree(lambda: parallel(Block()), loop)


def test_what_the_wrapper_refuses_in_the_run_is_its_own_exception() -> None:
    def twice(module: Any) -> Any:
        return lambda x: module(x) + module(-x)

    seen = agree(lambda: parallel(Block()), twice)
    assert any(call[0] is RuntimeError and "ready only once" in call[1] for call in seen)


def test_an_exception_from_within_is_caught_outside() -> None:
    def use(module: Any) -> Any:
        def function(x: Tensor) -> Any:
            try:
                return module(x)
            except ValueError:
                return x * 0

        return function

    agree(lambda: parallel(Raises()), use)


def test_hooks_of_the_users_on_a_parallel_module() -> None:
    def make() -> Any:
        module = parallel(Block())
        module.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        module.register_forward_hook(lambda module, args, result: result * 2 if result.sum() > 0 else result)
        return module

    agree(make, called)


def test_a_parallel_module_without_gradients() -> None:
    def use(module: Any) -> Any:
        def function(x: Tensor) -> Any:
            with torch.no_grad():
                y = module(x)
            return y * x

        return function

    agree(lambda: parallel(Block()), use)


def test_a_replaced_parameter_is_seen() -> None:
    module = parallel(Block())
    static = sg.to_static(lambda x: module(x), backend="eager")
    static(INPUTS[0])
    module.module.a.weight = nn.Parameter(torch.zeros(4, 4))
    assert static(INPUTS[0]).equal(module(INPUTS[0]))


def test_another_wrapper_gets_a_program_of_its_own() -> None:
    modules = {"it": parallel(Block())}
    static = sg.to_static(lambda x: modules["it"](x), backend="eager")
    static(INPUTS[0])
    modules["it"] = parallel(Block())
    static(INPUTS[0]).sum().backward()
    assert modules["it"].module.a.weight.grad is not None
    assert static.cache_info().programs == 2


def test_a_list_of_unknown_length_is_refused_and_the_other_order_works() -> None:
    module = parallel(Lengthens())
    assert "a list of unknown length" in refusal(lambda x: module(x), "SG309")
    expected = [module(x) for x in INPUTS]
    module.module = sg.to_static(module.module, backend="eager")
    assert_same(expected, [module(x) for x in INPUTS])


def test_programs_say_what_they_leave_to_torch_and_are_not_exported() -> None:
    module = parallel(Block())
    program = sg.export(lambda x: module(x), (INPUTS[0],))
    text = str(program)
    assert "begin DistributedDataParallel: x" in text
    assert "end DistributedDataParallel: return_value" in text
    with pytest.raises(sg.ExportError, match=r"torch\.distributed takes part"):
        sg.save(program, "unwritten.pt2", args=(INPUTS[0],))


@pytest.mark.parametrize("wrap", [parallel, fully_shard])
def test_nothing_is_kept_alive(wrap: Callable[[nn.Module], nn.Module]) -> None:
    def trained() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        module = wrap(Block())
        static = sg.to_static(lambda x: module(x), backend="eager")
        static(INPUTS[0]).sum().backward()
        static(INPUTS[1]).sum().backward()
        return weakref.ref(module), weakref.ref(static)

    references = trained()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


# ---- fully_shard
class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = Block(), Block(), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.second(self.first(x)))


class InBranches(Two):
    def forward(self, x: Tensor) -> Any:
        x = self.first(x) if x.sum() > 0 else self.second(x) * 2
        return self.head(x)


class InLoop(Two):
    def forward(self, x: Tensor) -> Any:
        times = 0
        while x.abs().max() > 0.2 and times < 3:
            x = self.first(x) * 0.5
            times += 1
        return self.head(self.second(x)), times


class ReadsItsOwn(Two):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x) + self.head.weight.sum()


class PartlyFrozen(Two):
    def __init__(self) -> None:
        super().__init__()
        self.first.requires_grad_(False)


class WithKeywords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Keywords()

    def forward(self, x: Tensor) -> Any:
        result = self.first(x, mask=x > 0, scale=3.0)
        return result["y"] + result["x"], result["n"]


class Counting(Two):
    def __init__(self) -> None:
        super().__init__()
        self.first = Counts()  # type: ignore[assignment]


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        self.second = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: Tensor) -> Any:
        y = self.second(self.first(x[None]))
        return y if y.sum() > 3 else y * 2


def sharded(module: Any, **options: Any) -> Any:
    for name in ("first", "second"):
        if hasattr(module, name):
            fully_shard(getattr(module, name), **options)
    return fully_shard(module, **options)


@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module")
@pytest.mark.parametrize(
    "kind", [Two, InBranches, InLoop, ReadsItsOwn, PartlyFrozen, WithKeywords, Counting, Layers, Raises]
)
def test_sharded_modules(kind: type[nn.Module]) -> None:
    agree(lambda: sharded(kind()), called)
    agree(lambda: sharded(kind()), lambda module: module)


def test_shards_of_several_modules_at_once_and_within_each_other() -> None:
    def together() -> Any:
        module = Two()
        fully_shard([module.first, module.second])
        return fully_shard(module)

    def within() -> Any:
        module = Two()
        fully_shard(module.first.a)
        fully_shard(module.first)
        return fully_shard(module)

    agree(together, called)
    agree(within, called)


def test_dtypes_of_modules_that_are_sharded_at_once() -> None:
    def together() -> Any:
        module, policy = Two(), MixedPrecisionPolicy(torch.bfloat16)
        fully_shard([module.first, module.second], mp_policy=policy)
        return fully_shard(module, mp_policy=policy)

    if torch.__version__ >= (2, 13):
        agree(together, called)
    else:  # the hook before the second one does not cast
        assert "several modules are sharded at once" in refusal(called(together()), "SG309")


@pytest.mark.parametrize(
    "options",
    [
        {"mp_policy": MixedPrecisionPolicy(torch.bfloat16)},
        {"mp_policy": MixedPrecisionPolicy(torch.bfloat16, cast_forward_inputs=True, output_dtype=torch.bfloat16)},
        {"offload_policy": CPUOffloadPolicy(pin_memory=False)},
        {"reshard_after_forward": False},
    ],
    ids=["param_dtype", "output_dtype", "offload", "kept whole"],
)
def test_policies(options: dict[str, Any]) -> None:
    seen = agree(lambda: sharded(Two(), **options), called)
    dtype = torch.bfloat16 if "mp_policy" in options else torch.float32
    assert all(call[0].dtype == dtype for call in seen)


def test_hooks_of_the_users_see_whole_parameters() -> None:
    def make() -> Any:
        module = sharded(Two())
        module.first.register_forward_hook(lambda module, args, y: y * 2 if y.sum() > 0 else y)
        module.second.register_forward_pre_hook(lambda module, args: (args[0] + module.a.weight.sum(),))
        return module

    agree(make, called)


def test_a_capture_that_is_refused_leaves_the_shards_where_they_are() -> None:
    class Refused(Two):
        def forward(self, x: Tensor) -> Any:
            return self.second(x) if str(self.first(x)).split() else x

    module = sharded(Refused())
    before = [id(parameter) for parameter in module.parameters()]
    refusal(lambda x: module(x), "SG302")
    assert [id(parameter) for parameter in module.parameters()] == before
    module(INPUTS[0]).sum().backward()


def test_what_is_refused_of_sharded_modules() -> None:
    module = sharded(Two())

    def regularised(x: Tensor) -> Any:
        return module(x).sum() + sum(parameter.square().sum() for parameter in module.parameters())

    def switches(x: Tensor) -> Any:
        module.set_requires_gradient_sync(False)
        return module(x)

    assert "is read outside the call of its module" in refusal(regularised, "SG309")
    assert "set_requires_gradient_sync is called" in refusal(switches, "SG309")


def test_tensors_spread_by_hooks_are_refused() -> None:
    mesh = init_device_mesh("cpu", (1,))
    module = parallelize_module(nn.Sequential(nn.Linear(4, 8)), mesh, {"0": ColwiseParallel()})
    assert "a module has a hook of" in refusal(lambda x: module(x), "SG309")
