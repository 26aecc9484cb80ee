from __future__ import annotations

import copy
import functools
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from tests.cases.harness import python_module
from tests.unit.deploy.python_models import Classifier, Decoder, Gate, grown, guarded, halve, newton, recursive

GOLDEN = Path(__file__).parents[2] / "golden" / "python_source"
X, LIMIT = torch.tensor([[3.0, 4.0, 5.0], [1.0, 2.0, 3.0]]), torch.tensor(0.5)


def fresh(make: Any) -> Any:
    """A module, its weights the same each time; a function is itself."""
    torch.manual_seed(0)
    return make() if isinstance(make, type) else make


SAMPLES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "halve": (halve, (X, LIMIT), {}),
    "halve_in_python": (halve, (X, LIMIT), {"control_flow": "python"}),
    "guarded": (guarded, (X[0],), {}),
    "grown": (grown, (torch.ones(2),), {}),
    "recursive": (recursive, (X, torch.tensor(3.0)), {}),
    "gate": (Gate, (X,), {}),
    "open_sizes": (halve, (X, LIMIT), {"input_spec": [sg.InputSpec([None, 3]), None]}),
}


def saved(name: str, folder: Path) -> Path:
    make, args, options = SAMPLES[name]
    path = folder / f"{name}.py"
    sg.save(fresh(make), path, args=args, **options)
    return path


# ---- what is written
@pytest.mark.parametrize("name", SAMPLES)
def test_text(name: str, tmp_path: Path) -> None:
    text = saved(name, tmp_path).read_text()
    golden = GOLDEN / f"{name}.py.txt"
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        golden.write_text(text)
    version = torch.__version__.partition("+")[0]
    assert text.replace(f"made with {version}", "made with 2.13.0") == golden.read_text()
    assert max(map(len, text.splitlines())) <= 120
    assert str(Path(__file__).parents[3]) not in text


def test_the_same_program_gives_the_same_text(tmp_path: Path) -> None:
    texts = [saved("gate", tmp_path).read_text() for _ in range(2)]
    assert texts[0] == texts[1]


def test_linters_find_nothing(tmp_path: Path) -> None:
    for name in SAMPLES:
        (tmp_path / f"{name}.py").write_text((GOLDEN / f"{name}.py.txt").read_text())
    lint = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", str(tmp_path)]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# ---- what it does
@pytest.mark.parametrize("name", ["halve", "halve_in_python"])
def test_it_gives_what_the_original_gives(name: str, tmp_path: Path) -> None:
    written = python_module(saved(name, tmp_path)).halve
    for scale in (1.0, 0.01, 100.0):
        want, got = halve(X * scale, LIMIT), written(X * scale, LIMIT)
        assert list(got) == ["x", "steps"]
        assert (type(got["steps"]), got["steps"]) == (int, want["steps"])
        torch.testing.assert_close(got["x"], want["x"])


def test_prints_exceptions_and_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = python_module(saved("guarded", tmp_path))
    for x in (X[0], -X[0] * 10):
        step, pair = guarded(x)
        printed = capsys.readouterr().out
        got_step, got_pair = written.guarded(x)
        assert capsys.readouterr().out == printed
        assert isinstance(got_step, written.Step)
        assert isinstance(got_pair, written.Pair)
        torch.testing.assert_close(got_step.x, step.x)
        torch.testing.assert_close((got_pair.left, got_pair.right), tuple(pair))


