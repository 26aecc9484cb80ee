"""What torch.distributed does in the midst of a program: steps that run in Python, between the program's operations.

A step takes tensors and gives tensors; it is the first argument of `operations.outside`. Which process runs which step
how often is the program's affair, as it is eager PyTorch's. Modules are held weakly; a guard sees to it that a program
runs for the very modules that it was captured for.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

Tensors = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Collective:
    """A function of torch.distributed's that exchanges tensors in place, such as ``all_reduce``.

    Attributes:
        function: what is called.
        spec: the structure of its arguments.
        leaves: what stands in it; where a tensor of the program's does, its index among the values of the step.
        values: the positions of those in ``leaves``.
    """

    function: Callable[..., Any]
    spec: Any
    leaves: tuple[Any, ...]
    values: tuple[int, ...]

    def __call__(self, *values: Any) -> Tensors:
        leaves = list(self.leaves)
        for position, value in zip(self.values, values, strict=True):
            leaves[position] = value
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        self.function(*args, **kwargs)
        return ()

    def __repr__(self) -> str:
        return self.function.__name__


@dataclass(frozen=True, eq=False)
class _Wrapped:
    """A step of a module that torch.distributed wraps."""

    reference: weakref.ref[Any]

    @property
    def module(self) -> Any:
        found = self.reference()
        assert found is not None, "its caller holds it"
        return found


@dataclass(frozen=True, eq=False)
class _Parallel(_Wrapped):
    """A step of ``DistributedDataParallel``; with ``quiet``, one inside ``no_sync()``."""

    quiet: bool

    def _syncing(self) -> contextlib.AbstractContextManager[None]:
        return self.module.no_sync() if self.quiet else contextlib.nullcontext()


class EnterParallel(_Parallel):
    """What goes before the module's own call: buffers are broadcast, the reducer is made ready."""

    def __call__(self, *tensors: Any) -> Tensors:
        with self._syncing():
            args, _ = self.module._pre_forward(*tensors)
        return tuple(args)

    def __repr__(self) -> str:
        return "begin DistributedDataParallel"


class LeaveParallel(_Parallel):
    """What comes after it: from the results the reducer finds the parameters that take part."""

    def __call__(self, *tensors: Any) -> Tensors:
        with self._syncing():
            return tuple(self.module._post_forward(tensors))

    def __repr__(self) -> str:
        return "end DistributedDataParallel"


@dataclass(frozen=True, eq=False)
class EnterSharded(_Wrapped):
    """The hook of ``fully_shard`` before a module's call: it gathers the parameters, which are the last of its results.

    Attributes:
        hook: the key of the hook.
        parameters: where the gathered parameters stand then, each by its module and name.
    """

    hook: int
    parameters: tuple[tuple[weakref.ref[torch.nn.Module], str], ...]

    def __call__(self, *tensors: Any) -> Tensors:
        changed = self.module._forward_pre_hooks[self.hook](self.module, tensors, {})
        args = tensors if changed is None else changed[0]  # see `wrappers.acts_once`
        gathered = (getattr(owner(), name) for owner, name in self.parameters)
        return (*args, *gathered)

    def __repr__(self) -> str:
        return f"gather parameters of {type(self.module).__name__}"


@dataclass(frozen=True, eq=False)
class LeaveSharded(_Wrapped):
    """Its hook after the call: the gathered parameters are freed, until the gradient needs them.

    Attributes:
        hook: the key of the hook.
    """

    hook: int

    def __call__(self, *tensors: Any) -> Tensors:
        changed = self.module._forward_hooks[self.hook](self.module, (), tensors)
        return tensors if changed is None else tuple(changed)

    def __repr__(self) -> str:
        return f"free parameters of {type(self.module).__name__}"
