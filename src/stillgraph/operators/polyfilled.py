"""Functions of torch's that are followed: what stands for them in `stillgraph.polyfills` is called as the user's."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from stillgraph.polyfills.checks import POLYFILLS as CHECKS
from stillgraph.polyfills.control_flow import POLYFILLS as CONTROL_FLOW
from stillgraph.trace.session import session


def _followed(polyfill: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        capture = session()
        assert capture is not None and isinstance(polyfill, FunctionType)
        return capture.convert(polyfill)(*args, **kwargs)

    return called


MEANINGS: dict[Any, Callable[..., Any]] = {
    function: _followed(polyfill) for table in (CHECKS, CONTROL_FLOW) for function, polyfill in table.items()
}
