"""Searches with Python lists of scores and tokens settle: what differs from call to call is left to Python."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.bytecode.segmented import count, to_partial


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.cell = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, 11)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.cell(self.embedding(tokens))[0][:, -1])


def beam_search(model: nn.Module, start: int, width: int = 3, steps: int = 5, end: int = 2) -> Any:
    beams = [(0.0, [start])]
    finished = []
    for _ in range(steps):
        candidates = []
        for score, tokens in beams:
            if tokens[-1] == end:
                finished.append((score, tokens))
                continue
            logs = torch.log_softmax(model(torch.tensor([tokens])), dim=-1)[0]
            top, index = logs.topk(width)
            for k in range(width):
                candidates.append((score + top[k].item(), [*tokens, index[k].item()]))
        if not candidates:
            break
        beams = sorted(candidates, key=lambda each: each[0], reverse=True)[:width]
    finished.extend(beams)
    return max(finished, key=lambda each: each[0] / len(each[1]))


@pytest.mark.slow
def test_a_beam_search() -> None:
    torch.manual_seed(0)
    model = Recurrent().eval()
    static = to_partial(beam_search)
    programs = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(20):
            start = number % 11
            assert static(model, start) == beam_search(model, start), f"call {number}"
            programs.append(count(static))
    assert static.plan.gave_up is None
    assert len(set(programs[-3:])) == 1, programs


class Environment:
    """Its state is another array after each step, and another object in each call."""

    def __init__(self, seed: int) -> None:
        self.state = np.linspace(seed % 3 - 1.0, 1.0, 4, dtype=np.float32)
        self.steps = 0

    def step(self, action: int) -> tuple[Any, float, bool]:
        self.state = self.state * np.float32(0.9) + np.float32(0.1 * action)
        self.steps += 1
        return self.state.copy(), float(1 - abs(self.state[0])), self.steps >= 4


def rollout(environment: Environment, policy: nn.Module, gamma: float = 0.9) -> Any:
    seen = environment.state.copy()
    logs, rewards, done = [], [], False
    while not done:
        choices = torch.distributions.Categorical(logits=policy(torch.from_numpy(seen)))
        action = choices.sample()
        logs.append(choices.log_prob(action))
        seen, reward, done = environment.step(action.item())
        rewards.append(reward)
    returns: list[float] = []
    running = 0.0
    for each in reversed(rewards):
        running = each + gamma * running
        returns.insert(0, running)
    return -(torch.stack(logs) * torch.tensor(returns)).sum(), sum(rewards)


@pytest.mark.slow
def test_a_rollout_is_one_program() -> None:
    """The state of the environment is another array in each call: an input, of one program from the third call on."""
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    static = to_partial(rollout)
    programs = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(16):
            torch.manual_seed(number)
            wanted = rollout(Environment(number), policy)
            torch.manual_seed(number)
            given = static(Environment(number), policy)
            assert torch.equal(wanted[0], given[0]), f"call {number}"
            assert wanted[1] == given[1], f"call {number}"
            programs.append(count(static))
    assert static.plan.gave_up is None
    assert programs[2:] == [3] * 14, programs
    assert not static.plan.ends


def test_a_variable_that_keeps_changing_is_known_to_do_so_behind_the_next_step() -> None:
    def f(x: torch.Tensor, text: str) -> torch.Tensor:
        print("a")
        y = x * len(text)
        z = y.sum() * 2 + len(text.upper())
        w = z.relu() - len(text.lower())
        return w * w + len(text.strip())

    static, x, made = to_partial(f), torch.ones(2), []
    for number in range(16):
        text = "ab" * (number + 2)
        assert torch.equal(static(x, text), f(x, text))
        made.append(static.cache_info().misses)
    assert made[12:] == made[12:13] * 4, made
