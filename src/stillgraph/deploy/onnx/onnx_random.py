"""Seeds of operators that draw: without one, onnxruntime's draws are no independent ones.

It gives each such node a linear congruential generator, whose seed is that of the process and the number of the node.
What generators with neighbouring seeds draw lies at the same distance from each other in every step.
"""

from __future__ import annotations

import random

import onnx_ir as ir
import torch

_DRAWING = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
)
_MOST = 1 << 24  # the attribute is a float: up to here, each whole number is one


def give_seeds(model: ir.Model) -> None:
    """Give each node that draws a seed of its own. `torch.manual_seed` before the save decides which."""
    seeds = random.Random(torch.initial_seed())
    for graph in model.graphs():
        for node in graph:
            if node.domain == "" and node.op_type in _DRAWING and "seed" not in node.attributes:
                node.attributes["seed"] = ir.AttrFloat32("seed", float(seeds.randrange(1, _MOST)))
