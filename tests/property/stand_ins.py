"""What Python code may ask of a number, text or array, and do with it: expressions, for eager PyTorch to answer.

In them ``v`` is a float, ``n`` an int, ``b`` a bool, ``s`` a text, ``a`` an array and ``c`` one of its numbers, all of
which only the run knows, and ``w`` is one of two texts.
"""

from __future__ import annotations

OF_TEXTS = (
    *("isinstance(s, str)", "isinstance(s, (str, bytes))", "isinstance(s, str | int)", "isinstance(s, int)"),
    *("isinstance(s, collections.abc.Sequence)", "isinstance(s, collections.abc.Iterable)"),
    *("isinstance(s, os.PathLike)", "type(s) is str", "type(s) == str", "type(s).__name__", "type(s)(3)"),
    *("issubclass(type(s), str)", "s.__class__ is str", "s.__class__.__name__", "s.__doc__ == str.__doc__"),
    *("callable(s)", "hasattr(s, '__iter__')", "hasattr(s, 'upper')", "hasattr(s, 'append')"),
    *("hasattr(s, '__fspath__')", "hasattr(s, 'shape')", "hasattr(s, '__deepcopy__')"),
    *("getattr(s, 'decode', 7)", "isinstance(f'{v:.1f}', str)", "isinstance('%s' % v, str)"),
    *("isinstance(','.join([s, 'a']), str)", "isinstance(s + 'a', str)", "copy.copy(s) + 'a'", "s * 2"),
    *("2 * s", "s * 0", "s * True", "s + 'a'", "'a' + s", "s == 1", "s != None"),
)
"""What a program answers."""

OTHERS = (
    *("','.join([s, 1])", "','.join([s, v])"),
    *("s * n", "s * v", "s * 1.5", "s * x", "x * s", "s[0]", "s[0:3]", "s[-1]", "s[n]", "s['a']"),
    *("[c for c in s]", "list(s)", "s < 'z'", "'a' < s", "s <= s", "s >= 1", "1 < s", "s == '3.0'", "s % ()"),
    *("s % {}", "s % 3", "s % v", "s + 1", "1 + s", "s + v", "v + s", "s + x", "x + s", "s + [1]", "[1] + s"),
    *("s + b'a'", "s + None", "-s", "+s", "~s", "s - 1", "s / 2", "pathlib.Path('a') / s", "s // 2", "s ** 2"),
    *("s @ s", "s & 1", "divmod(s, 2)", "abs(s)", "round(s)", "s()", "s in 'abc'", "'a' in s", "3 in s"),
    *("len(s)", "int(s)", "float(s)", "int(s, 10)", "ord(s)", "hash(s)", "{s: 1}", "bytes(s, 'utf8')"),
    *("eval(s)", "json.dumps(s)", "getattr(x, s)", "x[s]", "os.path.join('a', s)", "range(s)", "s.foo"),
    *("s.upper()", "s.__len__()", "str.upper(s)", "sorted([s, 'a'])", "max(s, 'a')", "f'{s:d}'", "s.split()"),
    *("v * 1j", "1j * v", "v + 1j", "n ** 1j", "b * 1j", "v == 1j", "v != 1j", "v < 1j", "v - 'a'", "v < None"),
    *("v == 'a'", "n * 'ab'", "'ab' * n", "'ab' * v", "v & 1", "1 & v", "~v", "n << 1.5", "n | 1.0", "v * [1]"),
    *("v + (1,)", "v @ v", "pow(n, 2, 5)", "pow(2, n, 5)", "pow(2, 3, n)", "v ** None", "round(v, 's')"),
    *("round(v, 1.0)", "int(v, 10)", "fractions.Fraction(v)", "fractions.Fraction(n, 2)"),
    *("v * fractions.Fraction(1, 2)", "fractions.Fraction(1, 2) * n", "n == fractions.Fraction(3)"),
    *("decimal.Decimal(3) == n", "decimal.Decimal(1) * n", "v * decimal.Decimal(2)"),
    *("datetime.timedelta(1) * n", "n * datetime.timedelta(1)", "datetime.timedelta(v)", "decimal.Decimal(v)"),
    *("struct.pack('f', v)", "struct.pack('i', n)", "torch.arange(v)", "torch.arange(len(x[x > 0]) * 1.0)"),
    *("x[b]", "x[v]", "x[x > 0].nbytes", "json.dumps(w)", "json.dumps([n])", "w * 2", "w + 1", "-w", "bin(n)"),
    *("v.foo", "round(c, 1)", "round(a, 1)", "divmod(c, 2)", "divmod(a, 2)", "2 in a", "complex(c)", "bool(a)"),
    *("int(a)", "float(a)", "a + 's'", "a + None", "a < 's'", "~a", "a['a']", "a @ 2", "np.diff(a)"),
    *("np.diff(a).sum()", "a.__array_interface__"),
)
"""What a program answers as eager PyTorch, or refuses: values, and the errors that handlers see."""

FUNCTION = """
import collections, copy, datetime, decimal, fractions, json, os, pathlib, struct
import numpy as np
import torch

def function(x):
    v, n, b = x.sum().item(), int(x.sum()), bool(x.sum() > 0)
    s, w = str(v), "pos" if x.sum() > 0 else "neg"
    a = x.numpy()
    c = a.sum()
    try:
        found = {expression}
    except Exception as error:
        found = type(error).__name__, str(error)
    return found
"""
