"""What runs over all of an iterable: Python's own functions and methods take each element before they draw the next.

A generator may read and write what its elements go into, and calls in between are seen in their order. So nothing draws
all of one first, unless Python does (docs/decisions/0050-elements-are-taken-as-they-are-drawn.md).
"""

from __future__ import annotations

import collections
import enum
import gc
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import Refusal, refuse
from stillgraph.operators import dispatch
from stillgraph.operators.conditions.truth import truth_number
from stillgraph.operators.consumers.comprehensions import add_to_set, list_of
from stillgraph.operators.containers import entries
from stillgraph.operators.containers.drawing import drawn, listed
from stillgraph.operators.containers.iterables import as_sequence
from stillgraph.operators.containers.ranges import Range
from stillgraph.operators.containers.sequences import Listed, StagedRows
from stillgraph.operators.control_flow.generators import Produced, is_fresh
from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.operators.control_flow.loops import for_
from stillgraph.operators.dispatch import call
from stillgraph.operators.elements import lists
from stillgraph.operators.objects.changes import note_contents
from stillgraph.operators.objects.stores import set_item, set_item_past_class
from stillgraph.operators.objects.strings import joined, with_chosen
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.both_sides import several_in_key
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.narrowing import exchanged
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.heap.exits import BREAK, Exit
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.entries import Table, is_of_run, refuse_frozen, some_keys, table_of
from stillgraph.trace.values.lists import StagedSpread
from stillgraph.trace.values.numbers import Staged


class Drawing(enum.Enum):
    """How something draws from an iterable that it is given."""

    EACH = "an operator takes each element before the next is drawn, in a loop that may be staged"
    FIRST = "all elements are drawn before anything else is done, by Python too"
    LATER = "what it makes draws from it, when that is drawn from"
    PYTHON = "Python itself draws: what only the run decides is refused where the iterator decides it"


def is_looped_over(iterable: Any) -> bool:
    """Whether a loop has to draw from an iterable: only the run may know how it goes on, and what that does."""
    if isinstance(iterable, Produced):
        return is_fresh(iterable)
    sequence = None if isinstance(iterable, (list, tuple)) else as_sequence(iterable)
    if sequence is None or lists.is_spread(iterable) or isinstance(sequence, (Range, StagedRows)):
        return False  # nothing that is done meanwhile changes these
    return not sequence.is_known


@dispatch.known_or_list.defined
def known_or_list(iterable: Any, draw: Callable[[Any], Any] = drawn) -> Any:
    """What a function of Python's iterates: a list, where only the run knows how many elements there are.

    Args:
        iterable: what it is given.
        draw: `listed`, where Python makes a list of it.
    """
    sequence = as_sequence(iterable)
    if sequence is None:
        iterable = draw(iterable)
        if is_fresh(iterable):
            return list_of(iterable, lambda item: item)
        sequence = as_sequence(iterable)  # of what the method of an object gives
    if sequence is None:
        return iterable
    if isinstance(iterable, dict) and isinstance(sequence, Listed):
        iterable = sequence.items  # its keys
    if isinstance(iterable, (list, tuple)) or sequence.is_known:
        return iterable
    return list_of(sequence, lambda item: item)


def join(method: Any, iterable: Any) -> Any:
    """``method(iterable)``, where that is ``join`` of a text."""
    parts = list(known_or_list(iterable, listed))
    if lists.is_spread(parts) and lists.are_texts(capturing(), parts):
        return lists.joined(capturing(), method.__self__, parts)
    if lists.is_spread(parts):
        message = "join is given parts of which only the run knows how many there are"
        raise refuse("SG210", message, location=here(), hint="Print the parts one by one, with end='', in a loop.")
    parts = [*with_chosen(capturing(), tuple(parts))]
    chosen = next((part for part in parts if isinstance(part, Unjoined)), None)
    if chosen is not None:
        return chosen.either(lambda value: call(method, [value if part is chosen else part for part in parts]))
    return joined(method.__self__, parts)


