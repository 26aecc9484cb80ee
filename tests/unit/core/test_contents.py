"""Containers that get other contents in place: an iterator over them goes on as if nothing had happened."""

from __future__ import annotations

from collections import OrderedDict, deque

from stillgraph.core.contents import replace_deque, replace_dict, replace_set


def test_what_is_the_same_stays_where_it_is() -> None:
    held = {"a": 1, "b": 2, "c": 3}
    del held["a"]  # a hole that an iterator counts
    running = iter(held)
    assert next(running) == "b"
    replace_dict(dict, held, {"b": 5, "c": 6})
    assert held == {"b": 5, "c": 6}
    assert list(running) == ["c"]
    ordered, queue, several = OrderedDict(a=1), deque([1, 2]), {1, 2}
    steps = iter(ordered), iter(queue), iter(several)
    replace_dict(OrderedDict, ordered, {"a": 2})
    replace_deque(deque, queue, [1, 2])
    replace_set(set, several, {1, 2})
    assert [list(each) for each in steps] == [["a"], [1, 2], [1, 2]]


def test_other_contents_come_in_their_order() -> None:
    for wanted in ({}, {"a": 1}, {"b": 1, "a": 2}, {"a": 1, "b": 2, "c": 3, "d": 4}, {"c": 1}):
        held = {"a": 1, "b": 2, "c": 3}
        replace_dict(dict, held, wanted)
        assert list(held.items()) == list(wanted.items())
    queue, several = deque([1, 2], maxlen=2), {1, 2}
    replace_deque(deque, queue, [2, 1])
    replace_set(set, several, {2, 3})
    assert (list(queue), several) == ([2, 1], {2, 3})
