"""Draws from Python's and numpy's random generators: values, order and the states left, as in eager PyTorch."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

UP, DOWN = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0])
CALLS = [UP, DOWN, UP, DOWN, UP, UP]
DICE, OLD, NEW = random.Random(5), np.random.RandomState(5), np.random.default_rng(5)
LAYERS = nn.ModuleList([nn.Identity(), nn.ReLU(), nn.Tanh()])
WEIGHTS = np.array([0.2, 0.8])


def numbers(x: Tensor) -> Any:
    return random.random(), random.uniform(1, 2), random.randint(1, 6), random.gauss(0, 1), random.betavariate(1, 2)


def in_one_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        x = x * random.random() + DICE.gauss(0, 1)
        return x + float(np.random.normal()) * random.choice([1.0, 2.0])
    return x - 1


def in_a_loop(x: Tensor) -> Any:
    steps = 0
    while x.abs().sum() < 20:
        x = x + DICE.choice([1.0, 2.0, 5.0]) * random.random()
        steps += 1
    return x, steps


def two_in_order(x: Tensor) -> Any:
    a = random.random()
    b = np.random.rand()
    c = random.random()
    return x * a - c, b, a < c


def decided_by_a_draw(x: Tensor) -> Any:
    if random.random() < 0.5:
        return x + 1
    return torch.flip(x, [0]) if DICE.random() < 0.5 else x


def shuffled(x: Tensor) -> Any:
    values, order, names = [x, x * 2, x * 3], list(range(3)), ["a", "b", "c"]
    random.shuffle(values)
    DICE.shuffle(order)
    NEW.shuffle(names)
    return values, order, x[order], names, {"a": 1, "b": 2, "c": 3}[names[0]]


def shuffled_of_any_length(x: Tensor) -> Any:
    kept = [each for each in x if each > -3]
    random.shuffle(kept)
    return kept, random.sample(kept, 1)


def one_list_twice(x: Tensor) -> Any:
    values = [x, x + 1]
    same = values
    random.shuffle(same)
    return values, same, values is same


def sampled(x: Tensor) -> Any:
    return random.sample(range(1000), 4), random.sample([x, x + 1, x + 2], k=2), x[random.sample(range(3), 2)]


def chosen(x: Tensor) -> Any:
    return random.choice("abc"), random.choice((1, 2.5)), random.choice(x), random.choice(range(5, 50, 5))


def chosen_of_unlike(x: Tensor) -> Any:
    return random.choice([torch.relu, torch.exp])(x), random.choice(LAYERS)(x), random.choice([(x, "a"), (-x, "b")])


def chosen_and_changed(x: Tensor) -> Any:
    rows = [[1], [2], [3]]
    row = random.choice(rows)
    row.append(4)
    return rows, row


def several(x: Tensor) -> Any:
    return random.choices([1, 2, 3], k=4), random.choices("ab", weights=[1, 9], k=2), random.choices(population=[x])


BUFFER, SCORES = collections.deque([2, 5, 7, 9], maxlen=4), np.arange(4.0) * 3


def of_buffers(x: Tensor) -> Any:
    of_arrays = random.choice(SCORES), random.choices(SCORES, k=2), random.choice(x.numpy())
    return of_arrays, random.choice(BUFFER), random.sample(BUFFER, 2), random.choices(BUFFER, k=2)


def seeded(x: Tensor) -> Any:
    random.seed(int(x.sum()))
    np.random.seed(3)
    return random.random(), np.random.rand(), x * random.random()


def state_kept(x: Tensor) -> Any:
    state, olds = random.getstate(), np.random.get_state()
    first = random.random(), np.random.rand()
    random.setstate(state)
    np.random.set_state(olds)
    return first, random.random() == first[0], np.random.rand()


def made_inside(x: Tensor) -> Any:
    mine, new, old = random.Random(3), np.random.default_rng(int(x.abs().sum())), np.random.RandomState(4)
    of_bits = np.random.Generator(np.random.PCG64(1))
    if x.sum() > 0:
        x = x + mine.random()
    while x.abs().sum() < 20:
        x = x + new.integers(1, 3) + 1
    return x, mine.random(), new.random(), old.randint(5), of_bits.normal(size=2)


def arrays(x: Tensor) -> Any:
    noise = torch.from_numpy(NEW.normal(size=3)).float() + torch.tensor(np.random.randn(3))
    return x + noise, np.random.permutation(5), OLD.choice(5, 3, replace=False), NEW.integers(0, 9, size=(2, 2))


def scalars_of_numpys(x: Tensor) -> Any:
    return np.random.rand(), np.random.randint(0, 9), NEW.integers(0, 9), NEW.random(), OLD.normal(), np.random.sample()


def of_the_run(x: Tensor) -> Any:
    n = int(x.abs().sum())
    given = random.randint(0, n), np.random.randint(0, n), random.uniform(0, float(x[0])), np.random.permutation(n)
    return *given, np.random.permutation(x.numpy())


def with_weights(x: Tensor) -> Any:
    own = np.array([1.0, 0.0])
    first = np.random.choice(2, 3, p=own)
    own[:] = [0.0, 1.0]
    return first, np.random.choice(2, 3, p=own), np.random.choice(2, 3, p=WEIGHTS)


def by_probabilities(x: Tensor) -> Any:
    p = x.double().softmax(0).numpy()
    one, half = p / p.sum(), float(x.sum() * 0 + 0.25)
    first = np.random.choice(3, p=one), NEW.choice(3, p=one), np.random.choice([10, 20, 30], p=one)
    several = np.random.choice(3, size=4, p=one), NEW.choice(3, 2, False, p=one), OLD.choice(x.numpy(), 2, p=one)
    lists = np.random.choice(2, p=[half, 1 - half]), NEW.choice(3, p=[half, 0.5, half]), NEW.choice(3, p=one.tolist())
    others = np.random.multinomial(5, one), NEW.dirichlet(one), NEW.multinomial(int(x.abs().sum()), one)
    return first, several, lists, others, x[np.random.choice(len(x), p=one)]


def by_what_is_none(x: Tensor) -> Any:
    try:
        return np.random.choice(3, p=x.numpy())
    except ValueError:
        return "none"


def by_floats(x: Tensor) -> Any:
    return np.random.choice(3, p=x.softmax(0).numpy())


def caught(x: Tensor) -> Any:
    try:
        return random.randint(3, int(x.sum()))
    except ValueError:
        return "none"


def caught_when_captured(x: Tensor) -> Any:
    try:
        return random.choice([])
    except IndexError as error:
        return str(error)


def too_many(x: Tensor) -> Any:
    return random.sample([1, 2], 3)


def augmented(x: Tensor) -> Any:
    if random.random() < 0.5:
        x = torch.flip(x, [0])
    x = torch.roll(x, random.choice([0, 1, 2]))
    low, high = random.randint(0, 1), random.randint(2, 3)
    mixed = np.random.beta(0.4, 0.4)
    return x[low:high], x * mixed + x[torch.from_numpy(np.random.permutation(3))] * (1 - mixed)


def indexed(x: Tensor) -> Any:
    order, at, upto = np.random.permutation(3), NEW.integers(0, 3), NEW.integers(1, 4)
    rows, values = x.repeat(3, 1), [x, x + 1, x + 2]
    rows[order[0], at] = 7.0
    rows[at] = rows[at] + 1
    values[at] = x * 9
    view = rows[at]
    view.add_(1)
    for _ in range(upto):
        x = x * 2
    return x[order], x[:upto], rows, rows[order][:, order], rows[order, at], values, values[:upto], x[order > 0]


FUNCTIONS: list[Callable[[Tensor], Any]] = [
    *(numbers, in_one_arm, in_a_loop, two_in_order, decided_by_a_draw, shuffled, shuffled_of_any_length),
    *(one_list_twice, sampled, chosen, chosen_of_unlike, chosen_and_changed, several, seeded, state_kept, made_inside),
    *(arrays, scalars_of_numpys, of_the_run, with_weights, caught, caught_when_captured, too_many, augmented, indexed),
    *(by_probabilities, by_what_is_none, by_floats, of_buffers),
]


def told(function: Callable[[Tensor], Any]) -> list[Any]:
    """What calls give, as texts with their types, and what is drawn after them from each generator."""
    random.seed(1), np.random.seed(1), DICE.seed(5), OLD.seed(5)  # one after the other
    NEW.bit_generator.state = np.random.default_rng(5).bit_generator.state
    found: list[Any] = []
    for x in CALLS:
        try:
            found.append(repr(function(x.clone())))
        except (ValueError, IndexError) as error:
            found.append((type(error), str(error)))
    return [*found, random.random(), np.random.rand(), DICE.random(), OLD.rand(), NEW.random()]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    captured = sg.to_static(function, backend="eager")
    assert told(captured) == told(function)
    assert len(captured.programs) <= 1 or function is in_one_arm


@pytest.mark.parametrize("function", [in_one_arm, shuffled, made_inside, augmented], ids=lambda each: each.__name__)
def test_without_a_full_graph(function: Callable[[Tensor], Any]) -> None:
    assert told(sg.symbolic_trace(function)) == told(function)


def test_a_check_draws_from_copies() -> None:
    assert told(sg.to_static(in_one_arm, backend="eager", check=1)) == told(in_one_arm)


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(0)
        self.made: Any = None

    def forward(self, x: Tensor) -> Any:
        if self.made is None:
            self.made = random.Random(3)
        return x * self.rng.random() + self.made.random()


def test_of_the_generator_that_an_attribute_holds() -> None:
    def calls(run: Any) -> list[Any]:
        module = Noisy()
        given = [run(module, UP), run(module, UP)]
        module.rng, module.made = np.random.default_rng(7), None
        return [each.tolist() for each in (*given, run(module, UP), run(module, UP))] + [module.made.random()]

    assert calls(sg.to_static(lambda module, x: module(x), backend="eager")) == calls(lambda module, x: module(x))


def test_of_the_generator_that_is_given() -> None:
    def drawn(x: Tensor, rng: np.random.Generator) -> Any:
        return x * rng.random()

    captured = sg.to_static(drawn, backend="eager")
    for seed in (1, 2, 1):
        given = captured(UP, np.random.default_rng(seed))
        assert torch.equal(given, drawn(UP, np.random.default_rng(seed)))


class Halves(random.Random):
    def random(self) -> float:
        return 0.5


OWN = Halves()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * OWN.uniform(1, 2),
        lambda x: random.randbytes(2),
        lambda x: np.random.choice(["a", "b"]),
        lambda x: np.random.shuffle(np.arange(3)),
        lambda x: (x, str(NEW.bit_generator.state)),
        lambda x: setattr(np.random.default_rng(1).bit_generator, "state", 1),
        lambda x: random.choice({1: x}),
        lambda x: random.uniform(x[0], x[1]),
        lambda x: np.random.default_rng(1).random(out=np.zeros(2)),
        lambda x: np.random.default_rng(1).random(None, np.float64, x.double().numpy() * 1),
        lambda x: (random.Random(1) if x.sum() > 0 else random.Random(2)).random(),
    ],
    ids=[
        *("own_class", "bytes", "texts", "in_place", "bits", "bits_set", "of_a_dict", "tensors", "out", "out_of_run"),
        "of_paths",
    ],
)
def test_refused(function: Callable[[Tensor], Any]) -> None:
    before = told(lambda x: x)[len(CALLS) :]
    told(lambda x: x)
    with pytest.raises(sg.CaptureError, match="SG305"):
        sg.to_static(function, backend="eager")(UP)
    assert told(lambda x: x)[len(CALLS) :] == before


def test_no_file_draws(tmp_path: Any) -> None:
    for function in (in_a_loop, shuffled):
        with pytest.raises(sg.ExportError, match="SG402"):
            sg.save(function, tmp_path / "drawn.pt2", args=(UP,))


@pytest.mark.parametrize("at", [0, 1, -1])
def test_elements_without_a_join_are_picked(at: int) -> None:
    def picked(x: Tensor, i: Tensor) -> Any:
        index = int(i)
        lists = [[1], [2]]
        lists[index].append(3)
        names = ["low", "high"]
        key = {"low": 1, "high": 2}[names[index]]
        return names[index], [torch.relu, torch.neg][index](x), [x, "b"][index], lists, key

    captured = sg.to_static(picked, backend="eager")
    assert repr(captured(UP, torch.tensor(at))) == repr(picked(UP, torch.tensor(at)))
    for out in (2, -3):
        with pytest.raises(IndexError, match="list index out of range"):
            captured(UP, torch.tensor(out))
