"""The tables of a module: what is entered in them, and who goes through them, which has to know what is there."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_torch
from stillgraph.operators.objects.changes import refuse_ambiguous
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.uninterpreted import may_write
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.tables import is_assigned, parameters_behind
from stillgraph.trace.control_flow.unset import may_be_unset
from stillgraph.trace.effects.modules import State
from stillgraph.trace.heap.places import MISSING, AttributePlace, PersistencePlace

_LISTING = frozenset(
    {"parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules"}
    | {"named_modules", "state_dict", "load_state_dict", "apply", "requires_grad_"}
)


def _before_registering(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """To be called before a function of Python's is called, which may be one that makes an entry in a module's tables.

    It is written down here, and not found by comparing: what was there already is written just as well.
    """
    if function not in _REGISTERING or not args or not isinstance(args[0], torch.nn.Module):
        return
    name = kwargs.get("name", args[1] if len(args) > 1 else None)
    if not isinstance(name, str):
        return  # which torch refuses
    refuse_ambiguous(args[0], name)
    place = AttributePlace(args[0], name)
    written = capture.journal.written(0).get(place.key)
    if place.get() is MISSING and written is not None and written.before is not MISSING:
        message = f"'{place}' is deleted and registered anew, which puts it behind the others in state_dict"
        hint = "Register it again without deleting it, or do both outside."
        raise refuse("SG305", message, location=here(), hint=hint)
    capture.journal.note(place)
    if function is torch.nn.Module.register_buffer:
        persistence = PersistencePlace(args[0], name)
        capture.journal.note(persistence)
        persistence.set(True)  # nothing of the run's is to stand in its way


_REGISTERING: frozenset[Any] = frozenset(
    {
        torch.nn.Module.register_buffer,
        torch.nn.Module.register_parameter,
        torch.nn.Module.add_module,
        torch.nn.Module.register_module,
    }
)


def _states(capture: Session, function: FunctionType, args: tuple[Any, ...]) -> list[State]:
    """What the modules below one have before a function of torch's is called with it that may change them.

    None of it where somebody is watching all of them anyway.
    """
    code = function.__code__
    if capture.knowledge.watch_modules or function in _REGISTERING or not is_torch(code.co_filename):
        return []
    if not args or not isinstance(args[0], torch.nn.Module) or not (may_write(code) or code.co_name in _CHANGING):
        return []
    if "_modules" not in vars(args[0]):
        return []  # it is being made
    return [State(module) for module in torch.nn.Module.modules(args[0])]


_CHANGING = frozenset({"eval", "load_state_dict"})  # which call what does


class TablesSeen:
    """To be around the call of a function of Python's, which may be torch's and change the modules that it is given.

    Found in the end, by comparing, would be too late: in an arm, the other may change it back. It is no generator: the
    standard library's code for those would count as the user's, in whose place operators call.

    Raises:
        Restart: it has changed modules, and nobody was watching.
    """

    def __init__(self, capture: Session, function: FunctionType, args: tuple[Any, ...]) -> None:
        self._capture, self._states = capture, _states(capture, function, args)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is None and not all(state.is_current() for state in self._states):
            self._capture.before_unseen_write()


def before_tables(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """To be called before a function of Python's is called, which may be one that goes through a module, or enters.

    Raises:
        CaptureError: as `require_known`.
    """
    of_a_module = function.__name__ in _LISTING and args and isinstance(args[0], torch.nn.Module)
    if of_a_module and is_torch(function.__code__.co_filename):
        require_known(capture, args[0])
    _before_registering(capture, function, args, kwargs)


def require_known(capture: Session, module: torch.nn.Module) -> None:
    """To be called before somebody goes through a module, or through one of its tables.

    Raises:
        CaptureError: it has something there on some paths only.
    """
    written = (write.place for write in capture.journal.log)
    places = {place.key: place for place in written if isinstance(place, (AttributePlace, PersistencePlace))}
    of_modules = [place for place in places.values() if isinstance(place.target, torch.nn.Module)]
    if not of_modules:
        return
    inside = {id(each): each for each in module.modules()}
    for place in of_modules:
        if id(place.target) in inside and (_is_uncertain(capture, place) or _is_another(place, inside.values())):
            message = f"a module is gone through, and only the run knows whether it has '{place}' as an entry"
            hint = "Set it before the branch, or go through the module outside the static function."
            raise refuse("SG305", message, location=here(), hint=hint)


def _is_another(place: AttributePlace | PersistencePlace, modules: Iterable[torch.nn.Module]) -> bool:
    """Whether a joined parameter may be another entry of the modules as well: who goes through them meets it once."""
    value = place.get()
    if isinstance(place, PersistencePlace) or place.table != "_parameters":
        return False
    if not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter):
        return False
    behind = {id(each) for each in parameters_behind(value)}
    others = (each for module in modules for each in module._parameters.values() if each is not value)
    return not behind or any(id(each) in behind for each in others)


def _is_uncertain(capture: Session, place: AttributePlace | PersistencePlace) -> bool:
    value = place.get()
    if isinstance(place, PersistencePlace):
        return not isinstance(value, bool)
    if place.table == "__dict__":
        return is_assigned(capture.journal, place, value)
    if value is not MISSING and may_be_unset(capture, value):
        return True
    return isinstance(value, Unjoined) or (isinstance(value, torch.Tensor) and capture.may_be_none(value))
