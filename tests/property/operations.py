"""Every kind of value that only the run knows, and every operation of Python's that meets one.

A kind has the statements that make the value ``v``. In them ``x`` is the argument, a tensor of two numbers whose sum
may be negative, and ``p`` tells whether it is positive. An operation is an expression of ``v``, or statements and an
expression behind ``;;``.
"""

from __future__ import annotations

KINDS: dict[str, str] = {
    "int": "v = int(x.sum())",
    "float": "v = x.sum().item()",
    "bool": "v = bool(p)",
    "complex": "v = complex(x.sum().item(), 1.0)",
    "text": "v = f'{x.sum().item():.2f}'",
    "texts of paths": "v = 'aa' if p else 'b'",
    "text or text of the run": "v = f'{x.sum().item():.1f}' if p else 'b'",
    "None or tensor": "v = x * 2 if p else None",
    "None or number": "v = int(x.sum()) if p else None",
    "None or truth": "v = bool(x[0] > 1) if p else None",
    "None or constant": "v = 3 if p else None",
    "number or tensor": "v = x.sum() if p else 1.5",
    "bool or int": "v = True if p else 2",
    "int or float": "v = int(x.sum()) if p else 2.5",
    "text or tensor": "v = 'a' if p else x",
    "number or text": "v = x.sum().item() if p else 'b'",
    "list or tuple": "v = [1, x] if p else (1, x)",
    "lists of other lengths": "v = [1, 2] if p else [1]",
    "members": "v = Colour.RED if p else Colour.BLUE",
    "whole members": "v = Level.LOW if p else Level.HIGH",
    "flags": "v = Access.READ if p else Access.WRITE",
    "classes": "v = int if p else float",
    "functions": "v = math.floor if p else abs",
    "functions of the user's": "v = doubled if p else tripled",
    "closures": "v = (lambda y: y * 2) if p else (lambda y: y + 1)",
    "objects": "v = Point(1, x) if p else Frozen(1, 2)",
    "objects of one class": "v = Point(1, x) if p else Point(2, x + 1)",
    "modules": "v = linear if p else relu",
    "exceptions": "v = ValueError('a') if p else KeyError('b')",
    "dtypes": "v = torch.float32 if p else torch.int64",
    "maybe unset": "if p: v = 1.5",
    "maybe unset tensor": "if p: v = x",
    "list": "v = [y for y in x if y > 0]",
    "list of numbers": "v = [int(y) for y in x if y > 0]",
    "tuple": "v = tuple(y * 2 for y in x if y > 0)",
    "deque": "v = collections.deque(y for y in x if y > 0)",
    "range": "v = range(int(x.sum()))",
    "iterator": "v = iter(range(int(x.sum())))",
    "iterator of a list": "v = iter([y for y in x if y > 0])",
    "zip": "v = zip(range(int(x.sum())), x[x > 0])",
    "enumerate": "v = enumerate(x[x > 0])",
    "generator": "v = counting(x[x > 0])",
    "slice": "v = slice(int(x.sum()))",
    "size": "v = x[x > 0].shape",
    "length": "v = len(x[x > 0])",
    "tensor of unknown length": "v = x[x > 0]",
    "tensor of no dimensions": "v = x.sum()",
    "array": "v = x.numpy()",
    "array of unknown length": "v = x[x > 0].numpy()",
    "numpy's number": "v = x.numpy().sum()",
    "dict of paths": "v = {'a': 1}\nif p: v['b'] = x",
    "dict by numbers": "v = {int(x.sum()): 'a', 7: x}",
    "set by numbers": "v = {int(x.sum()), 2}",
    "key of paths": "v = {'aa' if p else 'b': x}",
    "list with None": "v = [x if p else None, 1]",
    "list of texts": "v = [f'{y:.1f}' for y in x if y > 0]",
}

ASKED = (
    *("v is None", "v is not None", "v is v", "v is True", "v is x", "v == 1", "1 == v", "v == v", "v != 'b'"),
    *("v == None", "v == (1, 2)", "v == [1]", "v == x", "x == v", "v < 2", "v >= v", "2 > v", "v < 'b'", "not v"),
    *("bool(v)", "1 if v else 2", "v and 5", "v or 5", "5 and v", "None or v", "any([v])", "all((v, 1))"),
    *("1 < 2 == v", "v in (1, None, 'aa')", "v in {1: 2, 'b': 3}", "v in [x]", "1 in v", "'a' in v", "v not in (2.5,)"),
)
"""Questions."""

COMPUTED = (
    *("v + 1", "1 + v", "v + v", "v + 'c'", "v + [1]", "v + (1,)", "v - 1.5", "v * 2", "2 * v", "v * x", "x + v"),
    *("v / 2", "v // 2", "v % 3", "v ** 2", "2 ** v", "v @ v", "v << 1", "v & 1", "1 | v", "-v", "+v", "~v"),
    *("divmod(v, 2)", "abs(v)", "round(v)", "round(v, 1)", "math.floor(v)", "math.sqrt(v)", "math.isfinite(v)"),
    *("pow(v, 2)", "max(v, v)", "min(v, 1)", "max(v)", "sum(v)", "sum([v, v])", "sorted([v, v])", "sorted(v)"),
    *("operator.index(v)", "operator.neg(v)", "operator.add(v, 1)", "functools.reduce(operator.add, [v, v])"),
)
"""Arithmetic."""

