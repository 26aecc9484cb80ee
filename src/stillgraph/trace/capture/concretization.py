"""What follows when Python demands a value that only the run knows."""

from __future__ import annotations

import sys
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, cast

import torch

from stillgraph.core.diagnostics import DemandError, refuse
from stillgraph.core.files import is_ours, is_standard_library, is_torch, is_torch_layer
from stillgraph.polyfills.checks import POLYFILLS
from stillgraph.trace.code.executed_code import IN_USERS_PLACE
from stillgraph.trace.code.frames import asked_by_layer, attribute_read, generator_asking, here, in_loader
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.graph.current import current
from stillgraph.trace.values.numbers import SYMBOLIC_SHAPES, StagedBool, StagedInt, StagedNumber, plain

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session

_STOOD_FOR = (torch.nn.Module._call_impl.__code__, torch.nn.Module._wrapped_call_impl.__code__)  # by `calls`
_DEMANDS = {
    "bool": "truth (bool)", "index": "value (as an index)", "int": "value (int)", "float": "value (float)",
    "swap": "memory, to swap it with another's,",
}
_HINTS = {
    "bool": "What asks is not rewritten: Python's own code, a C library's or one marked not_to_static. Write what it "
    "does in a function of your own, as a loop with if, or use torch.where, torch.sort or torch.min.",
    "rows": "What goes through the tensor is not rewritten. Loop over it yourself: for row in tensor: ...",
    "index": "A text or a range of that length cannot be made before the run. Loop in place of it: "
    "for _ in range(n): ...",
    "swap": "Convert the module outside of the static function, or give what makes it the dtype and device.",
    "hash": "Index a list or tensor with the number; what is a key must be known before the run.",
}
_OF_LAYERS = (
    "Loop over the modules and compare: for k, module in enumerate(modules): if k == i: y = module(x). Or call all "
    "of them, and index torch.stack of what they give."
)


def demanded(session: Session, value: Any, what: str) -> Any:
    """Python demands a value that only the run knows: convert what asks, or take a size as it is, or refuse.

    Args:
        value: a staged number or tensor, or a value without a join.
        what: is asked for: its ``bool``, say.

    Returns:
        The value of a truth or a whole number that is made of declared sizes.

    Raises:
        Restart: the capture begins anew, knowing more.
        CaptureError: there is no way.
    """
    if what in ("bool", "int", "index", "float", "text", "hash", "rows", "swap", "numpy"):
        ask_for_conversion(session)
    if isinstance(value, (StagedInt, StagedBool)) and what in ("bool", "index", "int"):
        decided = _decide_size(session, value, what)
        if decided is not None:
            return decided
    if isinstance(value, StagedNumber) and current() is session:
        ask_for_constants(session, value)
    if what in ("index", "hash") and _is_asked_by_rewritten_code(session, left_to_python=True):
        session.unseen.follow_all()  # a list that is repeated, the display of a dict
    if isinstance(value, Unjoined):
        value.refuse()
    if what == "bool" and not session.knowledge.managers and _is_asked_by_rewritten_code(session):
        session.knowledge.stage_handling()  # around a `yield`, or a `finally` with exits
    if what == "text":
        raise refuse("SG302", "a value that only the run knows is turned into text", location=here())
    if in_loader():
        hint = "Iterate it outside, and call the static function with each batch."
        raise refuse("SG301", "the order of a DataLoader's batches is drawn at random", location=here(), hint=hint)
    kind = "number" if isinstance(value, StagedNumber) else "tensor"
    message = f"asks for the {_DEMANDS.get(what, what)} of a {kind} that only the run knows"
    generator = generator_asking()
    if generator is not None:
        name, instead = _of_generator(generator)
        raise refuse("SG301", f"{name}, which Python runs, {message}", location=here(), hint=instead)
    by_hand = _OF_LAYERS if what == "index" and asked_by_layer() else _HINTS.get(what)
    raise refuse("SG301", f"Python {message}", location=here(), hint=by_hand, kind=DemandError)


