"""The operators of docs/dev/rewriting.md with their plain meaning: nothing is ever staged."""
from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from typing import Any

from stillgraph.source.convert import Converted, convert


class Return:
    def __init__(self, value: object) -> None:
        self.value = value


class Signal:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


BREAK, CONTINUE = Signal("BREAK"), Signal("CONTINUE")


def _exit(value: object) -> object:
    assert value is None or value is BREAK or value is CONTINUE or isinstance(value, Return), value
    return value


def _check(keeps: tuple[str, ...], drops: tuple[str, ...], *blocks: Any) -> None:
    assert not set(keeps) & set(drops)
    for name in (*keeps, *drops):
        assert any(block is not None and name in block.__code__.co_freevars for block in blocks), name


def if_(test, then, orelse=None, rest=None, *, keeps=(), drops=()):
    _check(keeps, drops, then, orelse, rest)
    leaving = _exit(then() if test else orelse() if orelse else None)
    if leaving is None and rest is not None:
        return _exit(rest())
    return leaving


def while_(test, body, orelse=None, *, keeps=(), drops=()):
    _check(keeps, drops, test, body, orelse)
    while test():
        leaving = _exit(body())
        if leaving is BREAK:
            return None
        if isinstance(leaving, Return):
            return leaving
    return _exit(orelse()) if orelse else None


def for_(iterable, body, orelse=None, *, keeps=(), drops=()):
    _check(keeps, drops, body, orelse)
    for value in iterable:
        leaving = _exit(body(value))
        if leaving is BREAK:
            return None
        if isinstance(leaving, Return):
            return leaving
    return _exit(orelse()) if orelse else None


def continue_(leaving, rest, *, keeps=(), drops=()):
    _check(keeps, drops, rest)
    return leaving if _exit(leaving) is not None else _exit(rest())


def result_of(leaving):
    assert leaving is None or isinstance(leaving, Return), leaving
    return None if leaving is None else leaving.value


def and_(first, *others, keeps=()):
    for other in others:
        if not first:
            return first
        first = other()
    return first


def or_(first, *others, keeps=()):
    for other in others:
        if first:
            return first
        first = other()
    return first


def assert_(test, message=None, *, keeps=()):
    if not test:
        if message is None:
            raise AssertionError
        raise AssertionError(message())


def set_item(owner, key, value):
    owner[key] = value


def del_item(owner, key):
    del owner[key]


def list_of(iterable, element, condition=None, flat=False):
    found = [element(each) for each in iterable if condition is None or condition(each)]
    return [each for inner in found for each in inner] if flat else found


def set_of(iterable, element, condition=None, flat=False):
    return set(list_of(iterable, element, condition, flat))


def caused(error, cause):
    error = error() if isinstance(error, type) else error
    error.__cause__ = cause() if isinstance(cause, type) else cause
    return error


def try_(body, handlers, orelse=None, cleanup=None, leaves=False, **places):
    left = None
    try:
        left = _with_handlers(body, handlers, orelse)
    except BaseException:
        after = cleanup() if cleanup is not None else None
        if after is None:
            raise
        return after
    after = cleanup() if cleanup is not None else None
    return left if after is None else after


def _with_handlers(body, handlers, orelse):
    try:
        left = body()
    except BaseException as error:
        for kinds, handler, *_ in handlers:
            if kinds is None or isinstance(error, kinds()):
                return handler(error)
        raise
    return orelse() if left is None and orelse is not None else left


def unpack(value, before, after=None):
    if after is None:
        return value
    [*items] = value
    if len(items) < before + after:
        raise ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(items)})")
    stop = len(items) - after
    return (*items[:before], items[before:stop], *items[stop:])


def generator_of(iterable, element, condition=None):
    iterator = iter(iterable)
    return (element(each) for each in iterator if condition is None or condition(each))


def dict_of(iterable, entry, condition=None, flat=False):
    return dict(list_of(iterable, entry, condition, flat))


def set_global(namespace, name, value):
    namespace[name] = value
    return value


def before_global(namespace, name):
    pass


def del_global(namespace, name):
    try:
        del namespace[name]
    except KeyError:
        raise NameError(f"name {name!r} is not defined") from None


