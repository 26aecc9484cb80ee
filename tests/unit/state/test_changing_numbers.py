"""Numbers that differ from call to call become inputs of the program, where it does not depend on them otherwise."""

from __future__ import annotations

import collections
import copy
import dataclasses
import json
import statistics
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import outcome, same_error

X = torch.tensor([1.0, 2.0, 3.0])


class Settings(nn.Module):
    """Reads numbers that its user sets between the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.rate, self.step, self.layer = 1.0, 0, 0
        self.table = {"scale": 2.0, "name": "a"}
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])


class Tempered(Settings):
    def forward(self, x: Tensor) -> tuple[Tensor, float]:
        return x / self.rate, self.rate


class Scheduled(Settings):
    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return (x * 2, self.step) if self.step > 5 else (x + self.step, -1)


class FromTable(Settings):
    def forward(self, x: Tensor) -> Tensor:
        return x * self.table["scale"]


class Indexed(Settings):
    def forward(self, x: Tensor) -> Tensor:
        return self.layers[self.layer](x) / self.rate  # type: ignore[no-any-return]


class Looped(Settings):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.step):
            x = x * 1.5
        return x


@pytest.mark.parametrize(
    ("make", "programs"), [(Tempered, 2), (Scheduled, 3), (FromTable, 2), (Indexed, 5), (Looped, 3)]
)
def test_numbers_that_are_set_between_calls(make: Callable[[], Settings], programs: int) -> None:
    torch.manual_seed(0)
    ours = make()
    eager = copy.deepcopy(ours)
    static = sg.to_static(ours, backend="eager")
    for call in range(12):
        for model in (eager, ours):
            model.rate, model.step, model.layer = 1 / (call + 1), call, call % 3
            model.table["scale"] = call / 7
        assert_same(eager(X), static(X))
    assert static.forward.cache_info().misses <= programs


ROWS = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def looped(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x * 1.5 + i
    return x


# Whole numbers are sizes, axes and counts: programs of their own.
ARGUMENTS: list[tuple[str, Callable[..., Any], list[tuple[Any, ...]], int]] = [
    ("scale", lambda x, t: (x / t, t), [(float(i + 1),) for i in range(8)], 2),
    ("schedule", lambda x, n: (x * 2, n) if n > 5 else (x + n, -1), [(i,) for i in range(9)], 9),
    ("axis", lambda x, d: x.sum(d), [(0,), (1,), (0,), (-1,)], 3),
    ("shape", lambda x, n: x.reshape(n, -1), [(1,), (2,), (3,), (6,)], 4),
    ("loop", looped, [(i,) for i in range(6)], 6),
    ("text", lambda x, n: f"{n}", [(i,) for i in range(4)], 4),
    ("nested", lambda x, c: x * c["lr"] + c["l"][0], [({"lr": i * 0.1, "l": [i]},) for i in range(6)], 2),
    ("slice", lambda x, n: x[:, :n], [(i,) for i in range(4)], 4),
    ("topk", lambda x, k: x.topk(k).values, [(1,), (2,), (3,)], 3),
    ("clamp", lambda x, low, high: x.clamp(low, high), [(i, i + 1.5) for i in range(4)], 4),
    ("power", lambda x, e: x**e, [(2,), (3,), (0,), (0.5,)], 4),
    ("type", lambda x, n: x * 2 if isinstance(n, int) else x, [(1,), (2,), (2.0,), (3.0,)], 4),
    ("key", lambda x, n: x * {0: 1.0, 1: 2.0, 2: 3.0}.get(n, 4.0), [(i,) for i in range(5)], 5),
    ("repeat", lambda x, n: [x] * n, [(i,) for i in range(4)], 4),
    ("make", lambda x, n: (torch.full((2,), n), torch.zeros(n)), [(i,) for i in range(4)], 4),
    ("least", lambda x, n: x * max(n, 3) + min(n, 2), [(i,) for i in range(6)], 6),
    ("truth", lambda x, n: x * 2 if n else x, [(0,), (1,), (2,), (0,)], 3),
    ("several", lambda x, n, t: x * n + t, [(i, i * 0.5) for i in range(6)], 6),
]


@pytest.mark.parametrize(
    ("function", "calls", "programs"), [row[1:] for row in ARGUMENTS], ids=[row[0] for row in ARGUMENTS]
)
def test_arguments_that_differ(function: Callable[..., Any], calls: list[tuple[Any, ...]], programs: int) -> None:
    static = sg.to_static(function, backend="eager")
    for args in calls:
        assert_same(function(ROWS, *args), static(ROWS, *args))
    assert static.cache_info().programs <= programs


def test_keyword_arguments_that_differ() -> None:
    def function(x: Tensor, n: float = 1.0, *, k: float = 2.0) -> Tensor:
        return x * n + k

    static = sg.to_static(function, backend="eager")
    for step in range(5):
        assert_same(function(ROWS, n=step / 2, k=2.5 * step), static(ROWS, n=step / 2, k=2.5 * step))
    assert static.cache_info().programs <= 2


def test_counters_of_which_a_call_reads_one() -> None:
    class Counters(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trained, self.evaluated = 0, 0
            self.use = {"a": 0, "b": 0}

        def forward(self, x: Tensor, task: str) -> Tensor:
            if self.training:
                self.trained += 1
            else:
                self.evaluated += 1
            self.use[task] += 1
            return x * 2

    eager, ours = Counters(), Counters()
    static = sg.to_static(ours, backend="eager")
    for call in range(24):
        for model in (eager, static):
            model.train(call % 2 == 0)(X, "ab"[call % 3 % 2])
    assert {**vars(ours), "forward": 0} == {**vars(eager), "forward": 0}
    assert static.forward.cache_info().misses <= 10


RATE: Any = 1.0


def test_a_global_that_changes_its_type() -> None:
    global RATE

    def function(x: Tensor) -> tuple[Tensor, Any]:
        return x * RATE, RATE

    static = sg.to_static(function, backend="eager")
    for value in [1.0, 2.0, 3.0, 4, 5, 6.0, True, False, 7, 8.5, float("nan"), -0.0, float("inf")]:
        RATE = value
        assert_same(function(X), static(X))
    assert static.cache_info().programs <= 6


def test_a_trainer_that_steps_a_scheduler_and_counts() -> None:
    class Trainer:
        count = 0

        def __init__(self) -> None:
            torch.manual_seed(0)
            self.model = nn.Linear(2, 1)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 4)

        def step(self, x: Tensor) -> Tensor:
            self.optimizer.zero_grad()
            loss = self.model(x).square().sum()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.count += 1
            return loss.detach()

    eager, ours = Trainer(), Trainer()
    static = sg.to_static(ours.step, backend="eager")
    for step in range(12):
        x = torch.ones(1, 2) * step
        assert_same(eager.step(x), static(x))
    assert ours.count == 12
    assert eager.scheduler.state_dict() == ours.scheduler.state_dict()
    assert static.cache_info().misses <= 2


def test_an_argument_that_differs_between_train_steps() -> None:
    """What begins a capture anew (a backward pass asks which tensors are one) does not make it a constant."""

    def trainer() -> Callable[[Tensor, float], Tensor]:
        torch.manual_seed(0)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Tensor, beta: float, *, scale: float = 1.0) -> Tensor:
            optimizer.zero_grad()
            loss = model(x * scale).square().sum() * beta
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), beta)
            optimizer.step()
            return loss.detach()

        return step

    eager, static = trainer(), sg.to_static(trainer(), backend="eager")
    for call in range(8):
        assert_same(eager(ROWS, 0.1 * call, scale=call / 3), static(ROWS, 0.1 * call, scale=call / 3))
    assert static.cache_info().misses <= 2


READS: dict[str, Callable[[Any], float]] = {
    "attribute": lambda o: o.k,
    "dict": lambda o: o.table["k"],
    "list": lambda o: o.row[0],
    "tuple": lambda o: o.pair[0],
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_number_that_a_backward_hook_counts_is_not_put_back(read: Callable[[Any], float]) -> None:
    """What is only read is left alone: something else may have changed it during the run."""

    def make() -> tuple[Callable[[Tensor], Tensor], Any]:
        weight = torch.ones(3, requires_grad=True)
        kept = types.SimpleNamespace(k=1.0, table={"k": 1.0, "z": 0}, row=[1.0, 2], pair=(1.0, 2))

        def count(gradient: Tensor) -> None:
            kept.k += 1
            kept.table["k"] += 1
            kept.row[0] += 1
            kept.pair = (kept.pair[0] + 1, 2)

        weight.register_hook(count)

        def function(x: Tensor) -> Tensor:
            scale = read(kept)
            (weight * x).sum().backward()
            return x * scale

        return function, kept

    (eager, expected), (function, kept) = make(), make()
    static = sg.to_static(function, backend="eager")
    for _ in range(6):
        assert_same(eager(X), static(X))
    assert kept == expected
    assert static.cache_info().misses <= 3


@pytest.mark.parametrize("pairs", [False, True])
def test_a_window_settles_once_it_is_full(pairs: bool) -> None:
    def averaging(window: Any) -> Callable[[Tensor], tuple[Tensor, float]]:
        def function(x: Tensor) -> tuple[Tensor, float]:
            total = x.sum().item()
            window.append((total, 1) if pairs else total)
            values = [value[0] for value in window] if pairs else window
            return x * (sum(values) / len(window)), max(values)

        return function

    eager, ours = collections.deque[Any](maxlen=3), collections.deque[Any](maxlen=3)
    static = sg.to_static(averaging(ours), backend="eager")
    for call in range(9):
        x = X * (call / 3)
        assert_same(averaging(eager)(x), static(x))
    assert ours == eager
    assert static.cache_info().misses <= 5  # of each length, and two of the last


@dataclasses.dataclass
class Measures:
    loss: float = 1.0
    count: int = 0


class Tracker:
    def __init__(self) -> None:
        self.table, self.measures, self.best, self.rate = {"loss": 1.0, "pair": (1.0, 2)}, Measures(), None, 1.0


KEEPING: dict[str, Callable[[Tracker], Any]] = {
    "deepcopy of a dict": lambda t: copy.deepcopy(t.table),
    "copy of a dict": lambda t: copy.copy(t.table),
    "deepcopy of a dataclass": lambda t: copy.deepcopy(t.measures),
    "copy of a dataclass": lambda t: copy.copy(t.measures),
    "asdict": lambda t: dataclasses.asdict(t.measures),
    "astuple": lambda t: dataclasses.astuple(t.measures),
    "replace": lambda t: dataclasses.replace(t.measures, count=5),
    "deepcopy of a number": lambda t: copy.deepcopy(t.rate),
}


@pytest.mark.parametrize("keep", KEEPING.values(), ids=KEEPING.keys())
@pytest.mark.parametrize("always", [True, False])
def test_copies_of_staged_numbers(keep: Callable[[Tracker], Any], always: bool) -> None:
    def best(tracker: Tracker) -> Callable[[Tensor], Tensor]:
        def function(x: Tensor) -> Tensor:
            tracker.table["loss"] = tracker.table["loss"] + x.sum().item()  # type: ignore[operator]  # a float
            tracker.measures.loss += 1
            tracker.rate += 0.5
            if always or x.sum() > 4:
                tracker.best = keep(tracker)
            return x * tracker.rate

        return function

    eager, ours = Tracker(), Tracker()
    static = sg.to_static(best(ours), backend="eager")
    for call in range(5):
        assert_same(best(eager)(X * call), static(X * call))
        assert_same(vars(eager), vars(ours))
    assert static.cache_info().misses <= 3


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("use", [lambda k: json.dumps({"k": k}), lambda k: statistics.mean([k, 2.0])])
def test_a_number_that_python_itself_needs_is_a_constant(use: Callable[[float], Any], written: bool) -> None:
    class Kept:
        k, total = 1.0, 0.0

    def function(x: Tensor, kept: Any) -> Any:
        kept.total += x.sum().item()
        if written:
            kept.k += 0.5
        return use(kept.k), x * kept.k

    eager, ours = Kept(), Kept()
    static = sg.to_static(lambda x: function(x, ours), backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            assert_same(function(X, eager), static(X))
            assert vars(eager) == vars(ours)
            eager.k, ours.k = eager.k + 1, ours.k + 1
    assert static.cache_info().misses == 4


@pytest.mark.parametrize("values", [[0.1, 0.2], (0.1, 0.2), [(0.1, 1), (0.2, 2)]])
def test_an_index_that_differs_may_be_out_of_range(values: Any) -> None:
    kept = types.SimpleNamespace(index=0)

    def function(x: Tensor) -> Any:
        return x, values[kept.index]

    static = sg.to_static(function, backend="eager")
    for kept.index in (0, 1, 0, -1, 5, -4):
        expected, actual = outcome(function, (X,)), outcome(static, (X,))
        assert same_error(expected["error"], actual["error"])
        assert_same(expected["value"], actual["value"])
    assert static.cache_info().misses <= 2


CLASSES = torch.tensor([0, 2])
QUERY = torch.arange(24.0).reshape(1, 2, 3, 4) / 24
ANNEALED: dict[str, Callable[[Tensor, float], Any]] = {
    "normal_": lambda x, k: x.clone().normal_(0, k),
    "normal": lambda x, k: torch.normal(0.0, k, (2,)),
    "uniform_": lambda x, k: x.clone().uniform_(0, k),
    "bernoulli_": lambda x, k: x.clone().bernoulli_(k),
    "bernoulli": torch.bernoulli,
    "exponential_": lambda x, k: x.clone().exponential_(k),
    "init": lambda x, k: nn.init.normal_(torch.empty(2), std=k),
    "label smoothing": lambda x, k: nn.functional.cross_entropy(x, CLASSES, label_smoothing=k),
    "huber": lambda x, k: nn.functional.huber_loss(x, x * 2, delta=k + 0.1),
    "smooth l1": lambda x, k: nn.functional.smooth_l1_loss(x, x * 2, beta=k),
    "margin": lambda x, k: nn.functional.margin_ranking_loss(x, x * 2, torch.ones(2, 3), margin=k),
    "triplet": lambda x, k: nn.functional.triplet_margin_loss(x, x * 2, x * 3, margin=k),
    "attention's scale": lambda x, k: nn.functional.scaled_dot_product_attention(QUERY, QUERY, QUERY, scale=k),
    "attention's dropout": lambda x, k: nn.functional.scaled_dot_product_attention(QUERY, QUERY, QUERY, dropout_p=k),
    "dropout": nn.functional.dropout,
    "nan_to_num": lambda x, k: torch.nan_to_num(x / 0, k, posinf=k),
    "layer_norm": lambda x, k: nn.functional.layer_norm(x, (3,), eps=k),
    "norm": lambda x, k: (torch.norm(x, p=k), torch.linalg.vector_norm(x, k), nn.functional.normalize(x, p=k + 1)),
    "cdist": lambda x, k: torch.cdist(x, x * 2, p=k),
    "pad": lambda x, k: nn.functional.pad(x, (1, 1), value=k),
    "quantile": torch.quantile,
    "hardtanh": lambda x, k: nn.functional.hardtanh(x, -k, k),
}


@pytest.mark.parametrize("use", ANNEALED.values(), ids=ANNEALED.keys())
def test_a_number_that_torch_wants_plain_is_annealed(use: Callable[[Tensor, float], Any]) -> None:
    """The first and last values are those for which torch takes shortcuts, or raises."""
    kept = types.SimpleNamespace(k=0.0)
    static = sg.to_static(lambda x: use(x, kept.k), backend="eager")
    for kept.k in (0.25, 0.5, 0.75, 0.0, 1.0, -1.0, 2.0):
        expected, actual = outcome(lambda x: use(x, kept.k), (ROWS / 7,)), outcome(static, (ROWS / 7,))
        assert same_error(expected["error"], actual["error"]), (expected["error"], actual["error"])
        assert_same(expected["value"], actual["value"])
        assert_same(expected["random numbers"], actual["random numbers"])
    assert static.cache_info().misses <= 2


class _Counting:
    """Its ``[]`` is looked up by Python itself, past all rewriting."""

    def __init__(self) -> None:
        self.reads = 0

    def __getitem__(self, index: int) -> float:
        self.reads += 1
        return 2.0


def test_a_number_that_code_past_rewriting_writes() -> None:
    counting, again = _Counting(), _Counting()

    def of(counted: _Counting) -> Callable[[Tensor], Any]:
        return lambda x: (x * counted[0] * counted.reads, vars(counted))

    static = sg.to_static(of(again), backend="eager")
    for number in range(6):
        counting.reads += number
        again.reads += number
        assert_same(of(counting)(ROWS), static(ROWS))
        assert counting.reads == again.reads