# ---- methods of containers
def _append(target: Any, value: Any) -> None:
    note_contents(target)
    list.append(target, value)


def _put_into_deque(at_left: bool) -> Callable[[Any, Any], None]:
    def step(target: Any, value: Any) -> None:
        note_contents(target, method=("append", (value,)))
        lists.put_into_deque(capturing(), target, value, at_left=at_left)

    return step


def _by_entry_method(name: str) -> Callable[[Any, Any], None]:
    def step(target: Any, value: Any) -> None:
        several = several_in_key(value)
        if several is not None:
            several.either(lambda chosen: step(target, exchanged(value, several, chosen)))
            return
        note_contents(target)
        entries.METHODS[name](session(), target, value)

    return step


def _put_into_set(target: Any, value: Any) -> None:
    note_contents(target)
    add_to_set(target, value)


def _put_pair(target: Any, pair: Any) -> None:
    items = [*pair]
    if len(items) != 2:
        raise ValueError(f"dictionary update sequence element has length {len(items)}; 2 is required")
    several = several_in_key(items[0])
    if several is not None:
        several.either(lambda chosen: _put_pair(target, (exchanged(items[0], several, chosen), items[1])))
        return
    store = set_item if isinstance(target, collections.OrderedDict) else set_item_past_class  # as Python does it
    store(target, *items)


_STEPS: dict[tuple[type, str], Callable[[Any, Any], None]] = {
    (list, "extend"): _append,
    (list, "__iadd__"): _append,
    (collections.deque, "extend"): _put_into_deque(at_left=False),
    (collections.deque, "__iadd__"): _put_into_deque(at_left=False),
    (collections.deque, "extendleft"): _put_into_deque(at_left=True),
    (set, "update"): _put_into_set,
    (set, "difference_update"): _by_entry_method("discard"),
    (dict, "update"): _put_pair,
    (dict, "__ior__"): _put_pair,
}
"""What methods of containers do with each element."""

_MADE_BY: dict[type, str] = {
    set: "update",
    frozenset: "update",
    dict: "update",
    collections.OrderedDict: "update",
    collections.deque: "extend",
}
"""By which of these methods a constructor fills what it makes."""


@dispatch.taken.defined
def taken(
    target: Any, name: str, iterables: tuple[Any, ...], named: dict[str, Any] | None = None, *, apart: bool = False
) -> bool:
    """Let a method of a container take each element of iterables as it is drawn, if a loop has to draw them.

    Args:
        target: the container.
        name: the method's.
        iterables: what it is given.
        named: what ``dict.update`` is given by name.
        apart: whether to do so in any case.

    Returns:
        Whether it is done; if not, Python may do it.
    """
    capture = session()
    step = next((each for (kind, method), each in _STEPS.items() if method == name and isinstance(target, kind)), None)
    if capture is None or step is None:
        return False
    if not apart and not any(_has_to_loop(target, each) for each in iterables):
        return False
    capture.shelf.append(target)
    try:
        for iterable in iterables:
            _take_all(target, step, [*target] if iterable is target else iterable)
    finally:
        capture.shelf.pop()
    for key, value in (named or {}).items():
        step(target, (key, value))
    return True


def _take_all(target: Any, step: Callable[[Any, Any], None], iterable: Any) -> None:
    before = Context(capturing(), [], []).checkpoint()
    try:
        for_(iterable, lambda value: step(target, value))
    except Refusal:
        if not isinstance(target, (list, collections.deque)) or _may_lead_to(iterable, target):
            raise
        before.rollback()  # the elements are not like those that were there: draw them first, which finds none of these
        note_contents(target)
        for value in list_of(iterable, lambda item: item):
            step(target, value)


_MOST = 2000  # objects that are looked at: a generator expression leads to few


_LEAD_NOWHERE = (type, ModuleType, CodeType, Staged, torch.Tensor)


