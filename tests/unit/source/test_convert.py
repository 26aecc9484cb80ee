"""Conversion itself: what it keeps, caches, refuses and reports."""
from __future__ import annotations

import ast
import functools
import gc
import importlib.util
import inspect
import linecache
import os
import sys
import threading
import time
import traceback
import types
import weakref
from pathlib import Path
from typing import Any

import pytest

from stillgraph.core.diagnostics import CaptureError
from stillgraph.source import convert as module
from stillgraph.source.compiled import is_converted
from stillgraph.source.convert import _Way, convert
from stillgraph.source.pipeline import STEPS, is_known
from tests.unit.source import run_programs
from tests.unit.source.plain_operators import OPERATORS, converted, rewritten
from tests.unit.source.same import outcome


def halve(x, limit):
    steps = 0
    while abs(x) > limit:
        x = x / 2
        steps += 1
    return x, steps


# ---- what is kept
def test_globals_are_the_very_dictionary() -> None:
    made = rewritten(halve)
    assert made.__globals__ is globals()
    assert made(8, 1) == halve(8, 1) == (1, 3)


def test_operators_are_free_variables() -> None:
    made = converted(halve).function
    cells = dict(zip(made.__code__.co_freevars, made.__closure__, strict=True))
    assert cells["while_"].cell_contents is OPERATORS["while_"]
    assert not set(cells) & set(globals())


def test_nested_code_is_known_as_converted() -> None:
    def outer():
        def inner():
            return [x for x in (lambda: [1])() if x]

        return inner if True else None

    made = rewritten(outer)
    assert is_converted(made.__code__)
    assert is_converted(made().__code__)
    pending = [made.__code__]
    while pending:
        code = pending.pop()
        assert is_converted(code)
        pending += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    assert not is_converted(outer.__code__)
    assert not is_converted(outer().__code__)


def test_tracebacks_show_the_users_lines() -> None:
    def fails(x):
        if x:
            for i in range(3):
                y = (i +
                     x.missing)
        return y

    with pytest.raises(AttributeError) as caught:
        rewritten(fails)(1)
    start = fails.__code__.co_firstlineno
    frames = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    assert [frame.lineno - start for frame in frames[1:]] == [1, 2, 4]
    assert frames[-1].line == "x.missing)"
    assert "loop_body_1" in frames[-1].name


def test_a_frame_shows_the_users_variables() -> None:
    seen = {}

    def function(a):
        b = a + 1
        if a:
            c = b
            seen.update(sys._getframe().f_locals)
        return b, c

    rewritten(function, plain_callee=lambda value: value is sys._getframe)(1)
    assert (seen["b"], seen["c"]) == (2, 2)


# ---- what is shown
def test_the_code_and_its_lines() -> None:
    made = converted(halve)
    start = halve.__code__.co_firstlineno
    lines = made.code.splitlines()
    assert lines[0] == "def halve(x, limit):"
    assert made.file == __file__
    own = {text.strip(): made.source_map[number] - start for number, text in enumerate(lines, 1)}
    assert own["def halve(x, limit):"] == 0
    assert own["steps = 0"] == 1
    assert own["return gt(call(abs, x), limit)"] == 2
    assert own["x = x / 2"] == 3
    assert own["steps += 1"] == 4
    assert own["return (x, steps)"] == 5
    assert set(made.source_map) == set(range(1, len(lines) + 1))


def test_empty_lines_do_not_touch_a_docstring() -> None:
    def function(x):
        """First:


        last."""
        return x and 1

    made = converted(function)
    assert "First:\n\n\n" in made.code
    written = ast.get_docstring(ast.parse(made.code).body[0], clean=False)
    assert inspect.cleandoc(written) == inspect.cleandoc(function.__doc__)  # Python 3.13 has cleaned it
    assert made.function.__doc__ == function.__doc__


def test_every_step_is_shown() -> None:
    made = converted(halve, keep_steps=True)
    assert [name for name, _ in made.steps] == [step.name for step in STEPS]
    sources = dict(made.steps)
    assert "while call(abs, x) > limit" in sources["calls"]
    assert "while_(" in sources["loops"]
    assert made.steps[-1][1] == made.code
    assert converted(halve).steps == ()


