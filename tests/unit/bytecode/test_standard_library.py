"""Functions of Python's own library do the same in the interpreter, which takes on all that they call in it too."""

from __future__ import annotations

import ast
import bisect
import calendar
import collections
import colorsys
import configparser
import contextlib
import copy
import csv
import difflib
import fractions
import functools
import gettext
import heapq
import html.parser
import importlib.util
import inspect
import io
import json
import pprint
import random
import re
import shlex
import statistics
import string
import sys
import textwrap
import tokenize
import types
import urllib.parse
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any
from unittest import mock

import pytest

from stillgraph.bytecode.entry.convert import convert
from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.rewritten import is_rewritten
from tests.unit.bytecode.both import following, seen

TEXT = "The quick brown fox -- it's known to jump over\n\tthe lazy dog; 'quoted words' and 1,234.5e-6 numbers.\n" * 3


def _module(*names: str) -> ModuleType:
    """The first of these modules that there is."""
    for name in names:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise ImportError(names)


def _pure_datetime() -> ModuleType:
    """Dates in Python, which before 3.12 are in a module that prefers those in C."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("_pydatetime")
    spec = importlib.util.find_spec("datetime")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"_datetime": None}):
        spec.loader.exec_module(module)
    return module


_date = _pure_datetime()
_decimal = _module("_pydecimal")
_compiler, _parser = _module("re._compiler"), _module("re._parser")


def _heaps() -> Any:
    values = [5, 3, 9, 1, 7, 7, -2]
    heap = list(values)
    heapq._heapify_max(heap) if hasattr(heapq, "_heapify_max") else None
    return heap, list(heapq.merge([1, 4], [2, 3], reverse=False)), heapq.nlargest(3, values, key=lambda v: v % 5), (
        heapq.nsmallest(2, values)
    )


def _collections() -> Any:
    # the module is given: the stack, which is asked for it otherwise, is the interpreter's there
    point = collections.namedtuple("point", "x y", defaults=[3], module=__name__)
    counted = collections.Counter("abracadabra") + collections.Counter(a=2)
    chained = collections.ChainMap({"a": 1}, {"b": 2}).new_child({"c": 3})
    users = collections.UserList([3, 1, 2])
    users.sort()
    ordered = collections.OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    points = point(1)._asdict(), point._make([4, 5])._replace(y=6)
    return points, counted.most_common(2), dict(chained), users, ordered, counted - collections.Counter("aab")


def _json() -> Any:
    value = {"a": [1, 2.5, None, True, "é\n\u2028"], "b": {"c": []}, "d": "x" * 3}
    encoder = json.encoder.JSONEncoder(indent=2, sort_keys=True)
    with mock.patch.object(json.encoder, "c_make_encoder", None):
        text = encoder.encode(value) + json.encoder.py_encode_basestring_ascii("é\"")
    decoder = json.decoder.JSONDecoder()
    decoder.parse_string = json.decoder.py_scanstring
    decoder.scan_once = json.scanner.py_make_scanner(decoder)
    return text, decoder.decode(encoder.encode(value))


def _json_wrong() -> Any:
    decoder = json.decoder.JSONDecoder()
    decoder.parse_string = json.decoder.py_scanstring
    decoder.scan_once = json.scanner.py_make_scanner(decoder)
    return decoder.decode('{"a": [1, 2')


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def _html() -> Any:
    parser = _Tags()
    parser.feed("<p class='a' hidden>text &amp; more<br/><!-- no --><a href=x>y</a></p><script>1 < 2</script>")
    parser.close()
    return parser.found


def _configuration() -> Any:
    parser = configparser.ConfigParser()
    parser.read_string("[DEFAULT]\nhome = /h\n[one]\npath = %(home)s/x\nnumber: 3\n  more\nflag = yes\n")
    out = io.StringIO()
    parser.write(out)
    return parser.getboolean("one", "flag"), parser["one"]["path"], parser.sections(), out.getvalue()


def _decimals() -> Any:
    a, b = _decimal.Decimal("3.14159265358979"), _decimal.Decimal(7)
    context = _decimal.Context(prec=12)
    found = a + b, a / b, a**3, a % b, -a, a.quantize(_decimal.Decimal("0.01")), round(a, 3)
    found += a.sqrt(context), b.ln(context), a.exp(context), context.divide(b, a)
    return [str(each) for each in found], f"{a:>12.3f}|{b:e}"


def _dates() -> Any:
    day = _date.date(2024, 2, 29)
    moment = _date.datetime(2023, 12, 31, 23, 59, 58, tzinfo=_date.timezone(_date.timedelta(hours=2)))
    return [str(each) for each in (
        day + _date.timedelta(days=366), day.isocalendar(), moment.isoformat(), moment - _date.timedelta(seconds=7.5),
        moment.strftime("%Y %j %a"), _date.datetime.fromisoformat("2020-01-02T03:04:05"), moment.utctimetuple()[:6],
        _date.timedelta(days=3, hours=5) / 2, day.replace(year=2020) < day,
    )]


def _random() -> Any:
    made = random.Random(7)
    values = list(range(9))
    made.shuffle(values)
    drawn = made.sample(range(100), 5), made.choices("abc", [1, 2, 3], k=4), made.gauss(0, 1), made.randint(1, 6)
    more = made.betavariate(1, 2), made.triangular(), made.expovariate(1.5), made.uniform(2, 3)
    return values, drawn, more, made.vonmisesvariate(0, 4)


def _expressions() -> Any:
    found = []
    for pattern in (r"(?P<a>x+)|[^a-f\d]*?$", r"(?i:ab)(?=c)(?<!d)e{2,3}", r"\w+\s\b(?:q|r)*", "(?x) a # b"):
        code = _compiler._code(_parser.parse(pattern), 0)
        found.append([int(each) for each in code])
    return found


def _tokens() -> Any:
    source = "def f(x):\n    return f'{x}' + \"y\"  # comment\n\nif f(1) == 2: pass\n"
    return [tuple(each) for each in tokenize.generate_tokens(io.StringIO(source).readline)]


def _unparsed() -> Any:
    tree = ast.parse(inspect.getsource(textwrap) + inspect.getsource(bisect))
    return ast.unparse(tree), len(list(ast.walk(tree))), ast.dump(tree.body[1])


def _diffs() -> Any:
    a, b = TEXT.splitlines(), TEXT.replace("fox", "cat").splitlines()[:-1]
    matcher = difflib.SequenceMatcher(None, "abcdxyz", "bcdwyz")
    close = difflib.get_close_matches("appel", ["ape", "apple", "peach"])
    diffs = list(difflib.unified_diff(a, b)), list(difflib.ndiff(a[:2], b[:2]))
    return diffs, matcher.get_opcodes(), matcher.ratio(), close


def _urls() -> Any:
    parts = urllib.parse.urlsplit("https://user:pw@example.org:80/a/b;c?q=1&q=2&r=%20é#frag")
    return tuple(parts), parts.port, urllib.parse.parse_qs(parts.query), urllib.parse.quote("a b/é?"), (
        urllib.parse.urljoin("http://a/b/c/d", "../e?f"), urllib.parse.unquote("a%20%C3%A9"), parts.geturl(),
        urllib.parse.urlencode({"a": [1, 2], "b": "c d"}, doseq=True),
    )


def _fractions() -> Any:
    a, b = fractions.Fraction(3, 7), fractions.Fraction("-2.5")
    found = a + b, a * b, a / b, a**2, b // a, b % a, abs(b), round(a, 2), a.limit_denominator(2), divmod(a, b)
    return [str(each) for each in found], a < b, hash(a), float(a)


def _statistics() -> Any:
    values = [1.5, 2, 2, 3.25, 9, -4]
    names = ("mean", "median", "stdev", "mode", "quantiles", "multimode", "pvariance", "fmean")
    found = [getattr(statistics, name)(values) for name in names]
    both = statistics.linear_regression(values, sorted(values)), statistics.correlation(values, values)
    return found, both, statistics.harmonic_mean([1, 2, 4]), statistics.NormalDist(1, 2).cdf(2.5)


def _formats() -> Any:
    made = string.Template("$a and ${b} $$ $c")
    return made.safe_substitute(a=1, b=2), string.Formatter().format("{0!r:>5} {k[0]} {x.real}", "v", k=[1], x=2), (
        string.capwords("some words here")
    )


def _cached() -> Any:
    @functools.total_ordering
    class Order:
        def __init__(self, n: int) -> None:
            self.n = n

        def __eq__(self, other: Any) -> bool:
            return self.n == other.n

        def __lt__(self, other: Any) -> bool:
            return self.n < other.n

    @functools.singledispatch
    def show(value: Any) -> str:
        return "any"

    show.register(int, lambda value: "int")
    partial = functools.partialmethod(lambda self, x: x, 4)
    return Order(1) <= Order(2), Order(1) > Order(2), show(3), show("x"), partial.args, sorted(
        [3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)
    )


def _printed() -> Any:
    value = {"key": list(range(30)), "other": {"nested": ("tuple", {1, 2}), "long": "words " * 20}, "s": {3: None}}
    return pprint.pformat(value, width=40), pprint.pformat(value, depth=1, compact=True), pprint.isreadable(value)


def _plural() -> Any:
    plural = gettext.c2py("n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2")
    return [plural(n) for n in range(25)]


CALLS: dict[str, tuple[tuple[ModuleType, ...], Callable[[], Any]]] = {
    "textwrap": ((textwrap,), lambda: (textwrap.wrap(TEXT, 30), textwrap.dedent("  a\n    b\n"),
                                       textwrap.shorten(TEXT, 40), textwrap.indent(TEXT, "> "))),
    "heapq": ((heapq,), _heaps),
    "statistics": ((statistics, fractions), _statistics),
    "fractions": ((fractions,), _fractions),
    "json": ((json.encoder, json.decoder, json.scanner), _json),
    "json, wrong": ((json.decoder, json.scanner), _json_wrong),
    "difflib": ((difflib,), _diffs),
    "string": ((string,), _formats),
    "shlex": ((shlex,), lambda: (shlex.split("a 'b c' \"d\\\"e\" # f", comments=True), shlex.quote("it's"))),
    "shlex, wrong": ((shlex,), lambda: shlex.split("a 'b")),
    "collections": ((collections,), _collections),
    "functools": ((functools,), _cached),
    "ast": ((ast,), _unparsed),
    "tokenize": ((tokenize,), _tokens),
    "csv": ((csv,), lambda: (vars(csv.Sniffer().sniff("a;b;c\n1;'2';3\n4;5;6\n"))["delimiter"],
                             csv.Sniffer().has_header("n,m\n1,2\n3,4\n"), list(csv.DictReader(["a,b", "1,2"])))),
    "calendar": ((calendar,), lambda: (calendar.TextCalendar().formatmonth(2024, 2), calendar.monthrange(1999, 11),
                                       calendar.HTMLCalendar().formatmonth(2023, 5), calendar.isleap(1900))),
    "colorsys": ((colorsys,), lambda: (colorsys.rgb_to_hls(0.2, 0.4, 0.6), colorsys.hsv_to_rgb(0.3, 0.5, 0.7),
                                       colorsys.rgb_to_yiq(1, 0, 0.5))),
    "datetime": ((_date,), _dates),
    "decimal": ((_decimal,), _decimals),
    "configparser": ((configparser,), _configuration),
    "html.parser": ((html.parser, html, _module("_markupbase")), _html),
    "urllib.parse": ((urllib.parse,), _urls),
    "pprint": ((pprint,), _printed),
    "random": ((random,), _random),
    "re": ((_compiler, _parser), _expressions),
    "gettext": ((gettext,), _plural),
    "copy": ((copy,), lambda: copy.deepcopy({"a": [1, (2, [3])], "b": fractions.Fraction(1, 3)})),
}


def _convertible(function: FunctionType) -> bool:
    try:
        convert(function)
    except CaptureError:  # a coroutine, or what makes a generic function
        return False
    return True


@contextlib.contextmanager
def _interpreted(modules: tuple[ModuleType, ...]) -> Iterator[int]:
    """The functions and methods of modules are interpreted, and what they make and call of them; gives how many."""
    with contextlib.ExitStack() as stack:
        count = 0
        files = {module.__file__ for module in modules}
        kinds = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
        for owner in (*modules, *dict.fromkeys(kinds)):
            if owner is functools.cached_property:  # which the interpreter uses itself
                continue
            for name, value in list(vars(owner).items()):
                plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
                if not isinstance(plain, FunctionType) or is_rewritten(plain.__code__):
                    continue
                if plain.__code__.co_filename in files and _convertible(plain):
                    made: Any = convert(plain)
                    made = type(value)(made) if plain is not value else made
                    stack.enter_context(mock.patch.object(owner, name, made))
                    count += 1
        stack.enter_context(following(lambda each: each.__code__.co_filename in files and _convertible(each)))
        yield count


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_library(name: str) -> None:
    modules, act = CALLS[name]
    expected = seen(act)
    with _interpreted(modules) as count:
        found = seen(act)
    assert count > 0
    assert found == expected
    assert found.error is None or "wrong" in name, found.error


PURE = [
    *((bisect, name, ([1, 3, 3, 5, 8], 3)) for name in ("bisect_left", "bisect_right", "insort_left")),
    *((bisect, name, ([1, 3, 3, 5, 8], 9)) for name in ("bisect_left", "bisect_right", "insort_left")),
    *((heapq, name, ([4, 2, 6, 1],)) for name in ("heapify", "heappop")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name", "args"), PURE)
def test_pure_versions(module: ModuleType, name: str, args: tuple[Any, ...]) -> None:
    """What Python also has in C, from the text of the module without it."""
    text = re.sub(r"(?ms)^try:\n    from _(bisect|heapq) import.*", "", inspect.getsource(module))
    pure = types.ModuleType(module.__name__)
    exec(compile(text, str(module.__file__), "exec"), vars(pure))
    function = getattr(pure, name)
    assert seen(convert(function), *args) == seen(function, *args) == seen(getattr(module, name), *args)
