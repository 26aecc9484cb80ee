"""Operations that other operators are made of, by name: any module may import them, one module defines each.

`calls.calls` says what a call means, for instance: it knows every kind of callee. The rule of a callee calls functions
of the user's in turn. It takes `call` from here, as it must not import what imports it.
"""

from __future__ import annotations

from typing import Any

from stillgraph.core.operation import Operation
from stillgraph.trace.heap.exits import Exit

call: Operation[..., Any] = Operation("call")
call_function: Operation[..., Any] = Operation("call_function")
raised: Operation[..., Any] = Operation("raised")
asked: Operation[..., Any] = Operation("asked")
indexed: Operation[..., Any] = Operation("indexed")

and_: Operation[..., Any] = Operation("and_")
or_: Operation[..., Any] = Operation("or_")
not_: Operation[..., Any] = Operation("not_")
eq: Operation[..., Any] = Operation("eq")

if_: Operation[..., Exit | None] = Operation("if_")
if_exp: Operation[..., Any] = Operation("if_exp")
for_: Operation[..., Exit | None] = Operation("for_")

item: Operation[..., Any] = Operation("item")
own_items: Operation[..., Any] = Operation("own_items")
known_or_list: Operation[..., Any] = Operation("known_or_list")
taken: Operation[..., bool] = Operation("taken")
