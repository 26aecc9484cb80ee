# ruff: noqa: F821, F842
# The functions are user code, roundabout on purpose.
"""Stores do the same when rewritten."""

from __future__ import annotations

from tests.unit.source.same import check
from tests.unit.source.telling import Thing, note


def test_stores_keep_the_order_of_evaluation() -> None:
    def stores(thing):
        note(thing).x = note(1)
        thing[note("k")] = note(2)
        note(thing)[note("i")] = thing.y = a = note(3)
        thing.x, b, note(thing)[note("t")], c = note((1, 2, 3, 4))
        d, (thing.p, e), *thing.q = 1, (2, 3), 4, 5
        note(thing).x += note(10)
        thing[note("k")] -= note(1)
        note(thing)[note("i")] *= note(2)
        thing[0] += 1
        thing[1:2] = 1
        del thing.x, note(thing)[note("k")]
        del (a, [thing.y])
        thing.z: int = note(5)
        note(thing).w: int
        return b, c, d, e, thing

    check(stores, Thing())


def test_swaps_and_starred_targets() -> None:
    def swaps(a, b, xs):
        a, b = b, a
        xs[0], xs[-1] = xs[-1], xs[0]
        i, xs[i] = 0, 9
        first, *middle, last = xs
        return a, b, xs, i, first, middle, last

    check(swaps, (1, 2, [1, 2, 3]), (1, 2, [4]))


def test_targets_of_loops() -> None:
    def targets(thing, xs):
        for thing.x in xs:
            pass
        for thing[note("k")], i in enumerate(xs):
            if i == 2:
                break
        return thing

    check(targets, (Thing(), [1, 2, 3]), (Thing(), []))


def test_augmented_assignment() -> None:
    def augmented(x, y):
        z = x
        x += y
        x *= 2
        x -= -1
        return x, z, x is z

    check(augmented, (1, 2), (1.5, 2))
    check(augmented, ([1], [2]))


def test_annotated_assignment() -> None:
    def annotated(x):
        y: undefined_name
        z: int = x
        if x:
            y: int = 3
            w: undefined_name
        else:
            y = 4
        return y, z

    check(annotated, 0, 1)