class Handling(torch.nn.Module):
    """Raises from a handler, once its buffer is written."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.again = again
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        try:
            if x[0] > 0:
                raise ValueError("v")
        except ValueError as error:
            self.seen = self.seen + x.sum()
            if self.again:
                raise
            raise KeyError(x[0].item()) from error
        return x


@pytest.mark.parametrize("again", [True, False])
def test_what_a_handler_raises_has_its_cause_and_what_came_before(again: bool, tmp_path: Path) -> None:
    sg.save(Handling(again), tmp_path / "handling.py", args=(-torch.ones(2),))
    told = []
    for module in (Handling(again), python_module(tmp_path / "handling.py").load()):
        with pytest.raises((KeyError, ValueError)) as found:
            module(torch.tensor([1.0, 2.0]))
        told.append((type(found.value), str(found.value), repr(found.value.__cause__), module.seen.item()))
    assert told[0] == told[1]
    assert told[0][-1] == 3


LOG = logging.getLogger("tests.python_source")


def told(x: Tensor) -> Tensor:
    if x.sum() > 0:
        LOG.warning("the sum is %.1f", x.sum().item())
        warnings.warn("positive", RuntimeWarning, stacklevel=1)
        sys.stderr.write("told\n")
    return x * 2


def test_logging_warnings_and_standard_streams(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    sg.save(told, tmp_path / "told.py", args=(torch.ones(2),))
    assert (caplog.messages, capsys.readouterr().err) == ([], "")  # its trial is nobody's business
    written = python_module(tmp_path / "told.py")
    with pytest.warns(RuntimeWarning, match="positive"):
        written.told(torch.ones(2))
    assert (caplog.messages, capsys.readouterr().err) == (["the sum is 2.0"], "told\n")


def told_once(x: Tensor) -> Tensor:
    if x.sum() > 0:
        LOG.warning_once("once %s", "told")  # type: ignore[attr-defined]  # made by the tests, as transformers does
    return x * 2


def test_a_method_that_logs_each_message_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @functools.lru_cache(None)
    def warning_once(self: logging.Logger, *args: Any, **kwargs: Any) -> None:
        """As transformers has it."""
        self.warning(*args, **kwargs)

    monkeypatch.setattr(logging.Logger, "warning_once", warning_once, raising=False)
    sg.save(told_once, tmp_path / "told.py", args=(torch.ones(2),))
    monkeypatch.delattr(logging.Logger, "warning_once")
    written = python_module(tmp_path / "told.py").told_once
    for x in (-torch.ones(2), torch.ones(2), torch.ones(2)):
        assert torch.equal(written(x), x * 2)
    assert caplog.messages == ["once told"]


def test_a_method_that_pythons_loggers_do_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @functools.lru_cache(None)
    def warning_once(self: logging.Logger, *args: Any) -> None:
        self.warning("twice: %s", *args)

    monkeypatch.setattr(logging.Logger, "warning_once", warning_once, raising=False)
    with pytest.raises(sg.ExportError, match="'warning_once', which Python's loggers do not have") as raised:
        sg.save(told_once, tmp_path / "told.py", args=(torch.ones(2),))
    assert raised.value.reason.code == "SG402"


def test_state_is_kept_and_weights_have_their_names(tmp_path: Path) -> None:
    original, written = fresh(Gate), python_module(saved("gate", tmp_path)).load()
    assert list(written.state_dict()) == list(original.state_dict())
    assert written.out.weight is written.layers[0].weight
    other = Gate()
    written.load_state_dict(other.state_dict())
    for scale in (1.0, -1.0, 5.0):
        want, got = other(X * scale), written(X * scale)
        torch.testing.assert_close(got, want)
    assert written.calls == other.calls == 3
    torch.testing.assert_close(dict(written.state_dict()), dict(other.state_dict()))


def shaped(x: Tensor) -> Tensor:
    while x.sum() < 20:
        x = (x + 1).view(x.size()[:-1] + (-1,)).view(torch.Size([3, 2])).view(2, 3)  # noqa: RUF005 (what is tested)
    return x


def test_shapes_that_are_constants(tmp_path: Path) -> None:
    sg.save(shaped, tmp_path / "shaped.py", args=(X,))
    for x in (X, -X):
        torch.testing.assert_close(python_module(tmp_path / "shaped.py").shaped(x), shaped(x))


class Towers(nn.Module):
    """A list of sequences of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.towers = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for tower in self.towers:
            if x.sum() > 0:
                x = tower(x)
        return x


