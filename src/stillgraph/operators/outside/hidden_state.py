"""Objects of Python's whose state the journal cannot put back: arms and captures leave them alone."""

from __future__ import annotations

import array
import contextlib
import io
import queue
import random
import threading
import weakref
from types import FunctionType
from typing import Any

import numpy
import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import stated
from stillgraph.trace.capture.session import session
from stillgraph.trace.code.frames import here
from stillgraph.trace.effects.locks import LOCKS

MUTATORS = frozenset(
    {
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
        "appendleft",
        "extendleft",
        "popleft",
        "rotate",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "move_to_end",
        "__setitem__",
        "__delitem__",
        "__iadd__",
        "__ior__",
    }
)
"""Methods of containers that change them."""

_STATEFUL = (
    *(contextlib.ExitStack, queue.Queue, queue.SimpleQueue, threading.Event, io.IOBase, array.array, bytearray),
    *LOCKS,
)


def refuse_hidden_state(function: Any) -> None:
    """Refuse random numbers of numpy's, whose generator would not advance with each call, and what arms do unseen."""
    capture, receiver, qualified = session(), getattr(function, "__self__", None), stated(function, "__qualname__", "")
    if isinstance(receiver, _STATEFUL) and capture is not None and capture.in_arm:
        kind = type(receiver).__name__
        raise refuse("SG305", f"a method of a {kind} is called in a branch or loop", location=here())
    if isinstance(receiver, queue.SimpleQueue) and capture is not None and capture.is_outer(receiver):
        raise refuse("SG305", "a SimpleQueue from outside is used, which nothing can put back", location=here())
    if isinstance(receiver, random.Random):  # of another class than that itself, which `draws` knows
        message = f"a {type(receiver).__name__} draws from a state that the program cannot advance"
        raise refuse("SG305", message, location=here(), hint="Draw from a random.Random itself, or draw outside.")
    if isinstance(receiver, numpy.random.SeedSequence) or qualified.startswith("SeedSequence."):
        return  # it mixes what it is given
    owners = (type(receiver).__module__, getattr(function, "__module__", None))
    if any((owner or "").startswith("numpy.random") for owner in owners):
        hint = "Call the methods of a numpy.random.Generator, which each call of the program draws from anew."
        raise refuse("SG305", "numpy draws random bits, which the program cannot", location=here(), hint=hint)


def refuse_state_of_run(target: Any, name: str) -> None:
    """Refuse to look at state that the run alone has: of an optimizer it makes, of what gives numpy its bits."""
    capture = session()
    if name == "state" and isinstance(target, torch.optim.Optimizer) and capture and capture.region.holds(target):
        message = f"the state of a {type(target).__name__} is asked for, which the function makes"
        raise refuse("SG305", message, location=here(), hint="Give the optimizer back, and ask for it outside.")
    of_bits = name == "state" and isinstance(target, numpy.random.BitGenerator)
    if of_bits or (name == "bit_generator" and isinstance(target, numpy.random.Generator)):
        hint = "Do it outside the static function; numpy.random.get_state() and set_state() may be called in it."
        message = "the state of a random generator of numpy's is asked for or set"
        raise refuse("SG305", message, location=here(), hint=hint)


def refuse_weak(function: FunctionType, args: tuple[Any, ...]) -> None:
    """Refuse to change a dictionary of weak references that was there before, or may be there on another path."""
    capture, target = session(), args[0] if args else None
    if capture is None:
        return
    if isinstance(target, WEAK) and function.__name__ in MUTATORS and (capture.in_arm or capture.is_outer(target)):
        raise refuse("SG305", f"a {type(target).__name__} is changed", location=here(), hint="Use a dict.")
    if isinstance(target, WEAK) and function.__name__ in MUTATORS:
        made = next((each for each in args[1:] if not isinstance(each, ATOMS) and capture.is_new(each)), None)
        if made is not None:
            what = f"a {type(target).__name__} is given a {type(made).__name__} that the function makes"
            raise refuse("SG305", what, location=here(), hint="Use a dict.")


ATOMS = (str, int, float, bool, type(None))
WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
