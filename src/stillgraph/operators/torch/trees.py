"""``torch.utils._pytree.tree_map``: what it does with each leaf is followed like any other call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils import _pytree

from stillgraph.operators.dispatch import call


def _map(function: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    if is_leaf is not None:
        return _pytree.tree_map(function, tree, *rests, is_leaf=is_leaf)
    leaves, structure = _pytree.tree_flatten(tree)
    others = [structure.flatten_up_to(rest) for rest in rests]
    return _pytree.tree_unflatten([call(function, *each) for each in zip(leaves, *others)], structure)


def _map_only(kinds: Any, *given: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    is_of_types = isinstance(kinds, type) or (isinstance(kinds, tuple) and all(isinstance(k, type) for k in kinds))
    if not is_of_types or len(given) != 2:  # a test of the user's, or a decorator
        return _pytree.tree_map_only(kinds, *given, is_leaf=is_leaf)  # type: ignore[call-overload]  # as it was called
    function, tree = given
    return _map(lambda leaf: call(function, leaf) if call(isinstance, leaf, kinds) else leaf, tree, is_leaf=is_leaf)


MEANINGS: dict[Any, Callable[..., Any]] = {_pytree.tree_map: _map, _pytree.tree_map_only: _map_only}