def test_lists_of_sequences_of_layers(tmp_path: Path) -> None:
    towers = fresh(Towers)
    with torch.no_grad():
        sg.save(towers, tmp_path / "towers.py", args=(X,))
        written = python_module(tmp_path / "towers.py").load()
        assert list(written.state_dict()) == list(towers.state_dict())
        for x in (X, -X):
            torch.testing.assert_close(written(x), towers(x))


def test_a_closure_keeps_its_tensor_and_its_number(tmp_path: Path) -> None:
    def make() -> Any:
        weight, count = torch.tensor([1.0, 2.0, 3.0]), 0

        def counted(x: Tensor) -> tuple[Tensor, int]:
            nonlocal count
            count += 1
            return (x * weight if x.sum() > 0 else x), count

        return counted

    sg.save(make(), tmp_path / "counted.py", args=(X,))
    assert not (tmp_path / "counted_weights.pt").exists()  # small tensors stand in the file
    original, written = make(), python_module(tmp_path / "counted.py").load()
    for x in (X, -X, X):
        torch.testing.assert_close(written(x), original(x))


# ---- gradients
def test_loops_are_differentiated(tmp_path: Path) -> None:
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    sg.save(newton, tmp_path / "newton.py", args=(x,))
    written = python_module(tmp_path / "newton.py").newton
    for start in ([1.0, 3.0], [2.0**0.5, 2.0**0.5], [0.5, 5.0]):
        gradients = []
        for function in (newton, written):
            given = torch.tensor(start, requires_grad=True)
            function(given)[0].sum().backward()
            gradients.append(given.grad)
        torch.testing.assert_close(gradients[0], gradients[1])


def test_parameters_are_trained(tmp_path: Path) -> None:
    original = fresh(Gate)
    written = python_module(saved("gate", tmp_path)).load()
    for module in (original, written):
        module(X)[0].sum().backward()
    for (name, parameter), other in zip(original.named_parameters(), written.parameters(), strict=True):
        assert (parameter.grad is None) == (other.grad is None), name
        if parameter.grad is not None:
            torch.testing.assert_close(other.grad, parameter.grad)


def test_torchs_operators_refuse_gradients_and_export_again(tmp_path: Path) -> None:
    written = python_module(saved("halve", tmp_path)).halve
    with pytest.raises(ValueError, match="takes no gradients"):
        written(X.clone().requires_grad_(), LIMIT)

    class Whole(nn.Module):
        def forward(self, x: Tensor, limit: Tensor) -> Tensor:
            return written(x, limit)["x"]

    exported = torch.export.export(Whole(), (X, LIMIT), strict=False)
    targets = {node.target for node in exported.graph.nodes}
    assert torch.ops.higher_order.while_loop in targets
    torch.testing.assert_close(exported.module()(X * 3, LIMIT), halve(X * 3, LIMIT)["x"])


def test_under_no_grad_a_module_gets_torchs_operators(tmp_path: Path) -> None:
    original = fresh(Classifier).eval()
    with torch.no_grad():
        sg.save(original, tmp_path / "classifier.py", args=(torch.ones(1, 4),))
    text = (tmp_path / "classifier.py").read_text()
    assert "torch.cond(" in text
    written = python_module(tmp_path / "classifier.py").load()
    assert not any(parameter.requires_grad for parameter in written.parameters())
    for x in (torch.ones(1, 4), torch.full((1, 4), 50.0)):
        torch.testing.assert_close(written(x), original(x).detach())


# ---- what it refuses
def test_arguments_it_was_not_made_for_are_refused(tmp_path: Path) -> None:
    written = python_module(saved("halve_in_python", tmp_path)).halve
    with pytest.raises(ValueError, match=r"x is torch.float32 \[3\]"):
        written(X[0], LIMIT)
    with pytest.raises(TypeError, match="limit is a float"):
        written(X, 0.5)
    gate = python_module(saved("gate", tmp_path)).load().eval()
    with pytest.raises(ValueError, match="training is False"):
        gate(X)


def applied(x: Tensor, activation: Any, dtype: torch.dtype) -> Tensor:
    return activation(x).to(dtype) + torch.ones(3)


