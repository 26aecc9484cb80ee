"""What the cache of a function under ``functools.lru_cache`` holds, found without a call of the function.

`functools` has no way to ask. The garbage collector's view of the wrapper does, in the order of
``lru_cache_tp_traverse`` (CPython 3.11 to 3.13, Modules/_functoolsmodule.c): the class, a key and a result for each
entry of a bounded cache, the dictionary, the function, the mark that stands before keywords in a key.
"""

from __future__ import annotations

import functools
import gc
from typing import Any

_SHORT = (int, str)  # a single argument of these classes is the key itself


def held_for(function: functools._lru_cache_wrapper[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the cache holds for a call.

    Raises:
        LookupError: nothing: the call would run the function.
        TypeError: an argument has no hash, so that the call raises this too.
    """
    wrapped, size = function.__wrapped__, function.cache_info().currsize
    behind = gc.get_referents(function)
    where = next((n for n, each in enumerate(behind[:-1]) if type(each) is dict and behind[n + 1] is wrapped), None)
    if where is None or len(behind[where]) != size:
        raise LookupError("the cache cannot be looked into")
    entries, mark = behind[where], behind[where + 2]
    key = _key(args, kwargs, function.cache_parameters()["typed"], mark)
    if function.cache_parameters()["maxsize"] is None:
        return entries[key]
    if key not in entries:
        raise LookupError(key)
    pairs = zip(behind[1:where:3], behind[2:where:3])
    return next(result for known, result in pairs if known is key or known == key)


def _key(args: tuple[Any, ...], kwargs: dict[str, Any], typed: bool, mark: object) -> Any:
    if not typed and not kwargs:
        return args[0] if len(args) == 1 and type(args[0]) in _SHORT else args
    named = [each for pair in kwargs.items() for each in pair]
    types = [*map(type, args), *map(type, kwargs.values())] if typed else []
    return (*args, *([mark] if kwargs else []), *named, *types)
