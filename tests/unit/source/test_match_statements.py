"""``match`` does the same when rewritten."""

from __future__ import annotations

from tests.unit.source.same import check
from tests.unit.source.telling import note


def test_match_statements() -> None:
    class Point:
        __match_args__ = ("x", "y")

        def __init__(self, x, y=0):
            self.x, self.y = x, y

        def __repr__(self):
            return f"Point({self.x}, {self.y})"

    class Color:
        RED = "red"

    def matches(value, flag):
        match value:
            case 0 | -1 | 1.5:
                found = "number"
            case None:
                return "none"
            case True | "yes":
                found = "yes"
            case Color.RED:
                found = "red"
            case Point(x=0, y=y) | Point(y, 0) if flag:
                found = "on axis", y
            case Point(x, y):
                if x == y:
                    return "diagonal"
                found = x, y
            case [first, *_, ("a" | "b") as last]:
                found = first, last
            case {"kind": kind, **others} if note(flag):
                found = kind, others
            case str(text):
                found = "text " + text
            case (a, b) if (c := a) == b:
                found = "pair", c
            case other if flag:
                found = "other", other
            case _:
                found = "nothing"
        return found

    values = (0, -1, 1.5, None, True, "yes", "red", Point(0, 4), Point(3, 0), Point(2, 2), Point(1, 2), [1, 2, "b"],
              {"kind": 1, "x": 2}, "other", (2, 2), (2, 3), 17, [])
    check(matches, *[(value, flag) for value in values for flag in (True, False)])


def test_match_on_a_computed_subject() -> None:
    def computed(xs):
        out = []
        for x in xs:
            match note(x), len(out):
                case 1, n:
                    out.append(n)
                case [x, 2]:
                    break
                case _ if x == 5:
                    continue
            match x:
                case x if x == 3:
                    return "three", x
        else:
            out.append("else")
        return out, x, n

    check(computed, ([1, 1, 7, 2],), ([3],), ([5, 1],), ([],))
