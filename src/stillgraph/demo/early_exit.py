"""A classifier that returns from inside the loop over its layers, compiled by Inductor."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.demo.outcome import Outcome, largest_difference, timed_capture, write_listing

_WIDTH = 64
_CLASSES = 8
_DEPTH = 6


class EarlyExitClassifier(nn.Module):
    """Stops at the first layer whose head is sure about every sample of the batch."""

    def __init__(self, confidence: float) -> None:
        super().__init__()
        self.confidence = confidence
        self.layers = nn.ModuleList(nn.Linear(_WIDTH, _WIDTH) for _ in range(_DEPTH))
        self.heads = nn.ModuleList(nn.Linear(_WIDTH, _CLASSES) for _ in range(_DEPTH))

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        for depth, (layer, head) in enumerate(zip(self.layers, self.heads, strict=True)):
            x = x + torch.tanh(layer(x))
            probabilities = head(x).softmax(dim=-1)
            if probabilities.amax(dim=-1).min() > self.confidence:
                return probabilities, depth
        return probabilities, len(self.layers)


def run(out: Path) -> Outcome:
    """Capture the classifier, compile it, and compare inputs that leave at different layers."""
    torch.manual_seed(0)
    model = EarlyExitClassifier(confidence=0.35).eval()
    direction = torch.randn(16, _WIDTH)
    batches = [scale * direction for scale in (1.0, 4.0, 5.0, 6.0, 8.0)]
    with torch.no_grad():
        expected = [model(batch) for batch in batches]
        static = sg.to_static(model, backend="inductor")
        program, seconds = timed_capture(lambda: static.forward.get_program(batches[0]))
        found = [static(batch) for batch in batches]
    exits = sorted({depth for _, depth in expected})
    programs = static.forward.cache_info().programs
    faults = [] if programs == 1 else [f"{programs} programs where one serves"]
    if len(exits) < 2:
        faults.append("all batches leave at the same layer")
    return Outcome(
        program=program,
        capture_seconds=seconds,
        difference=largest_difference(expected, found),
        tolerance=1e-5,
        files=(write_listing(program, out / "early-exit.txt"),),
        remarks=(f"{len(batches)} batches", f"exits {', '.join(map(str, exits))} of {_DEPTH}"),
        faults=tuple(faults),
    )