_ASKING = {each.__code__ for each in POLYFILLS if isinstance(each, FunctionType)}
_ASKING |= {torch.nn.Parameter.__new__.__code__, torch.overrides.handle_torch_function.__code__}
_ASKING |= {
    method.__code__  # `__len__`, `__iter__`, `__contains__` …: Python's own operations
    for name, method in vars(torch.Tensor).items()
    if name.startswith("__") and isinstance(method, FunctionType)
}


def _asks_for_its_caller(code: CodeType) -> bool:
    """Whether torch's code asks for what whoever calls it, if rewritten, does not demand."""
    return code in _ASKING or code.co_filename == SYMBOLIC_SHAPES


def _of_generator(code: CodeType) -> tuple[str, str]:
    """A generator as messages name it, and how it is written so that it becomes a part of the program."""
    if code.co_name == "<genexpr>":
        return "a generator expression", "Write it as a loop, with if, append and break as it needs them."
    name = f"the generator '{code.co_name}'"
    used = f"list({code.co_name}(...)), and unpack, zip or hand on that list"
    return name, f"The program can have a loop over a generator or a list of it, nothing else: write {used}."


def ask_for_constants(session: Session, number: StagedNumber) -> None:
    """Begin anew where a demanded number depends on one that is an input only because it differs between calls."""
    behind, queue = set[str](), [session.region.node_of(number)]
    while queue:
        node = queue.pop()
        if node.name not in behind:
            behind.add(node.name)
            queue += node.all_input_nodes
    sources = {source for name, source in session.promoted.items() if name in behind}
    sources &= session.knowledge.changing
    if sources:
        raise Restart("constant", sources)


def ask_for_the_object(session: Session | None, value: Any) -> None:
    """Begin anew where a number is asked to be an object, and is an input only because it changes with the calls."""
    if session is None or not isinstance(value, StagedNumber):
        return
    source = session.promoted.get(session.region.node_of(value).name)
    if source is not None:
        raise Restart("object", source)


def _is_asked_by_rewritten_code(session: Session, *, left_to_python: bool = False) -> bool:
    """Whether a statement of rewritten code asks for a value by itself, and no function that it calls.

    Args:
        session: of the capture.
        left_to_python: whether what an operator asks for, which every front end calls alike, does not count.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_ours(frame.f_code.co_filename) or is_torch(frame.f_code.co_filename)):
        if left_to_python and str(frame.f_globals.get("__name__")).startswith(IN_USERS_PLACE):
            return False
        frame = frame.f_back
    return frame is not None and session.is_rewritten(frame.f_code)


def _decide_size(session: Session, value: Any, what: str) -> Any:
    """The value of an expression of declared sizes at this call's sizes; torch's own code may rely on it."""
    symbol = plain(value)
    if session.symbolic.is_newer(symbol, -1):
        return None
    return bool(symbol) if what == "bool" else int(symbol)


def ask_for_conversion(session: Session) -> None:
    """Restart with the functions converted that stand between rewritten code and what asks for the value."""
    frame = sys._getframe(1)
    while is_ours(frame.f_code.co_filename) or _asks_for_its_caller(frame.f_code):
        frame = cast(FrameType, frame.f_back)
    wanted: set[CodeType] = set()
    names: set[str] = set()
    while frame is not None:
        code = frame.f_code
        if session.is_rewritten(code):
            break
        if not is_ours(code.co_filename) and not is_standard_library(code.co_filename):
            if is_torch(code.co_filename) and not wanted and not is_torch_layer(code.co_filename):
                return
            if code not in _STOOD_FOR:
                wanted.add(code)
                names |= {code.co_name, *attribute_read(frame.f_back)}
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    if wanted - session.knowledge.convert:
        raise Restart("convert", (wanted, names))
