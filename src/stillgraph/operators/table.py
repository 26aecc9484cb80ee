"""The operators that rewritten code calls, by name: the contract of ``docs/dev/rewriting.md``."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import MappingProxyType

from stillgraph.operators.calls.arguments import calling, keywords, received
from stillgraph.operators.calls.calls import call
from stillgraph.operators.conditions.branches import continue_, if_, if_exp, result_of, return_
from stillgraph.operators.consumers import patterns
from stillgraph.operators.consumers.comprehensions import dict_of, list_of, set_of
from stillgraph.operators.consumers.displays import dict_display, displayed, drawn_all, set_display
from stillgraph.operators.consumers.unpacking import unpack
from stillgraph.operators.containers.drawing import items
from stillgraph.operators.control_flow.contexts import context, with_
from stillgraph.operators.control_flow.generators import binding, generator, generator_of
from stillgraph.operators.control_flow.loops import for_, while_
from stillgraph.operators.control_flow.protected import Starred, handled, handling, try_
from stillgraph.operators.control_flow.raising import caused, known, raised
from stillgraph.operators.objects.attribute_stores import del_attr, set_attr
from stillgraph.operators.objects.attributes import attr
from stillgraph.operators.objects.booleans import and_, not_, or_
from stillgraph.operators.objects.comparisons import eq, in_, ne, ordered
from stillgraph.operators.objects.globals import before_global, del_global, set_global
from stillgraph.operators.objects.identity import is_, is_none
from stillgraph.operators.objects.inplace import inplace
from stillgraph.operators.objects.stores import del_item, set_item
from stillgraph.operators.objects.strings import assert_, percent, text
from stillgraph.operators.objects.subscripts import item
from stillgraph.operators.objects.variables import evaluated, hidden, loaded, own, own_names, variables
from stillgraph.operators.outside.debugging import stopping
from stillgraph.trace.heap.exits import BREAK, CONTINUE

OPERATORS: Mapping[str, object] = MappingProxyType(
    {
        "if_": if_,
        "while_": while_,
        "try_": try_,
        "handling": handling,
        "starred": Starred,
        "handled": handled,
        "for_": for_,
        "continue_": continue_,
        "result_of": result_of,
        "BREAK": BREAK,
        "CONTINUE": CONTINUE,
        "Return": return_,
        "and_": and_,
        "or_": or_,
        "not_": not_,
        "if_exp": if_exp,
        "in_": in_,
        "is_none": is_none,
        "is_": is_,
        "eq": eq,
        "ne": ne,
        **{name: ordered(getattr(operator, name)) for name in ("lt", "le", "gt", "ge")},
        "assert_": assert_,
        "raised": raised,
        "known": known,
        "caused": caused,
        "call": call,
        "calling": calling,
        "keywords": keywords,
        "received": received,
        "stopping": stopping,
        "item": item,
        "set_item": set_item,
        "del_item": del_item,
        "set_attr": set_attr,
        "del_attr": del_attr,
        "attr": attr,
        "inplace": inplace,
        "unpack": unpack,
        "drawn": drawn_all,
        "items": items,
        "listed": displayed,
        "set_display": set_display,
        "dict_display": dict_display,
        "evaluated": evaluated,
        "hidden": hidden,
        "loaded": loaded,
        "own": own,
        "variables": variables,
        "own_names": own_names,
        "is_sequence": patterns.is_sequence,
        "is_mapping": patterns.is_mapping,
        "length": patterns.length,
        "elements_of": patterns.elements_of,
        "values_of": patterns.values_of,
        "others_of": patterns.others_of,
        "parts_of": patterns.parts_of,
        "text": text,
        "percent": percent,
        "list_of": list_of,
        "set_of": set_of,
        "dict_of": dict_of,
        "generator_of": generator_of,
        "binding": binding,
        "generator": generator,
        "context": context,
        "with_": with_,
        "set_global": set_global,
        "del_global": del_global,
        "before_global": before_global,
        "slice_": slice,
    }
)