CONVERTED = (
    *("int(v)", "float(v)", "complex(v)", "str(v)", "repr(v)", "f'{v}'", "f'{v!r:>8}'", "f'{v:.2f}'", "'%s' % (v,)"),
    *("'%d' % v", "'{} {}'.format(v, 1)", "list(v)", "tuple(v)", "set(v)", "dict(v)", "dict(a=v)", "range(v)"),
    *("hash(v) == hash(v)", "type(v)", "type(v).__name__", "type(v) is int", "v.__class__", "isinstance(v, int)"),
    *("isinstance(v, (str, float))", "isinstance(v, type(None))", "isinstance(v, collections.abc.Iterable)"),
    *("isinstance(v, torch.Tensor)", "issubclass(v, int)", "callable(v)", "len(v)", "iter(v)", "next(v)"),
    "next(iter(v))",
    *("id(v) == id(v)", "bytes(v)", "chr(v)", "hex(v)", "ascii(v)", "format(v, '')", "json.dumps(v)"),
    *("copy.copy(v)", "copy.deepcopy(v)", "torch.tensor(v)", "torch.as_tensor(v)", "np.asarray(v)", "torch.zeros(v)"),
    *("torch.full((2,), v)", "torch.is_tensor(v)", "torch.add(x, v)", "torch.stack([v, v])", "x.view(v)", "x.to(v)"),
)
"""Functions."""

TAKEN = (
    *("v[0]", "v[-1]", "v['a']", "v[0:1]", "v[...]", "v[None]", "v[x > 0]", "x[v]", "x[:v]", "(1, x)[v]"),
    "[5, 6, 7][v]",
    *("{1: 'one', 'b': 2}[v]", "{1: 'one', 'aa': 2}.get(v, 0)", "{v: 1}", "len({v, 1})", "[v, v]", "(v, (v,))"),
    "{'k': v}",
    *("[*v]", "(*v, 1)", "{**v}", "print(v)", "print(*v)", "v()", "v(x)", "v(-2.5)", "doubled(v)", "kept(1, *v)"),
    *("kept(**v)", "kept(a=v)", "(lambda: v)()", "[v for _ in range(2)]", "[a for a in v]", "{a: 1 for a in v}"),
    *("[(a, b) for a, b in zip(v, v)]", "list(zip(v, (1, 2)))", "list(enumerate(v))", "list(map(str, v))"),
    *("list(reversed(v))", "list(filter(None, v))", "','.join(v)", "getattr(v, 'a', 0)", "hasattr(v, 'shape')", "v.a"),
    *("v.shape", "v.real", "v.name", "v.value", "v.args", "v.append", "v.upper()", "v.item()", "v.sum()", "v.keys()"),
    *("v.count(1)", "v.index(1)", "v.copy()", "v.is_integer()", "v.bit_length()", "v.__name__", "v.__doc__ is None"),
    *("v.__len__()", "v.__eq__(1)", "str.upper(v)", "vars(v)", "dir(v)", "operator.itemgetter(0)(v)"),
)
"""Items, attributes, calls."""

DONE = (
    "a, b = v ;; (a, b)",
    "a, *b = v ;; (a, b)",
    "(a := v) ;; a",
    "v += 1 ;; v",
    "v *= 2 ;; v",
    "v[0] = 9 ;; v",
    "v['a'] = x ;; v",
    "v.a = 3 ;; v.a",
    "del v[0] ;; v",
    "del v.a ;; v",
    "del v ;; v",
    "v.append(1) ;; v",
    "v.add(1) ;; v",
    "v.update(c=1) ;; v",
    "v.pop() ;; v",
    "s = 0\nfor a in v: s = s + 1 ;; s",
    "s = 0\nfor a in v:\n    s = s + a\n    if s > 2: break ;; s",
    "s = 0\nwhile v:\n    s = s + 1\n    v = None ;; (s, v)",
    "s = 0\nwhile s < x.sum():\n    s = s + 1\n    w = v ;; (s, v)",
    "w = 1\nif x[0] > 1: w = v ;; w",
    "w = v\nif x[0] > 1: w = v\nelse: w = x ;; w",
    "for i in range(int(x.abs().sum())): w = (v, i) ;; w",
    "assert v ;; 1",
    "assert v == 1, v ;; 1",
    "raise v ;; 1",
    "raise ValueError(v) ;; 1",
    "with v: pass ;; 1",
    "try:\n    a = v + 1\nexcept TypeError:\n    a = 'none'\nfinally:\n    b = v ;; (a, b)",
    "match v:\n    case None: r = 0\n    case int(): r = 1\n    case [a, *b]: r = a\n    case _: r = 3 ;; r",
    "match v:\n    case str(): r = 2\n    case _: r = 3 ;; r",
    "match v:\n    case {'a': a}: r = a\n    case _: r = 3 ;; r",
    "match v:\n    case 1 | 'b': r = 1\n    case True: r = 2\n    case Point(a=a): r = a\n    case _: r = v ;; r",
    "l = []\nl.append(v)\nl.extend([v]) ;; l",
    "d = {}\nd['v'] = v\nd.setdefault('v', 1) ;; d",
    "d = collections.defaultdict(int)\nd[v] += 1 ;; d",
    "o = Point(v)\no.b = v ;; o",
    "c = collections.Counter([v, v]) ;; c",
    "q = collections.deque([v])\nq.appendleft(v) ;; q",
    "def f(a=v): return a\ng = functools.partial(kept, v) ;; (f(), g())",
    "x[0] = v ;; x",
    "x.mul_(v) ;; x",
    "h = [(2, 1)]\nheapq.heappush(h, (v, 1)) ;; h",
    "def own():\n    yield v\n    yield from v ;; list(own())",
)
"""Statements."""

OPERATIONS = (*ASKED, *COMPUTED, *CONVERTED, *TAKEN, *DONE)