IN_PLACE = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "@": operator.imatmul, "/": operator.itruediv,
    "//": operator.ifloordiv, "%": operator.imod, "**": operator.ipow, "<<": operator.ilshift, ">>": operator.irshift,
    "|": operator.ior, "^": operator.ixor, "&": operator.iand,
}

def with_(managers, body, **places):
    (make, *stores), *others = managers
    with make() as value:
        for store in stores:
            store(value)
        return with_(others, body) if others else body()



def hidden(name):
    raise LookupError(name)


def tried(pattern, *values):
    """Python's own pattern, as a function that gives its values, or whether it matches where it binds nothing."""
    gives = "True" if not values else f"({', '.join(values)},)"
    text = f"def tried(subject, kind=None):\n  match subject:\n    case {pattern}:\n      return {gives}\n"
    made: dict[str, Any] = {}
    exec(text + f"  return {None if values else False}", made)
    return made["tried"]


def elements_of(subject, before, after):
    names = [f"a{place}" for place in range(before)]
    if after is not None:
        names += ["*rest", *(f"b{place}" for place in range(after))]
    return tried(f"[{', '.join(names)}]", *(name.lstrip("*") for name in names))(subject)


def values_of(subject, keys):
    if len(set(keys)) < len(keys):
        raise ValueError("mapping pattern checks duplicate key")
    missing = object()
    found = tuple(subject.get(key, missing) for key in keys)
    return None if missing in found else found


def parts_of(subject, kind, names, positional):
    values = [f"a{place}" for place in range(positional)]
    named = [f"{name}=b{place}" for place, name in enumerate(names)]
    bound = [*values, *(f"b{place}" for place in range(len(names)))]
    if bound:
        return tried(f"kind({', '.join([*values, *named])})", *bound)(subject, kind)
    return () if tried("kind()")(subject, kind) else None


OPERATORS: dict[str, object] = {
    "if_": if_, "while_": while_, "for_": for_, "continue_": continue_, "result_of": result_of,
    "BREAK": BREAK, "CONTINUE": CONTINUE, "Return": Return,
    "and_": and_, "or_": or_, "not_": operator.not_, "if_exp": lambda test, a, b, *, keeps=(): a() if test else b(),
    "in_": lambda a, b: a in b, "is_none": lambda a: a is None, "is_": operator.is_, "assert_": assert_,
    "call": lambda f, /, *args, **kwargs: f(*args, **kwargs),
    "item": operator.getitem, "set_item": set_item, "del_item": del_item,
    "set_attr": setattr, "del_attr": delattr, "attr": getattr,
    "inplace": lambda symbol, a, b: IN_PLACE[symbol](a, b),
    "percent": lambda template, values: template % values,
    "text": lambda template, *values: template.format(*values),
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "keywords": lambda given: given, "received": lambda given: given,
    "stopping": lambda function: function, "calling": lambda function: function,
    "unpack": unpack, "drawn": lambda values: values, "items": iter, "listed": lambda values: values,
    "is_sequence": tried("[*_]"), "is_mapping": tried("{}"), "length": len, "elements_of": elements_of,
    "values_of": values_of, "parts_of": parts_of,
    "others_of": lambda subject, keys: {key: value for key, value in subject.items() if key not in keys},
    "variables": lambda found, names: {name: found[name] for name in found if name in names},
    "loaded": lambda value, name, free=False: value,
    "own": lambda read, name: read(),
    "evaluated": lambda code: code,
    "own_names": lambda found, names: [name for name in found if name in names],
    "handling": lambda: None, "starred": lambda: contextlib.nullcontext(contextlib.nullcontext()),
    "handled": lambda kinds: kinds,
    "raised": lambda error: error, "known": lambda error: error, "caused": caused, "try_": try_, "with_": with_,
    "set_display": lambda *values: set(values), "dict_display": lambda *pairs: dict(pairs),
    "list_of": list_of, "set_of": set_of, "dict_of": dict_of, "generator_of": generator_of,
    "binding": lambda generator, binds=True: generator, "hidden": hidden,
    "generator": lambda twin, emit: lambda function: function,
    "context": lambda manager: manager,
    "set_global": set_global, "del_global": del_global, "before_global": before_global,
    "slice_": slice,
}


def converted(fn: Callable[..., Any], **options: Any) -> Converted:
    return convert(fn, OPERATORS, **options)


def rewritten(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function with its control flow going through the plain operators."""
    return converted(fn, **options).function
