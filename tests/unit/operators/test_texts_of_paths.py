"""A text with values of the run on one path, or after an iteration, and a known one, None or nothing on the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.importing import loaded
from tests.unit.trace.agreement import agree, agree_fresh, outcome

ROWS = [torch.tensor(row) for row in ([-1.0, -2.0, 3.0, 4.0], [1.0, -2.0, 3.0, 4.0], [-1.0, -2.0, -3.0, -4.0])]
CALLS = [(row, torch.tensor(n)) for row in ROWS for n in (3, 0, 4, 1)]


def left_early(x: Tensor, n: Tensor) -> Any:
    why = "none"
    for i in range(int(n)):
        if x[i] > 0:
            why = f"exit{i}"
            break
    return x + 1, why, [why], {"why": (why, 1)}


def told_by_a_handler(x: Tensor, n: Tensor) -> Any:
    message = ""
    try:
        if n > 2:
            raise ValueError(f"n is {int(n)}")
        if n > 0:
            message = "small"
    except ValueError as error:
        message = str(error)
    return x, message


def of_one_path(x: Tensor, n: Tensor) -> Any:
    i = int(n)
    name = f"step{i}" if i > 2 else "last"
    print(name, end=";")
    print([name], "%s" % name, f"{name!r:>9}")  # noqa: UP031 - it is what is tried
    return x, f"<{name}>", name + "!", name * 2, str(name), ",".join([name, "z"])


def of_both_paths(x: Tensor, n: Tensor) -> Any:
    return f"a{int(n)}" if n > 2 else f"b{x.sum().item():.2f}"


def returned_from_paths(x: Tensor, n: Tensor) -> Any:
    if n > 2:
        return f"a{int(n)}"
    for v in x:
        if v > 2:
            return f"v{v.item()}"
    return "b"


def growing(x: Tensor, n: Tensor) -> Any:
    log, marks, dots = "", "-", ""
    for i in range(int(n)):
        log += f"{i},"
        marks = "x" + marks + "x"
        if x[i] > 0:
            dots += "."
    return x, log, marks, dots


def or_none(x: Tensor, n: Tensor) -> Any:
    message = None
    for i in range(int(n)):
        if x[i] > 0:
            message = f"at {i}"
    print(message, f"{message}", message is None)
    if message is None:
        return x, "nowhere", message
    return x + 1, message, message + "!"


def used_as_none(x: Tensor, n: Tensor) -> Any:
    message = f"{int(n)}" if n > 2 else None
    if x[0] > 0:
        return message + "!"  # type: ignore[operator]  # it is to fail
    return "!" + message if n > 0 else isinstance(message, str)  # type: ignore[operator]  # as above


def or_unset(x: Tensor, n: Tensor) -> Any:
    for i in range(int(n)):
        text = f"i{i}"
    return text


def or_one_of_some(x: Tensor, n: Tensor) -> Any:
    text = "a" if x[0] > 0 else "b" if x[1] > 0 else None
    if n > 3:
        text = f"{int(n)}"
    if n > 0 and x[2] > 0:
        text = "late"
    return text, [text], {"k": text}


def or_a_number(x: Tensor, n: Tensor) -> Any:
    out: Any = 0
    if n > 2:
        out = f"{int(n)}"
    return out


def of_exceptions(x: Tensor, n: Tensor) -> Any:
    why = "zero"
    if n > 2:
        why = f"two{int(n)}"
    if x[0] > 0:
        raise ValueError(why, 3)
    if n > 3:
        raise AssertionError(why)
    try:
        if n > 0:
            raise KeyError(why)
    except KeyError as error:
        return error.args[0], str(error)
    raise RuntimeError(f"not {why}")


def carried_by_two_loops(x: Tensor, n: Tensor) -> Any:
    best, last = "none", "none"
    i = 0
    while i < n:
        j = 0
        while j < i:
            last = f"{i}/{j}"
            j += 1
        if x[i] > 0:
            best, last = last, best
        i += 1
    return best, last


def held_by_containers(x: Tensor, n: Tensor) -> Any:
    notes, pair = {"first": "no", "last": "no"}, ["a", "b"]
    for i in range(int(n)):
        if x[i] > 0:
            notes["last"] = f"{i}"
            pair[0] = notes["last"] + pair[1]
    return notes, pair


FUNCTIONS = [
    *(left_early, told_by_a_handler, of_one_path, of_both_paths, returned_from_paths, growing, or_none, used_as_none),
    *(or_unset, or_one_of_some, or_a_number, of_exceptions, carried_by_two_loops, held_by_containers),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_a_full_graph(function: Any) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for args in CALLS:
        assert repr(outcome(static, args)) == repr(outcome(function, args))


def test_compiled() -> None:
    static = sg.to_static(left_early)
    for args in CALLS:
        assert repr(static(*args)) == repr(left_early(*args))


class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.status, self.log = "new", ""

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        self.log += "."
        if n > 2:
            self.status = f"after {int(n)}"
            self.log += f"{int(n)};"
        elif n > 0:
            self.status = "short"
        return x * 2


def test_kept_by_a_module() -> None:
    agree_fresh(Keeping, *CALLS, programs=len(CALLS) + 1)


# ---- files
@pytest.mark.parametrize("function", FUNCTIONS)
def test_python_source(function: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "texts.py", args=CALLS[0])
    written = getattr(loaded(tmp_path / "texts.py"), function.__name__)
    for args in CALLS:
        assert repr(outcome(written, args)) == repr(outcome(function, args))


def only_printed(x: Tensor, n: Tensor) -> Any:
    why = "none"
    for i in range(int(n)):
        if x[i] > 0:
            why = f"exit{i}"
            x = x + 1
            break
    print(why)
    return x + 1


@pytest.mark.parametrize("name", ["texts.pt2", "texts.onnx"])
def test_other_files(name: str, tmp_path: Path) -> None:
    for function in (left_early, told_by_a_handler, growing, or_none):
        with pytest.raises(sg.ExportError, match=r"a text with a value in it .* is returned or stored") as caught:
            sg.save(function, tmp_path / name, args=CALLS[0])
        assert caught.value.reason.code == "SG402"
    sg.save(only_printed, tmp_path / name, args=CALLS[0])  # which leaves out what is printed
    static = sg.load(tmp_path / name) if name.endswith(".pt2") else only_printed
    for args in CALLS:
        assert torch.equal(static(*args), only_printed(*args))


def none_by_a_table(x: Tensor, n: Tensor) -> Any:
    why: str | None = "none"
    try:
        if n > 2:
            raise ValueError("large")
        why = f"fine{int(n)}"
        if n > 0:
            raise KeyError(why)
    except ValueError as error:
        why = str(error)
    except KeyError:
        why = None
    return x if why is None else x * 2


def test_none_by_a_table(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    agree(none_by_a_table, *CALLS)
    if "bytecode" not in request.node.name:  # where the handlers leave one of a table
        with pytest.raises(sg.ExportError, match="is None or unbound by what a table says"):
            sg.save(none_by_a_table, tmp_path / "texts.pt2", args=CALLS[0])
        return
    sg.save(none_by_a_table, tmp_path / "texts.pt2", args=CALLS[0])
    static = sg.load(tmp_path / "texts.pt2")
    for args in CALLS:
        assert torch.equal(static(*args), none_by_a_table(*args))


# ---- what is computed with them
def compared(x: Tensor, n: Tensor) -> Any:
    why = "none"
    for i in range(int(n)):
        if x[i] > 0:
            why = f"exit{i}"
            break
    if why == "exit2":
        x = x * 10
    elif why != "none":
        x = x - 1
    match why:
        case "exit0":
            x = x + 100
        case _:
            x = x + 200
    known = why == why + "", why in ("none", "exit2"), why < "exit1", why <= "a", why == 3, why is None
    return x, known, 1 if why else 2, not why, why and x, bool(why)


def taken_apart(x: Tensor, n: Tensor) -> Any:
    i = int(n)
    text = "" if i == 0 else f"Step {i}"
    text = text + "-"
    parts = text[:2], text[1:], text[-i:], len(text), len(text) > 5, "ep" in text, text in "Step 3 or 4"
    return parts, text.upper(), text.strip("S").lower(), text.replace("e", text), text * i, 2 * text, text.count("e")


def asked(x: Tensor, n: Tensor) -> Any:
    text = "none" if x[0] > 0 else f"exit{int(n)}"
    if text.startswith(("ex", "no")) and not text.endswith("1"):
        x = x + 1
    return x, text.isalpha(), text.find("x"), text.removeprefix("exit").zfill(3), f"{text.title():>8}|", text.index("e")


def looked_up(x: Tensor, n: Tensor) -> Any:
    text = "none" if x[0] > 0 else f"e{int(n)}"
    weights = {"none": 0.5, "e3": x.sum(), "e0": 2.0}
    names = {"e3": "three", "none": "nothing"}
    found = weights.get(text, 7.0), names.get(text), text in weights, text in {"e0", "e1"}, text in ["e0", text]
    return found, weights[text]


def out_of_range(x: Tensor, n: Tensor) -> Any:
    text = "" if x[0] > 0 else f"{int(n)}" * 2
    try:
        return text[1]
    except IndexError as error:
        return str(error)


def not_there(x: Tensor, n: Tensor) -> Any:
    text = "abc" if x[0] > 0 else f"{int(n)}"
    return text.index("a"), x


def unfit(x: Tensor, n: Tensor) -> Any:
    text = "abc" if x[0] > 0 else f"{int(n)}"
    said = []
    for use in (lambda: text + 1, lambda: text < 3, lambda: text.startswith(2), lambda: text["a"], lambda: 3 in text):
        try:
            use()  # type: ignore[no-untyped-call]
        except TypeError as error:
            said.append(str(error))
    return said


def or_none_and_used(x: Tensor, n: Tensor) -> Any:
    text = f"{int(n)}" if n > 0 else None
    if text == "3":
        x = x + 1
    if text:
        x = x + 2
    text = (text or "none").upper()
    other = "b" if x[0] > 0 else f"B{int(n)}" if n > 0 else None
    return x, text, other == "b", other is None, isinstance(other, str), other in ("b", None), other.upper()


COMPUTED = [compared, taken_apart, asked, looked_up, out_of_range, not_there, unfit, or_none_and_used]


@pytest.mark.parametrize("function", COMPUTED)
def test_computed(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", COMPUTED)
def test_computed_in_python_source(function: Any, tmp_path: Path) -> None:
    test_python_source(function, tmp_path)


@pytest.mark.parametrize("name", ["texts.pt2", "texts.onnx"])
def test_computed_in_other_files(name: str, tmp_path: Path) -> None:
    def decides(x: Tensor, n: Tensor) -> Tensor:
        why = "none" if x[0] > 0 else f"exit{int(n)}"
        return x * 10 if why == "exit3" else x * len(why)

    with pytest.raises(sg.ExportError, match="a text with a value in it that only the run knows") as caught:
        sg.save(decides, tmp_path / name, args=CALLS[0])
    assert caught.value.reason.code == "SG402"


# ---- what exceptions say that the call has made
class Odd(ValueError):
    pass


def said_by_exceptions(x: Tensor, n: Tensor) -> Any:
    why = f"exit{int(n)}" if n > 1 else "none"
    said: list[Any] = []
    for error in (ValueError(why), KeyError(why), Odd(why, 3), IndexError(int(n)), KeyError(why, x.sum().item())):
        print(error, [error], {"e": error}, end="; ")
        said += [str(error), repr(error), f"{error}", f"{error!r:>30}|", f"{error!s:>9}|"]
        try:
            f"{error:>3}"
        except TypeError as failure:
            said.append(str(failure))
    return said


def caught_by_itself(x: Tensor, n: Tensor) -> Any:
    message = ""
    try:
        if n > 2:
            raise KeyError(f"n is {int(n)}")
        if n > 0:
            message = "small"
    except (KeyError, ValueError) as error:
        message = str(error) + repr(error) + f"{error}"
    return x, message


@pytest.mark.parametrize("function", [said_by_exceptions, caught_by_itself])
def test_said_by_exceptions(function: Any) -> None:
    agree(function, *CALLS)


def marked(x: Tensor) -> Any:
    trace = ""
    while x.sum() < 5:
        x = x + 1
        trace += "+" if x.sum() > 0 else "-"
    return x, trace


def test_inference_under_a_backend() -> None:
    static = sg.to_static(marked)
    with torch.no_grad():
        for x in ROWS:
            assert repr(static(x)) == repr(marked(x))


def given_to_methods(x: Tensor, n: Tensor) -> Any:
    text = f"s{int(n)}" if n > 2 else "none"
    known = "s34 none".startswith(text), "s34".replace("s", text), "none s3".find(text), str.upper(text)
    names = ["a", "s3", "none"]
    found = names.index(text) if text in names else -1, ["a", text].count("s3"), (1, text).index(text)
    removed = [text, "b", "s3"]
    removed.remove("s3")
    return known, found, removed, ["a", text].remove("a"), [*map(str.title, [text])], ",".join([text, "b"])


def joined_or_none(x: Tensor, n: Tensor) -> Any:
    text = f"s{int(n)}" if n > 2 else None
    has = hasattr(text, "upper"), getattr(text, "nothing", 3)
    try:
        return has, ",".join([text, "b"])  # type: ignore[list-item]  # it is to fail
    except TypeError as error:
        return has, str(error)


def shown_or_none(x: Tensor, n: Tensor) -> Any:
    text = f"s{int(n)}" if n > 2 else None
    return f"{text}", f"{text!r:>9}", "%s" % text, f"{[text]}"  # noqa: UP031


def removed_of_nobodys(x: Tensor, n: Tensor) -> Any:
    text = "s3" if n > 2 else "none"
    try:
        return ["a", text].remove("s3")  # type: ignore[func-returns-value]
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("function", [given_to_methods, joined_or_none, shown_or_none, removed_of_nobodys])
def test_given(function: Any) -> None:
    agree(function, *CALLS)
