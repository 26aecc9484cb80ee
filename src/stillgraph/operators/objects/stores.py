"""Stores into containers, `target[key] = value` and `del target[key]`: every write goes through the journal."""

from __future__ import annotations

import collections
from types import FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly, of_class
from stillgraph.operators.containers import entries, tables
from stillgraph.operators.containers.drawing import listed
from stillgraph.operators.dispatch import call, known_or_list
from stillgraph.operators.each import Case, of_each
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.indices import as_index, in_tensor
from stillgraph.operators.objects.array_items import set_array_item
from stillgraph.operators.objects.changes import CONTAINERS, change, note_contents
from stillgraph.polyfills.lists import set_slice
from stillgraph.program.sources import item_of
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.both_sides import require_one_object, several_in, several_in_key
from stillgraph.trace.control_flow.narrowing import exchanged
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.heap.contents import kind_of_container
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import StagedArray, is_staged, refuse_numbers
from stillgraph.trace.values.entries import find, is_of_run
from stillgraph.trace.values.numbers import Staged, StagedInt, StagedNumber


def is_method_of_container(function: Any) -> bool:
    """Whether a callable is a method of Python's containers without one, like ``dict.__setitem__``."""
    unbound = isinstance(function, (MethodDescriptorType, WrapperDescriptorType))
    return unbound and issubclass(function.__objclass__, CONTAINERS)


def is_generated(function: FunctionType) -> bool:
    """Whether a function has no source, as those have not that ``dataclasses`` writes."""
    return function.__code__.co_filename.startswith("<")


def promote_item(capture: Session, target: Any, key: Any, value: Any) -> None:
    """To be called before ``target[key] = value``: see `Session.number_is_written`."""
    if isinstance(key, (Staged, torch.Tensor, slice)) or is_fake(key) or is_of_run(key) or lists.is_spread(target):
        return
    source = capture.finder.find(target)
    if source is None:
        return
    try:
        before = dict.get(target, key) if isinstance(target, dict) else target[key]
    except (LookupError, TypeError):
        return  # nothing is there yet, or Python says what is wrong
    capture.number_is_written(item_of(target, source, key), before, value)


@of_each(0, cases=Case.UNJOINED)
def set_item(target: Any, key: Any, value: Any) -> None:
    """``target[key] = value``."""
    capture = session()
    if capture is None:
        target[key] = value
        return
    several = several_in_key(key) if isinstance(target, dict) else several_in(key)
    if several is not None:
        several.either(lambda v: set_item(target, exchanged(key, several, v), value))
        return
    if isinstance(target, StagedArray):
        set_array_item(capture, target, key, value)
    elif not _called_by_user(target, "__setitem__", key, value):
        set_item_past_class(target, key, value)


def set_item_past_class(target: Any, key: Any, value: Any) -> None:
    """``target[key] = value``, where the ``__setitem__`` that does it is no user's."""
    change(target, "__setitem__", (key, value), lambda: _set_item(target, key, value))


def _set_item(target: Any, key: Any, value: Any) -> None:
    note_contents(target)
    refuse_unknown(target)
    if isinstance(target, (set, frozenset)):
        target[key] = value  # type: ignore[index]  # Python says that there is no such thing
    if is_array(target):
        require_holds(target, (key, value))
    if not _set_unknown(target, key, value):
        capture = session()
        if capture is not None and isinstance(key, slice) and isinstance(target, list):
            value = known_or_list(value, listed)
            if key.step not in (None, 1) and lists.is_spread(value):
                message = "a slice with a step is assigned a list of unknown length"
                raise refuse("SG210", message, location=here(), hint="Assign them one by one, in a loop.")
        if capture is not None and isinstance(target, (dict, list, collections.deque)):
            promote_item(capture, target, key, value)
        if capture is not None and tables.is_by_table(target, key):
            tables.put(capture, target, key, value)
        elif isinstance(target, dict) and capture is not None:
            entries.put(capture, target, key, value)
        elif isinstance(target, CONTAINERS):
            kind_of_container(target).__setitem__(target, key, value)
        else:
            target[in_tensor(key) if isinstance(target, torch.Tensor) else key] = value


_KNOWN = (*CONTAINERS, torch.Tensor, StagedArray, torch.nn.Module)