def test_python_arguments_it_was_not_made_for_are_refused(tmp_path: Path) -> None:
    sg.save(applied, tmp_path / "applied.py", args=(X, torch.relu, torch.float64))
    written = python_module(tmp_path / "applied.py").applied
    torch.testing.assert_close(written(X, torch.relu, torch.float64), applied(X, torch.relu, torch.float64))
    with pytest.raises(ValueError, match="activation"):
        written(X, torch.tanh, torch.float64)
    with pytest.raises(ValueError, match="dtype"):
        written(X, torch.relu, torch.float32)
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(ValueError, match="the default dtype"):
            written(X, torch.relu, torch.float64)
    finally:
        torch.set_default_dtype(torch.float32)


def test_autocast_around_a_save_is_refused(tmp_path: Path) -> None:
    with torch.autocast("cpu"), pytest.raises(ExportError, match="autocast"):
        sg.save(halve, tmp_path / "halve.py", args=(X, LIMIT))


def test_sizes_stay_open(tmp_path: Path) -> None:
    written = python_module(saved("open_sizes", tmp_path)).halve
    torch.testing.assert_close(written(X.repeat(4, 1), LIMIT), halve(X.repeat(4, 1), LIMIT))


def test_what_it_has_no_form_for_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    log = [torch.ones(1)]

    def logged(x: Tensor) -> Tensor:
        log.append(x.sum())
        return x if x.sum() > 0 else -x

    with pytest.raises(ExportError, match=r"cannot hold 'log', a list(.|\n)*in logged"):
        sg.save(logged, tmp_path / "logged.py", args=(X,))
    assert list(tmp_path.iterdir()) == []


def test_torchs_operators_where_they_cannot_say_it(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="it prints, logs or warns"):
        sg.save(guarded, tmp_path / "guarded.py", args=(X[0],), control_flow="torch")


def test_the_users_own_source_is_not_replaced() -> None:
    path = Path(sys.modules[halve.__module__].__file__ or "")
    before = path.read_text()
    with pytest.raises(ValueError, match="made from"):
        sg.save(halve, path, args=(X, LIMIT))
    assert path.read_text() == before


@pytest.mark.parametrize(("path", "control_flow"), [("a.py", "eager"), ("a.pt2", "python")])
def test_bad_styles(path: str, control_flow: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="control_flow"):
        sg.save(halve, tmp_path / path, args=(X, LIMIT), control_flow=control_flow)


# ---- without stillgraph
_ALONE = """
import importlib.util, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("stillgraph", "tests"):
            raise ImportError(f"{name} is not here")
sys.meta_path.insert(0, Blocked())
import torch
for name in sys.argv[2:]:
    spec = importlib.util.spec_from_file_location(name, f"{sys.argv[1]}/{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = module.load() if hasattr(module, "load") else getattr(module, name)
    calls, wanted = torch.load(f"{sys.argv[1]}/{name}_calls.pt")
    for call, want in zip(calls, wanted):
        torch.testing.assert_close(function(*call), want)
assert "stillgraph" not in sys.modules
"""


@torch.no_grad()
def test_files_need_torch_alone(tmp_path: Path) -> None:
    tokens = torch.tensor([[1, 2, 4]])
    models: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
        "decoder": (fresh(Decoder).eval(), [(tokens,), (tokens + 5,)]),
        "classifier": (fresh(Classifier).eval(), [(torch.ones(1, 4),), (torch.full((1, 4), 50.0),)]),
        "halve": (halve, [(X, LIMIT), (X / 100, LIMIT)]),
        "newton": (newton, [(X,), (X * 10,)]),
    }
    for name, (target, calls) in models.items():
        sg.save(target, tmp_path / f"{name}.py", args=calls[0])
        torch.save((calls, [copy.deepcopy(target(*call)) for call in calls]), tmp_path / f"{name}_calls.pt")
    command = [sys.executable, "-c", _ALONE, str(tmp_path), *models]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
