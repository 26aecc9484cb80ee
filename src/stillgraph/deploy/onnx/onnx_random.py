"""Random operations in ONNX files: each has a seed of its own.

An operation without one is seeded by onnxruntime with a number of the process plus the operation's place in the graph.
Its generator is a linear congruential one, so the draws of two neighbours are then one sequence, shifted by a constant.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import onnx_ir as ir
import torch

_REAL = frozenset(
    {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Multinomial", "Bernoulli"}
)
"""The operations whose seed is a float32, which tells whole numbers below 2**24 apart."""
_WHOLE = frozenset({"Dropout"})
_MOST = 1 << 24


def give_seeds(model: ir.Model) -> None:
    """Give each random operation without a seed an irregular one: `torch.manual_seed` before the save decides which."""
    drawing = [node for node in _nodes(model) if node.domain == "" and node.op_type in _REAL | _WHOLE]
    unseeded = [node for node in drawing if "seed" not in node.attributes]
    for node, seed in zip(unseeded, random.Random(torch.initial_seed()).sample(range(1, _MOST), len(unseeded))):
        made = ir.AttrInt64("seed", seed) if node.op_type in _WHOLE else ir.AttrFloat32("seed", float(seed))
        node.attributes.add(made)


def _nodes(model: ir.Model) -> Iterator[ir.Node]:
    for graph in model.graphs():
        yield from graph
    for function in model.functions.values():
        yield from ir.traversal.RecursiveGraphIterator(function)
