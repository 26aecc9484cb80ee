"""Global variables of the user's modules: what assigns and deletes them."""

from __future__ import annotations

from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.program.sources import Global
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.namespaces import variable
from stillgraph.trace.control_flow.unset import may_be_unset
from stillgraph.trace.heap.places import GlobalPlace


def set_global(namespace: dict[str, Any], name: str, value: Any) -> None:
    """``global name; name = value``, in the namespace of a module."""
    capture = session()
    if capture is not None:
        place = _found(capture, namespace, name)
        capture.number_is_written(Global(namespace["__name__"], name), place.get(), value)
        capture.journal.note(place)
    namespace[name] = value


def before_global(namespace: dict[str, Any], name: str) -> None:
    """To be called before a statement by which only Python can bind a global (``def``, ``import``)."""
    capture = session()
    if capture is not None:
        capture.journal.note(_found(capture, namespace, name))


def del_global(namespace: dict[str, Any], name: str) -> None:
    """``global name; del name``.

    Raises:
        NameError: it has no value.
        CaptureError: only the run knows whether it has one.
    """
    capture = session()
    if name not in namespace:
        raise NameError(f"name '{name}' is not defined", name=name)
    if capture is not None:
        place = _found(capture, namespace, name)
        if capture.has_unset and may_be_unset(capture, namespace[name]):
            message = f"the global variable {name} is deleted, which some path does not assign"
            raise refuse("SG204", message, location=here(), hint="Delete it on the paths that assign it.")
        capture.journal.note(place)
    del namespace[name]


def _found(capture: Session, namespace: dict[str, Any], name: str) -> GlobalPlace:
    """The place of a global that is about to be written; what it holds is found there, for no code need have read it.

    Raises:
        CaptureError: it is of no module, as one of code that ``exec`` was given: a program finds only modules'.
    """
    source, place = variable(namespace, name), GlobalPlace(namespace, name)
    if not isinstance(source, Global):
        what = f"the global variable {name} is assigned, which belongs to no module that Python knows by its name"
        raise refuse("SG305", what, location=here(), hint="Keep it in an object, and assign an attribute of that.")
    if place.key not in capture.journal.written(0) and name in namespace and not capture.is_outer(namespace[name]):
        with capture.executed.paused():
            capture.finder.add(namespace[name], source)
            capture.finder.complete()
    return place
