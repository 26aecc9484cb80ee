"""Where torch keeps what a module has: the tables of its ``__dict__``."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

import torch

from stillgraph.core.lookup import class_member, is_slot, own_attributes

MODULE_TABLES = ("_parameters", "_buffers", "_modules")
HOOK_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
NOT_PERSISTENT = "_non_persistent_buffers_set"
MODULE_INTERNALS = frozenset(torch.nn.Module().__dict__)  # what torch itself keeps in a module's ``__dict__``


def table_of(module: torch.nn.Module, name: str) -> str | None:
    """In which table a module has an attribute: ``__dict__`` or one of `MODULE_TABLES`; None if it has not."""
    if name in module.__dict__:
        return "__dict__"
    return next((table for table in MODULE_TABLES if name in entries(module, table)), None)


def entries(module: torch.nn.Module, table: str) -> dict[str, Any]:
    """What a module has in one of its tables: nothing before ``torch.nn.Module.__init__`` has made them."""
    found: dict[str, Any] = module.__dict__.get(table, {})
    return found


def entered(module: torch.nn.Module) -> Any:
    """What a call of a module enters with its arguments: ``forward``, or a ``__call__`` that its class has."""
    own: Any = type(module).__call__
    return module.forward if own is torch.nn.Module.__call__ else MethodType(own, module)


def put_in_table(module: torch.nn.Module, table: str, name: str, value: Any) -> None:
    """Let a module have ``value`` under a name in just this table, whatever an assignment would do with it.

    Args:
        module: the module.
        table: ``__dict__`` or one of `MODULE_TABLES`.
        name: of the attribute.
        value: what it is to be.
    """
    own = module.__dict__
    for other in ("__dict__", *MODULE_TABLES):
        if other != table:
            (own if other == "__dict__" else own.get(other, {})).pop(name, None)
    (own if table == "__dict__" else own[table])[name] = value


def is_persistent(module: torch.nn.Module, name: str) -> bool:
    """Whether ``state_dict`` has the buffer of this name."""
    return name not in module.__dict__[NOT_PERSISTENT]


def set_persistence(module: torch.nn.Module, name: str, value: Any) -> None:
    """Let ``state_dict`` have the buffer of this name, or not."""
    names = module.__dict__[NOT_PERSISTENT]
    (names.discard if value else names.add)(name)


def is_behind_descriptor(target: Any, name: str) -> bool:
    """Whether the class of an object has a property or a descriptor of Python's code by a name: to assign runs that.

    What the object itself holds by the name is in its ``__dict__`` then, where the descriptor has put it.
    """
    member = class_member(type(target), name)
    runs = isinstance(member, property) or isinstance(class_member(type(member), "__set__"), FunctionType)
    return runs and isinstance(own_attributes(target), dict)


def past_class(target: Any, special: str) -> Any:
    """``__setattr__`` or ``__delattr__`` as Python or torch has it, whatever a class of the user's makes of it."""
    own = class_member(type(target), special)
    if is_slot(own, special):
        return own
    kind = torch.nn.Module if isinstance(target, torch.nn.Module) else type if isinstance(target, type) else object
    return class_member(kind, special)
