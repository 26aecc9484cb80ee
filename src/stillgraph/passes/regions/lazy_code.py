"""Graph modules whose Python code is made when somebody asks for it: most that passes make are never run.

The adapter to torch's module of this kind.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torch import fx
from torch.fx import _lazy_graph_module as lazy


def lazy_module(root: Any, graph: fx.Graph, name: str) -> fx.GraphModule:
    """A graph module without code as yet; the arguments are those of `torch.fx.GraphModule`."""
    return lazy._LazyGraphModule(root, graph, class_name=name)


def code_on_demand() -> AbstractContextManager[None]:
    """Within it the modules that torch's tracers make are of this kind."""
    return lazy._use_lazy_graph_module(True)


def make_code(module: fx.GraphModule) -> None:
    """Make the code of a module now, for what looks at its ``forward``."""
    module.recompile()
    lazy._LazyGraphModule.force_recompile(module)