@pytest.mark.parametrize("seed", range(6))
def test_the_function_works_after_every_step(seed: int) -> None:
    program = run_programs.define(run_programs.write(seed))
    expected = run_programs.outcome(program, 2, 5)
    analysis = module._analysis(program)
    for count in range(len(STEPS) + 1):
        made = analysis.rewrite(_Way(frozenset(), False), {}, STEPS[:count])
        supplied = {local: module._operator(name, OPERATORS, program) for name, local in made.operators.items()}
        bound = module.bind(made.code, program, supplied)
        assert run_programs.outcome(bound, 2, 5) == expected, STEPS[:count][-1:]


def test_every_syntax_node_is_rewritten_or_left_alone_on_purpose() -> None:
    kinds = {kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.expr | ast.stmt)}
    obsolete = {ast.expr, ast.stmt, ast.Num, ast.Str, ast.Bytes, ast.NameConstant, ast.Ellipsis}
    assert {kind.__name__ for kind in kinds - obsolete if not is_known(kind)} == set()


# ---- operators that depend on options
def test_watched_attributes() -> None:
    class Owner:
        def __init__(self):
            self.__deep = 3

        def read(self, other):
            self.step += other.step.count
            del other.count
            return self.step, other.other, self.__deep

    made = converted(Owner.read, watched=frozenset({"step", "_Owner__deep"}))
    assert "attr(self, 'step')" in made.code
    assert "attr(other, 'step').count" in made.code
    assert "attr(self, '_Owner__deep')" in made.code
    assert "other.other" in made.code
    assert " attr(" not in converted(Owner.read).code


def some_function(x):
    return os.path.basename(x), len(x), make_len(), [f(x) for f in (str,)]


def make_len():
    return len


def test_plain_callees() -> None:
    chosen = {os.path.basename, len}
    made = converted(some_function, plain_callee=lambda value: value in chosen)
    assert "(os.path.basename(x), len(x), call(make_len), " in made.code
    assert "call(f, x)" in made.code
    assert converted(some_function).code.count("call(") == 4
    assert made.function("a/b") == some_function("a/b")


def test_plain_callees_are_resolved_anew() -> None:
    def outer(function):
        def inner(x):
            return function(x)

        return inner

    plain, other = outer(abs), outer(make_len)
    assert plain.__code__ is other.__code__
    assert "call(" not in converted(plain, plain_callee=lambda value: value is abs).code
    assert "call(function, x)" in converted(other, plain_callee=lambda value: value is abs).code


def test_a_local_variable_is_no_plain_callee() -> None:
    def shadows(len):
        def inner(x):
            return len(x)

        return inner(3), [abs(-1) for abs in (str,)]

    made = converted(shadows, plain_callee=lambda value: True)
    assert made.code.count("call(") == 3


# ---- the cache
def test_code_is_rewritten_once() -> None:
    assert converted(halve).function.__code__ is converted(halve).function.__code__
    watched = converted(halve, watched=frozenset({"x"}))
    assert watched.function.__code__ is not converted(halve).function.__code__


def test_equal_code_of_different_files_is_kept_apart() -> None:
    text = "def f(x):\n    return x and {}\n"
    functions = []
    for number in (1, 2):
        file = f"<equal {number}>"
        linecache.cache[file] = len(text), None, text.format(number).splitlines(keepends=True), file
        namespace: dict[str, Any] = {}
        exec(compile(text.format("k"), file, "exec"), namespace)
        functions.append(namespace["f"])
    first, second = functions
    assert first.__code__ == second.__code__
    assert [rewritten(function)(5) for function in functions] == [1, 2]


def test_the_cache_does_not_keep_code_alive() -> None:
    source = run_programs.write(3)
    function = run_programs.define(source)
    rewritten(function)
    code = weakref.ref(function.__code__)
    before = len(module._analyses)
    linecache.cache.pop(function.__code__.co_filename)
    del function
    gc.collect()
    assert code() is None
    assert len(module._analyses) < before