def _may_lead_to(iterable: Any, target: Any) -> bool:
    """Whether drawing from an iterable may come by a container that the call has made, but by names of modules."""
    if capturing().is_new(target) is not True:
        return True
    seen: set[int] = set()
    waiting = [iterable]
    while waiting:
        each = waiting.pop()
        if each is target or len(seen) > _MOST:
            return True
        if id(each) not in seen and not isinstance(each, _LEAD_NOWHERE):
            seen.add(id(each))
            function: Any = each if isinstance(each, FunctionType) else None
            passed = (function.__globals__, function.__builtins__) if function is not None else ()
            waiting += (held for held in gc.get_referents(each) if not any(held is space for space in passed))
    return False


def _has_to_loop(target: Any, iterable: Any) -> bool:
    if isinstance(target, dict) and hasattr(type(iterable), "keys"):
        return False  # a mapping is asked for what it has by each key
    if isinstance(target, (set, dict, collections.deque)) and lists.is_spread(iterable):
        return True  # these have no place for what stands for several elements
    if isinstance(target, collections.deque) and target.maxlen is not None and lists.is_spread(target):
        return True  # as above, where it drops some
    return is_looped_over(iterable)


def made(kind: type, args: tuple[Any, ...], kwargs: dict[str, Any], *, apart: bool = False) -> Any:
    """What a constructor of a container makes of an iterable that a loop has to draw from; None for any other call.

    ``apart``: elements are to be put in one after another in any case, for only the run knows which of them are one.
    """
    if kind is collections.Counter and args:
        counter = collections.Counter[Any]()
        call(collections.Counter.update, counter, *args, **kwargs)
        return counter
    name, capture = _MADE_BY.get(kind), session()
    if kind is collections.deque and capture is not None and (len(args) > 1 or "maxlen" in kwargs):
        capture.unseen.follow_all()  # Python's own ``+`` would count what stands for several elements as one
    if name is None or not args:
        return None
    is_dict = issubclass(kind, dict)
    target = kind() if is_dict else set() if kind is frozenset else kind((), *args[1:], **kwargs)
    if not taken(target, name, args[:1], kwargs if is_dict else None, apart=apart):
        return None
    return frozenset(target) if kind is frozenset else target


def keyed(kind: type) -> Callable[..., Any]:
    """``set``, ``frozenset`` or ``dict``: Python's own, unless only the run knows an element, a key or how many."""

    def make(*args: Any, **kwargs: Any) -> Any:
        result = collected(*args, **kwargs)
        if kind is frozenset and len(args) == 1:
            refuse_frozen(args[0], result)
        return result

    def collected(*args: Any, **kwargs: Any) -> Any:
        given = args[0] if len(args) == 1 else None
        table = table_of(given) if isinstance(given, (set, frozenset, dict)) else None
        if table is not None and kind is not dict:
            return kind([Table(table.keys, None)])
        filled = None if table is not None else made(kind, args, kwargs)
        if filled is not None:
            return filled
        if table is not None and kwargs:
            raise refuse_unknown("SG211", f"{called(given)}, {some_keys(given)}, is copied with more keys", given)
        if len(args) != 1 or isinstance(given, str) or _is_copied(kind, given):
            return kind(*args, **kwargs)
        items = list(known_or_list(given))
        keys = items if kind is not dict else [each[0] for each in items if type(each) in (list, tuple) and each]
        if not any(isinstance(key, StagedSpread) or is_of_run(key) or several_in_key(key) is not None for key in keys):
            return kind(items, **kwargs)
        return made(kind, (items,), kwargs, apart=True)

    return make


def _is_copied(kind: type, given: Any) -> bool:
    """Whether a constructor asks a mapping for what it has by each key."""
    return kind is dict and hasattr(type(given), "keys")