def refuse_unknown(target: Any) -> None:
    """Refuse to change, in an arm or from outside, an object that the journal cannot put back (a numpy array, say)."""
    capture = session()
    if capture is None or isinstance(target, _KNOWN):
        return
    outer = capture.is_outer(target) or capture.is_new(target) is False
    if capture.in_arm or outer or capture.memory.holds(target):
        if is_array(target):
            capture.memory.write_in_run(target)
        raise refuse("SG305", f"an item of a {type(target).__name__} is set", location=here())


def require_holds(array: Any, values: Any) -> None:
    """To be called before an array of numpy's gets values: only in the run it can hold values of the run.

    Raises:
        CaptureError: it cannot be made by the run.
        Restart: it is to be made by the run, or to be an input.
    """
    capture = session()
    if capture is not None and any(map(is_staged, torch.utils._pytree.tree_leaves(values))):
        capture.memory.write_in_run(array)
    refuse_numbers(values)


def _set_unknown(target: Any, key: Any, value: Any) -> bool:
    """Store into a list at an index, or of a length, that only the run knows; whether this is one."""
    capture = session()
    if capture is None or not isinstance(target, (list, collections.deque)):
        return False
    key = as_index(capture, key)
    if isinstance(key, slice) and (key.start, key.stop, key.step) == (None, None, None):
        return False  # nothing is left of what was there
    if isinstance(key, slice) and isinstance(target, list):
        return _set_slice(target, key, value)
    if lists.is_spread(target):
        lists.set_at(capture, target, key, value)
        return True
    if isinstance(key, StagedInt) and type(target) is list and target:
        lists.set_known(capture, target, key, value)
        return True
    return False


def _set_slice(target: list[Any], key: slice, value: Any) -> bool:
    """As `_set_unknown`, for a slice."""
    bounds = (key.start, key.stop, key.step)
    if not lists.is_spread(target) and not any(isinstance(each, StagedNumber) for each in bounds):
        return False
    if key.step is not None and (not is_exactly(key.step, (int,)) or key.step != 1):
        message = "a slice with a step is assigned, of a list or with bounds that only the run knows"
        raise refuse("SG210", message, location=here(), hint="Assign the elements one by one, in a loop.")
    if type(target) is not list:
        message = f"a slice of a {type(target).__name__} is assigned, a list of a class of its own"
        raise refuse("SG210", message, location=here(), hint="Assign the elements one by one, in a loop.")
    call(set_slice, target, key.start, key.stop, value)
    return True


def del_item(target: Any, key: Any) -> None:
    """``del target[key]``."""
    if session() is None:
        del target[key]
        return
    several = several_in(key)
    require_one_object(key)
    if several is not None:
        several.either(lambda v: del_item(target, exchanged(key, several, v)))
        return
    if not _called_by_user(target, "__delitem__", key):
        del_item_past_class(target, key)


def del_item_past_class(target: Any, key: Any) -> None:
    """``del target[key]``, where the ``__delitem__`` that does it is no user's."""
    change(target, "__delitem__", (key,), lambda: _del_item(target, key))


def _del_item(target: Any, key: Any) -> None:
    note_contents(target, method=("__delitem__", (key,)))
    if isinstance(target, (set, frozenset)):
        del target[key]  # type: ignore[union-attr]  # as above
    capture = session()
    if capture is not None and isinstance(target, (list, collections.deque)):
        key = as_index(capture, key)
    staged = isinstance(key, StagedInt) or is_cut_by_staged(key)
    if capture is not None and (lists.is_spread(target) or (type(target) is list and staged)):
        lists.delete_at(capture, target, key)
        return
    if capture is not None and isinstance(target, dict) and tables.is_by_table(target, key):
        tables.delete(capture, target, key)
        return
    known = find(target, key) if capture is not None and isinstance(target, dict) else None
    if capture is not None and known is not None:
        entries.delete(capture, target, known)
    elif isinstance(target, CONTAINERS):
        kind_of_container(target).__delitem__(target, key)
    else:
        del target[key]


def _called_by_user(target: Any, name: str, *args: Any) -> bool:
    """Call a method that a class of the user's gives an operator, rewritten like any other; whether there is one."""
    method: Any = of_class(target, name)
    borrowed = isinstance(target, CONTAINERS) and is_method_of_container(method) and method.__name__ != name
    python = isinstance(method, FunctionType) and not isinstance(target, torch.Tensor)
    if session() is None or not (python or borrowed):
        return False
    call(method, target, *args)
    return True


def is_cut_by_staged(key: Any) -> bool:
    """Whether a key is a slice with a bound that only the run knows."""
    return isinstance(key, slice) and any(isinstance(b, StagedNumber) for b in (key.start, key.stop, key.step))
