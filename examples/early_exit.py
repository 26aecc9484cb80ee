"""An early-exit classifier: `return` inside the loop over its layers, one program for every exit.

Run with ``python examples/early_exit.py``.
"""

import torch
from torch import nn

import stillgraph as sg


class EarlyExit(nn.Module):
    """Stops at the first layer whose head is sure about every sample."""

    def __init__(self, width: int = 32, classes: int = 4, depth: int = 5) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.heads = nn.ModuleList(nn.Linear(width, classes) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        for depth, (layer, head) in enumerate(zip(self.layers, self.heads, strict=True)):
            x = x + torch.relu(layer(x))
            scores = head(x).softmax(dim=-1)
            if scores.amax(dim=-1).min() > 0.5:
                return scores, depth
        return scores, len(self.layers)


def main() -> None:
    torch.manual_seed(0)
    model = EarlyExit().eval()
    batches = [scale * torch.randn(8, 32) for scale in (0.1, 2.0, 6.0, 20.0)]
    with torch.no_grad():
        expected = [model(batch) for batch in batches]
        static = sg.to_static(model, backend="eager")
        for batch, (scores, depth) in zip(batches, expected, strict=True):
            static_scores, static_depth = static(batch)
            torch.testing.assert_close(static_scores, scores)
            assert static_depth == depth
            print(f"left at layer {depth}")
    print(static.forward.cache_info().programs, "program")


if __name__ == "__main__":
    main()
