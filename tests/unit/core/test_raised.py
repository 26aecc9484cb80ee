from __future__ import annotations

import json

from stillgraph.core.raised import line_that_raised


def parse(text: str) -> object:
    return json.loads(text)


def raised_by_parse() -> ValueError:
    try:
        parse("{")
    except ValueError as error:
        return error
    raise AssertionError("it is no JSON")


def test_the_innermost_line_of_the_users() -> None:
    """The standard library's below it are passed over."""
    location = line_that_raised(raised_by_parse())
    assert location is not None
    assert (location.file, location.line, location.function) == (__file__, parse.__code__.co_firstlineno + 1, "parse")


def test_which_files_count_may_be_said() -> None:
    location = line_that_raised(raised_by_parse(), lambda file: file == json.__file__)
    assert location is not None
    assert (location.file, location.function) == (json.__file__, "loads")


def test_no_line() -> None:
    assert line_that_raised(ValueError("not raised")) is None
    assert line_that_raised(raised_by_parse(), lambda file: False) is None