# ---- the table
_BY_PYTHON = (
    "next bytes bytearray bytearray.__init__ bytearray.__setitem__ bytearray.extend bytearray.join bytes.join "
    "array array.extend list.__init__ dict.__init__ dict.fromkeys set.__init__ deque.__init__ "
    "set.difference set.intersection set.union set.symmetric_difference set.isdisjoint set.issubset set.issuperset "
    "set.intersection_update set.symmetric_difference_update "
    "frozenset.difference frozenset.intersection frozenset.union frozenset.symmetric_difference frozenset.isdisjoint "
    "frozenset.issubset frozenset.issuperset "
    "Counter Counter.__init__ Counter.update Counter.subtract OrderedDict.__init__ OrderedDict.fromkeys "
    "defaultdict defaultdict.__init__ defaultdict.fromkeys defaultdict.default_factory "
    "ModuleDict ModuleDict.__init__ ModuleDict.update ModuleList ModuleList.__init__ ModuleList.__add__ "
    "ModuleList.__iadd__ ModuleList.extend Sequential.extend ParameterDict ParameterDict.__init__ "
    "ParameterDict.__ior__ ParameterDict.fromkeys ParameterDict.update ParameterList ParameterList.__init__ "
    "ParameterList.__iadd__ ParameterList.extend "
    "functools.namedtuple heapq.nlargest heapq.nsmallest math.dist math.fsum math.sumprod "
    "operator.contains operator.countOf operator.iadd operator.iconcat operator.indexOf operator.ior random.choices "
    "statistics.Counter statistics.defaultdict statistics.namedtuple statistics.correlation statistics.covariance "
    "statistics.fmean statistics.geometric_mean statistics.harmonic_mean statistics.kde statistics.kde_random "
    "statistics.linear_regression statistics.mean statistics.median_grouped "
    "statistics.mode statistics.multimode statistics.pstdev statistics.pvariance "
    "statistics.quantiles statistics.stdev statistics.variance"
)
_LATER = (
    "enumerate filter map zip heapq.merge itertools.accumulate itertools.batched itertools.chain "
    "itertools.combinations itertools.combinations_with_replacement itertools.compress itertools.cycle "
    "itertools.dropwhile itertools.filterfalse itertools.groupby itertools.islice itertools.pairwise "
    "itertools.permutations itertools.product itertools.starmap itertools.takewhile itertools.tee "
    "itertools.zip_longest"
)

CONSUMERS: Mapping[str, Drawing] = MappingProxyType(
    {
        **{f"{kind.__name__}.{name}": Drawing.EACH for kind, name in _STEPS},
        **{f"{kind}.{name}": Drawing.EACH for kind in ("OrderedDict", "defaultdict") for name in ("update", "__ior__")},
        **{kind.__name__: Drawing.EACH for kind in _MADE_BY},
        **dict.fromkeys(("all", "any", "functools.reduce", "math.prod", "max", "min", "sum"), Drawing.EACH),
        **dict.fromkeys(("list", "list.__setitem__", "sorted", "str.join", "tuple"), Drawing.FIRST),
        **dict.fromkeys(("statistics.median", "statistics.median_high", "statistics.median_low"), Drawing.FIRST),
        **dict.fromkeys(_LATER.split(), Drawing.LATER),
        **dict.fromkeys(_BY_PYTHON.split(), Drawing.PYTHON),
    }
)
"""What draws from an iterator that it is given, by name; a structure test finds what is missing."""


def first(generator: Produced, *default: Any) -> Any:
    """``next(generator)`` by a loop that its first element ends: only the run knows which that is.

    Raises:
        StopIteration: as Python, if there is none and no default.
    """
    capture = capturing()
    found: Any = default[0] if default else MISSING
    there: Any = False

    def one(value: Any) -> Exit:
        nonlocal found, there
        found, there = value, True
        return BREAK

    for_(generator, one, keeps=("found", "there"))
    if not default and there is not True:
        branch(capture, truth_number(capture, there), lambda: None, _stop, (), ())
    return found


def _stop() -> NoReturn:
    emit_raise(capturing(), StopIteration())
    raise Diverged
