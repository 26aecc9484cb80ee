"""Of what is asked of `kinds`: what a full graph is refused for. Everything else is answered, and has to stay so."""

from __future__ import annotations

REFUSED: dict[str, frozenset[str]] = {
    "generators": frozenset(
        {
            "functools.reduce(lambda a, b: a + b, g, x)",
            "list(g)",
            "next(g, 7)",
            "sum(k)",
            "any(g)",
            "k.send(None)",
            "g.gi_running",
            "frozenset(m)",
            "list(map(lambda y: y + 1, g))",
            "collections.Counter(m)",
            "a, *b = g ;; (a, b)",
            "first = next(g) ;; list(g)",
            "str(i for i in m)[:17]",
            "sorted(m, reverse=True)",
            "copy.copy(g)",
        }
    ),
    "iterators": frozenset(
        {
            "list(mp) == list(mp)",
            "next(mp)",
            "a = next(re) ;; operator.length_hint(re)",
            "len(re)",
            "next(it, None)",
            "sorted(it)",
            "dict(e)",
            "it.__next__()",
            "list(map(float, t))",
            "list(itertools.dropwhile(lambda i: i < 1, r))",
            "s = 0\nfor i, (j, y) in enumerate(zip(r, t)): s = s + i * j * y ;; s",
            "enumerate(n)",
            "min(z)",
        }
    ),
    "ranges": frozenset(
        {
            "hash(r) == 3",
            "list(r[1:])",
            "hash(r) == hash(range(3))",
            "r.index(1)",
            "max(r)",
            "list(range(0, 10, n))",
            "x[list(r)]",
            "s = 0\nfor i in w: s = s * 10 + i ;; s",
            "list(map(str, r))",
            "def g(): return r ;; g()",
        }
    ),
    "dicts": frozenset(
        {
            "sorted(f)",
            "copy.copy(s)",
            "next(iter(d))",
            "list(o.values())",
            "o == {'a': 1}",
            "list(c.elements())",
            "c['n'] = n ;; c.most_common()",
            "d['k'].append(1) ;; d",
            "json.dumps({k: 1 for k in e})",
            "s == {1, 2}",
            "hash(f) == hash(frozenset({1, 2}))",
            "f |= {8} ;; f",
        }
    ),
    "lists": frozenset(
        {
            "k[-3]",
            "rows[1.5]",
            "k.pop(0)",
            "k.index(1)",
            "k[0:1] = [7, 8] ;; k",
            "*a, b = k ;; b",
            "any(l)",
            "list(enumerate(j))",
            "torch.stack(l)",
            "','.join(map(str, j))",
            "list.__len__(j)",
            "rows[2]['b']",
        }
    ),
    "deques": frozenset(
        {
            "del m[0] ;; m",
            "u",
            "u.extend([1, 2]) ;; u",
            "u + u",
            "u.foo",
            "sorted(q)",
        }
    ),
    "tuples": frozenset(
        {
            "t()",
            "iter(u)",
            "h * n",
            "next(iter(z))",
            "u < (2, 0)",
            "'%d %s' % w",
            "x.expand(u[0], 2)",
        }
    ),
    "functions": frozenset(
        {
            "f[0]",
            "iter(f)",
            "g('a')",
            "{k: 1}[k]",
            "local.__code__.co_argcount",
            "f.a = 1 ;; f.a",
        }
    ),
    "scalars": frozenset(
        {
            "tn.shape",
            "cn.shape",
            "cn + 'a'",
            "torch.arange(tn)",
            "torch.nn.functional.dropout(x, o)",
            "[0, 1, 2][:iff]",
            "iff.__add__(1.5)",
            "x[tn]",
            "2 ** m",
            "math.sqrt(bi)",
            "iff.is_integer()",
            "nv.shape",
            "x.reshape(nv, 2)",
            "torch.ones(2) * cn",
            "complex(cn)",
            "x.expand(tn, 2)",
        }
    ),
    "numpy": frozenset(
        {
            "a()",
            "b.mean()",
            "b @ b",
            "np.clip(b, 0, 1)",
            "i.foo",
        }
    ),
    "dataclasses": frozenset(
        {
            "type(u)",
            "u.z = 9 ;; u",
            "iter(u)",
            "len(vars(u))",
            "ns == ns",
            "del ns.c ;; ns",
            "ns < ns",
            "ns.__eq__(ns)",
        }
    ),
    "slices": frozenset(
        {
            "seq[::n - n]",
            "'abc'[n]",
            "seq[n]",
            "seq[:n] = [] ;; seq",
            "torch.split(x, [n, 1])",
        }
    ),
    "constants": frozenset(
        {
            "torch.zeros(n if p else v)",
            "x.bernoulli(3.0)",
            "x.sort(3)",
            "torch.nn.functional.celu(x, 0.0)",
            "x.put(torch.tensor([5]), torch.ones(1))",
            "torch.searchsorted(x, x, side='a')",
            "x.bool() - True",
            "1 % x.int().clamp(0, 0)",
            "int(float('nan') * n)",
            "x.view(t)",
            "x.reshape(t, -1)",
            "torch.poisson(-x.abs())",
            "x.index_select(0, torch.tensor([5]))",
            "torch.linalg.cholesky(-torch.eye(2))",
            "n.__bool__()",
            "v.as_integer_ratio()",
            "math.pow(v, 2)",
            "x.sum().item() // 1",
            "dict(n)",
        }
    ),
    "enums": frozenset(
        {
            "{whole: 1, 0: 2, 1: 3}[abs(n) % 3]",
            "[Level.LOW, 'a', Level.HIGH, n].index(n)",
            "(n, 3) == (low, 3)",
            "whole ** n",
            "divmod(n, whole)",
            "half < n",
            "n == np.int64(1)",
            "n + 1j",
            "type(kept)",
            "math.gcd(n, whole)",
            "sorted([n, low, whole])",
            "range(n)[:whole]",
        }
    ),
    "number keys": frozenset(
        {
            "del d[k] ;; d",
            "d.pop(k), d",
            "d.pop(5, None)",
            "c[9]",
            "list(c.items())",
            "c.most_common(1)",
            "sorted(s)",
            "1 in s",
            "s.discard(1) ;; s",
            "s.remove(5) ;; s",
            "s | {7}",
            "[i for i in s]",
            "o.update({5: 6}) ;; o",
            "o.copy() == o",
            "for i in o: o[i] = 9 ;; o",
            "list(o.keys())",
            "sum(o.values())",
            "max(o)",
            "frozenset([n, 1])",
            "{int(i): i for i in x}",
            "collections.Counter(x.int().tolist())",
            "dict.fromkeys([n, 1])",
            "o.popitem()",
            "d['a'] = 1 ;; d",
            "d == {1: 1.5}",
        }
    ),
    "arms": frozenset(
        {
            "u.b",
            "list(u.state_dict())",
            "{t: x}",
            "sorted([t, 'm'])",
            "[t, t].count('up')",
            "getattr(x, 'sum' if p else 'mean')()",
            "o",
            "vars(o)",
            "match w:\n    case (1, y): r = y\n    case {'k': y}: r = y * 2 ;; r",
            "match w:\n    case {'k': y, **z}: r = y, z\n    case [a, *b]: r = a, b ;; r",
            "[f(x) for f in ([torch.sin, torch.cos][n % 2],)]",
            "['a', 'b', 'c'][n % 3]",
            "next(i for i in itertools.count() if i > n)",
        }
    ),
}
