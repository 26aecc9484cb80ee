"""A program that is debugged, see `test_debugging`."""

import pdb

import torch

import stillgraph as sg


def scaled(y):
    factor = 2
    breakpoint()
    return y * factor


class Model(torch.nn.Module):
    def forward(self, x):
        total = x.sum()
        pdb.set_trace()
        y = x + 1
        if total > 0:
            y = y * 3
            y = y - 1
        else:
            y = y - 5
        steps = 0
        while y.sum() > 4:
            y = y / 2
            steps += 1
        return scaled(y), steps


if __name__ == "__main__":
    model = sg.to_static(Model(), backend="eager")
    print("first", model(torch.ones(3)))
    print("second", model(torch.ones(3) * 2))
