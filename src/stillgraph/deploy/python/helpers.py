"""Functions that a written file brings along, where neither Python nor torch has the operation."""

from __future__ import annotations

from typing import Any

from stillgraph.program import acts, operations, optimizers
from stillgraph.program.facts import rerouting

EXPECT = '''\
def _expect(name, value, dtype, shape):
    """Refuse a tensor that the program was not made for; None is any size."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} is a {type(value).__name__}, not a tensor")
    fits = len(shape) == value.dim() and all(want is None or want == size for want, size in zip(shape, value.shape))
    if not fits or value.dtype != dtype:
        raise ValueError(f"{name} is {value.dtype} {list(value.shape)}, the program takes {dtype} {list(shape)}")
'''

CONSTANT = '''\
def _expect_value(name, value, expected):
    """Refuse a Python value that the program was not made for."""
    if type(value) is not type(expected) or repr(value) != repr(expected):
        raise ValueError(f"{name} is {value!r}, the program was made for {expected!r}")
'''

NO_GRADIENTS = '''\
def _without_gradients(*tensors):
    """Refuse to be part of a backward pass: torch.while_loop differentiates wrongly where a loop never runs."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise ValueError("the program takes no gradients: call it under torch.no_grad()")
'''

UNBOUND = '''\
class _Unbound:
    """Stands for a variable that the path taken did not assign: whoever uses it gets what Python raises."""

    def __init__(self, name):
        self.name = name

    def _use(self, *args, **kwargs):
        raise UnboundLocalError(f"cannot access local variable '{self.name}' where it is not associated with a value")

    __getattr__ = __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __getitem__ = __call__ = _use
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pos__ = __abs__ = __invert__ = __round__ = _use
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _use
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _use
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _use

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        for value in [*args, *(kwargs or {}).values()]:
            if isinstance(value, cls):
                value._use()
        raise UnboundLocalError("cannot access a local variable where it is not associated with a value")


def _bound(value):
    """A value that leaves the program."""
    if isinstance(value, _Unbound):
        value._use()
    return value
'''

REPLACE = '''\
def _replace(target, value):
    """Let a container hold exactly what another one holds, in place."""
    target.clear()
    target.extend(value) if hasattr(target, "extend") else target.update(value)
'''

ALIKE = '''\
class _Alike:
    """Members of an enumeration are equal to those that they stand for."""

    def __eq__(self, other):
        if self is other:
            return True
        if type(other).__name__ != type(self).__name__ or not hasattr(other, "_value_"):
            return NotImplemented
        return other._name_ == self._name_ and (self._name_ is not None or other._value_ == self._value_)

    def __hash__(self):
        return hash(self._name_)
'''

REROUTE = '''\
def _reroute(backward, results, saved, inputs, options):
    """Let gradients go from results, which nothing tracks, to inputs as backward says; that is not differentiated."""

    class Rerouted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.save_for_backward(*saved)
            ctx.set_materialize_grads(options["zeros"])
            ctx.mark_non_differentiable(*(results[place] for place in options["constant"]))
            return tuple(results)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *grads):
            held = ctx.saved_tensors
            return tuple(backward(*grads, *(held[place] for place in options["own"])))

    return Rerouted.apply(*inputs)
'''

HELPERS: dict[str, str] = {
    "_Alike": ALIKE,
    "_expect": EXPECT,
    "_expect_value": CONSTANT,
    "_without_gradients": NO_GRADIENTS,
    "_Unbound": UNBOUND,
    "_replace": REPLACE,
    "_reroute": REROUTE,
    "_logged_once": '''\
@functools.lru_cache(None)
def _logged_once(logger, method, *args, **kwargs):
    """Log by a method of a logger, each message once."""
    getattr(logger, method)(*args, **kwargs)
''',
    "_popped": '''\
def _popped(items, index):
    """What items.pop(index) leaves."""
    rest = list(items)
    rest.pop(index)
    return rest
''',
    "_deleted": '''\
def _deleted(items, index):
    """What del items[index] leaves."""
    rest = list(items)
    del rest[index]
    return rest
''',
    "_inserted": '''\
def _inserted(items, index, value):
    """What items.insert(index, value) leaves."""
    rest = list(items)
    rest.insert(index, value)
    return rest
''',
    "_found_to_remove": '''\
def _found_to_remove(items, value):
    """Where items.remove(value) finds what it removes."""
    for index, item in enumerate(items):
        if item is value or item == value:
            return index
    raise ValueError("list.remove(x): x not in list")
''',
    "_chosen_each": '''\
def _chosen_each(numbers, table):
    """The entries of a table at some places."""
    return [table[number] for number in numbers]
''',
    "_rows_with": '''\
def _rows_with(columns, values):
    """For each of the tuples whose parts stand in columns, whether it is equal to the tuple of values."""
    return [all(a is b or a == b for a, b in zip(row, values)) for row in zip(*columns)]
''',
    "_replaced": '''\
def _replaced(items, index, value):
    """What items[index] = value leaves."""
    rest = list(items)
    rest[index] = value
    return rest
''',
    "_sort_order": '''\
def _sort_order(keys, reverse):
    """Where sorted() takes its elements from."""
    return tuple(sorted(range(len(keys)), key=lambda index: keys[index], reverse=reverse))
''',
    "_sort_rows": '''\
def _sort_rows(columns, reverse):
    """Where sorted() takes the tuples from whose parts stand in columns."""
    rows = [*zip(*columns)]
    return tuple(sorted(range(len(rows)), key=lambda index: rows[index], reverse=reverse))
''',
    "_Shown": '''\
class _Shown:
    """Stands for an object where it is shown: its texts are given, as str and as repr."""

    def __init__(self, as_str, as_repr):
        self.as_str, self.as_repr = as_str, as_repr

    def __str__(self):
        return self.as_str

    def __repr__(self):
        return self.as_repr
''',
    "_to_numpy": '''\
def _to_numpy(tensor, scalar=True):
    """The array that shares a tensor's memory; a scalar of numpy's, if so, where it has no dimension."""
    if tensor is None:
        return None
    array = tensor.numpy()
    return array[()] if scalar and array.ndim == 0 else array
''',
    "_stepped": '''\
def _stepped(optimizer, options):
    """optimizer.step(), with these options of its groups."""
    for group, given in zip(optimizer.param_groups, options, strict=True):
        group.update(given)
    optimizer.step()
''',
    "_zeroed": '''\
def _zeroed(optimizer, *args, **kwargs):
    """optimizer.zero_grad()."""
    optimizer.zero_grad(*args, **kwargs)
''',
    "_learning_rate": '''\
def _learning_rate(rates, index):
    """One of the learning rates that a scheduler's get_last_lr gives."""
    rate = rates()[index]
    if type(rate) is not float:
        raise TypeError(f"a scheduler has set a learning rate to a {type(rate).__name__}, after floats")
    return rate
''',
}
"""Their text, by name."""

NAMED: dict[Any, str] = {
    operations.popped: "_popped",
    rerouting.reroute: "_reroute",
    operations.deleted: "_deleted",
    operations.inserted: "_inserted",
    operations.found_to_remove: "_found_to_remove",
    operations.replaced: "_replaced",
    operations.chosen_each: "_chosen_each",
    operations.rows_with: "_rows_with",
    operations.sort_order: "_sort_order",
    operations.sort_rows: "_sort_rows",
    operations.to_numpy: "_to_numpy",
    acts.Shown: "_Shown",
    optimizers.stepped: "_stepped",
    optimizers.zeroed: "_zeroed",
    optimizers.learning_rate: "_learning_rate",
}
"""The operations of ours that became one of them."""
