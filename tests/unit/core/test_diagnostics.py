import linecache

from stillgraph.core.diagnostics import shown_lines
from stillgraph.core.location import Location

TEXT = """def 函数(x):
    return 测量(x) + x.double()
"""


def shown(column: int | None, end_column: int | None) -> list[str]:
    linecache.cache["<made>"] = (len(TEXT), None, TEXT.splitlines(keepends=True), "<made>")
    return shown_lines(Location("<made>", 2, column, end_column))[1:]


def test_a_caret_stands_under_its_characters_whatever_came_before() -> None:
    line = "    return 测量(x) + x.double()"
    column = len("    return 测量(x) + ".encode())
    assert shown(column, None) == [line, " " * (len(line) - len("x.double()") + 2) + "^" * len("x.double()")]
    assert shown(len(b"    return "), len("    return 测量(x)".encode())) == [line, "           ^^^^^^^"]
    assert shown(None, None) == [line]


def test_the_lines_that_called_come_first() -> None:
    outer = Location("<made>", 1, function="outer")
    inner = Location("<made>", 2, function="inner", callers=(outer,))
    assert [line for line in shown_lines(inner) if line.startswith("  File")] == [
        '  File "<made>", line 1, in outer',
        '  File "<made>", line 2, in inner',
    ]
