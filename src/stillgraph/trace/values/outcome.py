"""What a call gives that only the run makes, and of which the capture knows nothing."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.operator_tables import BINARY, UNARY

_HINT = "Make the call outside the static function, and hand in what it gives."


class Outcome:
    """It may be dropped, and nothing else: whatever asks for it is refused."""

    def __init__(self, what: str) -> None:
        self.__dict__["what"] = what

    def _refuse(self, *args: Any) -> NoReturn:
        message = f"what {self.__dict__['what']} gives is used, which only the run knows"
        raise refuse("SG305", message, location=here(), hint=_HINT)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("__", "stillgraph_")):
            raise AttributeError(name)
        self._refuse()

    __setattr__ = __delattr__ = __call__ = __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __enter__ = __exit__ = __str__ = __repr__ = __format__ = __eq__ = __ne__ = __fspath__ = _refuse
    __int__ = __float__ = __index__ = __complex__ = __next__ = __setitem__ = __delitem__ = _refuse
    __hash__ = _refuse

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        next(leaf for leaf in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(leaf, cls))._refuse()


for _name in (*BINARY, "matmul"):
    setattr(Outcome, f"__{_name}__", Outcome._refuse)
    setattr(Outcome, f"__r{_name}__", Outcome._refuse)
for _name in ("lt", "le", "gt", "ge", *UNARY):
    setattr(Outcome, f"__{_name}__", Outcome._refuse)