def test_threads() -> None:
    template = "def f{0}(x):\n    if x:\n        return {0}\n    return [x for x in range({0})]\n"
    source = "".join(template.format(i) for i in range(40))
    file = "<threads>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace: dict[str, Any] = {}
    exec(compile(source, file, "exec"), namespace)
    results: list[object] = []

    def work() -> None:
        results.append([rewritten(namespace[f"f{i}"])(x) for i in range(40) for x in (0, 1)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[namespace[f"f{i}"](x) for i in range(40) for x in (0, 1)]] * 8


# ---- finding the source
def test_decorated_functions_are_found() -> None:
    def keep(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    @keep
    @keep
    def decorated(x):
        return x or "none"

    inner = decorated.__wrapped__.__wrapped__
    assert converted(inner).code == "def decorated(x):\n    return or_(x, lambda: 'none')"
    assert rewritten(decorated)(0) == "none"


def test_lambdas_of_one_line_are_told_apart() -> None:
    pair = [lambda x: x + 1, lambda x: x + 2]; nested = lambda x: lambda x: x * 3  # noqa: E702, E731
    assert [rewritten(each)(1) for each in pair] == [2, 3]
    assert rewritten(nested)(0)(2) == 6
    assert rewritten(nested(0))(2) == 6
    assert converted(nested(0)).code == "lambda x: x * 3"


def test_ambiguous_lambdas_are_refused() -> None:
    pair = [lambda x: x, lambda x: x]
    code = pair[0].__code__
    blind = types.FunctionType(code.replace(co_linetable=b""), {})
    with pytest.raises(CaptureError, match="SG102"):
        convert(blind, OPERATORS)
    assert rewritten(pair[1])(5) == 5


@pytest.mark.parametrize("function", [len, functools.partial(halve), eval("lambda x: x"), types.SimpleNamespace])
def test_functions_without_source_are_refused(function: Any) -> None:
    with pytest.raises(CaptureError, match="SG101"):
        convert(function, OPERATORS)


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "changing.py"
    text = "def f(x):\n    return x + 1\n\ndef g(x):\n    return f(x)\n"
    file.write_text(text)
    future = time.time() + 100
    os.utime(file, (future, future))
    spec = importlib.util.spec_from_file_location("changing", file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    assert rewritten(loaded.f)(1) == 2

    file.write_text(text.replace("return f(x)", "return f(x) - 3"))
    os.utime(file, (future + 5, future + 5))
    with pytest.raises(CaptureError, match="SG101"):
        convert(loaded.g, OPERATORS)
    file.write_text("\n\n" + text)
    os.utime(file, (future + 9, future + 9))
    with pytest.raises(CaptureError, match="SG101"):
        convert(loaded.g, OPERATORS)


# ---- what is refused
async def asynchronous() -> None:
    pass


async def asynchronous_generator() -> Any:
    yield 1


def test_coroutines_are_refused() -> None:
    for function in (asynchronous, asynchronous_generator):
        with pytest.raises(CaptureError, match="SG103"):
            convert(function, OPERATORS)


def test_a_nested_coroutine_is_left_alone() -> None:
    def outer(x):
        if x:
            async def inner():
                return x and 1

            return inner().__class__.__name__
        return None

    made = rewritten(outer)
    with pytest.warns(RuntimeWarning, match="never awaited"):
        assert made(1) == "coroutine"


def looks_in_a_branch(x):
    if x:
        return locals()
    return 1


def looks_in_a_loop(x):
    for i in range(x):
        x = [i and eval("i")]
    return x


def looks_in_operands(x):
    y = x and eval("x + 1")
    return y, locals() if x else "x", [eval("1") for x in range(2)]


def looks_in_a_lambda(x):
    if x:
        return (lambda y: locals())(x)
    return None


def test_looking_at_the_variables_of_a_block_is_refused_when_the_line_runs() -> None:
    for function, name in ((looks_in_a_branch, "locals"), (looks_in_a_loop, "eval")):
        assert rewritten(function)(0) == function(0)
        with pytest.raises(LookupError, match=name):
            rewritten(function)(2)
    assert [rewritten(looks_in_operands)(x) for x in (0, 1)] == [looks_in_operands(x) for x in (0, 1)]
    assert outcome(rewritten(looks_in_a_lambda), (3,)) == ("{'y': 3}", "", "(3,)")
