"""Modules as they stand in libraries that support TorchScript, captured unchanged, on both sides of every decision."""
# no postponed annotations: torch.jit.script reads those of the functions here

import copy
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035 (as people write for TorchScript)

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.operators.test_torchscript import same

# ruff: noqa: UP006, UP045, E501, RUF012
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


# ---- a detector's head: boxes above a threshold, the best first, overlapping ones suppressed
@torch.jit.script_if_tracing
def suppressed(boxes: Tensor, scores: Tensor, most: float) -> Tensor:
    order = scores.argsort(descending=True)
    alive = torch.ones_like(scores, dtype=torch.bool)
    for i in range(boxes.shape[0]):
        here = order[i]
        if bool(alive[here]):
            low = torch.maximum(boxes[here, :2], boxes[:, :2])
            high = torch.minimum(boxes[here, 2:], boxes[:, 2:])
            shared = (high - low).clamp(min=0).prod(1)
            area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
            overlapping = shared / (area + area[here] - shared) > most
            overlapping[here] = False
            alive = alive & ~overlapping
    return order[alive[order]]


class Detector(nn.Module):
    __constants__ = ["threshold"]

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__()
        self.threshold = threshold
        self.overlap: torch.jit.Final[float] = 0.5

    def forward(self, boxes: List[Tensor], scores: List[Tensor], targets: Optional[List[Dict[str, Tensor]]] = None) -> List[Dict[str, Tensor]]:
        if self.training and targets is None:
            if torch.jit.is_scripting():
                torch._assert(False, "targets should not be none when in training mode")
            else:
                raise ValueError("In training mode, targets should be passed")
        results: List[Dict[str, Tensor]] = []
        for each, score in zip(boxes, scores):
            kept = torch.where(score > self.threshold)[0]
            each, score = each[kept], score[kept]
            result = torch.jit.annotate(Dict[str, Tensor], {})
            if score.numel() > 0:
                result["boxes"] = each.clamp(min=0)
                result["best"] = score.max()
            else:
                result["boxes"] = each
                result["best"] = torch.zeros(())
            results.append(result)
        return results


class Suppressing(nn.Module):
    def forward(self, boxes: Tensor, scores: Tensor) -> Dict[str, Tensor]:
        kept = suppressed(boxes, scores, 0.5)
        return {"boxes": boxes[kept], "scores": scores[kept]}


# ---- an LSTM of one's own: a list that is annotated, a state that may be missing
class LSTMState(NamedTuple):
    hx: Tensor
    cx: Tensor


class LSTMCell(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.gates = nn.Linear(2 * size, 4 * size)

    def forward(self, x: Tensor, state: LSTMState) -> LSTMState:
        i, f, g, o = self.gates(torch.cat([x, state.hx], -1)).chunk(4, -1)
        cx = f.sigmoid() * state.cx + i.sigmoid() * g.tanh()
        return LSTMState(o.sigmoid() * cx.tanh(), cx)


class LSTMLayer(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.cell = LSTMCell(size)

    def forward(self, xs: Tensor, state: Optional[LSTMState] = None) -> Tuple[Tensor, LSTMState]:
        if state is None:
            zeros = torch.zeros_like(xs[0])
            state = LSTMState(zeros, zeros)
        outputs = torch.jit.annotate(List[Tensor], [])
        inputs = xs.unbind(0)
        for i in range(len(inputs)):
            state = self.cell(inputs[i], state)
            if bool(state.hx.norm() > 1.0):
                state = LSTMState(state.hx / state.hx.norm(), state.cx)
            outputs += [state.hx]
        return torch.stack(outputs), state


# ---- greedy and beam decoding of a transducer
class Hypothesis(NamedTuple):
    tokens: Tensor
    score: Tensor
    state: Tensor


class Transducer(nn.Module):
    def __init__(self, tokens: int = 4, size: int = 3) -> None:
        super().__init__()
        self.blank: torch.jit.Final[int] = 0
        self.embedding = nn.Embedding(tokens, size)
        self.joiner = nn.Linear(size, tokens)

    def forward(self, frames: Tensor, beam: int) -> Tuple[Tensor, Tensor]:
        best = Hypothesis(torch.zeros(beam, 1, dtype=torch.int64), torch.zeros(beam), torch.zeros(beam, frames.shape[1]))
        for t in range(frames.shape[0]):
            best = self._step(frames[t], best, beam)
        return best.tokens, best.score

    def _step(self, frame: Tensor, hypotheses: Hypothesis, beam: int) -> Hypothesis:
        scores = self.joiner((frame + hypotheses.state).tanh()).log_softmax(-1) + hypotheses.score[:, None]
        top, index = scores.flatten().topk(beam)
        parent, token = torch.div(index, scores.shape[1], rounding_mode="floor"), index % scores.shape[1]
        state = hypotheses.state[parent] + self.embedding(token) * (token != self.blank)[:, None]
        return Hypothesis(torch.cat([hypotheses.tokens[parent], token[:, None]], 1), top, state)

    @torch.jit.export
    def greedy(self, frames: Tensor, most: int = 3) -> Tensor:
        state = torch.zeros(frames.shape[1])
        found = torch.zeros(1, dtype=torch.int64)
        for t in range(frames.shape[0]):
            emitted = 0
            token = self.joiner((frames[t] + state).tanh()).argmax()
            while bool(token != self.blank) and emitted < most:
                found = torch.cat([found, token[None]])
                state = state + self.embedding(token)
                token = self.joiner((frames[t] + state).tanh()).argmax()
                emitted += 1
        return found


# ---- a streaming filter: a state that may be missing, and a dict of what it gives
class Streaming(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.5))

    def forward(self, chunk: Tensor, state: Optional[Dict[str, Tensor]] = None) -> Dict[str, Tensor]:
        previous = torch.jit.annotate(Optional[Tensor], None)
        if state is not None and "last" in state:
            previous = state["last"]
        if previous is None:
            previous = torch.zeros_like(chunk)
        assert previous is not None
        smooth = torch.lerp(previous, chunk, self.weight)
        loud: Optional[Tensor] = None
        if smooth.abs().max() > 1:
            loud = smooth.clamp(-1, 1)
        out: Dict[str, Tensor] = {"last": smooth}
        if loud is not None:
            out["out"] = loud
        else:
            out["out"] = smooth
        return out


torch.manual_seed(0)
BOXES = torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 5], [-1, 6, 8, 9], [6, 6, 8, 8]])
HIGH, LOW = torch.tensor([0.9, 0.8, 0.7, 0.1]), torch.tensor([0.1, 0.2, 0.3, 0.4])
FRAMES = torch.randn(5, 3)
SEQUENCE = torch.randn(4, 2, 3)
STATE = LSTMState(torch.randn(2, 3) * 9, torch.randn(2, 3) * 9)

CALLS: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "detector": (Detector().eval(), [([BOXES, BOXES], [HIGH, LOW]), ([BOXES], [LOW]), ([BOXES], [HIGH])]),
    "suppressing": (Suppressing(), [(BOXES, HIGH), (BOXES, LOW), (BOXES * 0 + BOXES[0], HIGH)]),
    "lstm": (LSTMLayer(3), [(SEQUENCE,), (SEQUENCE * 20,), (SEQUENCE, STATE)]),
    "transducer": (Transducer(), [(FRAMES, 2), (FRAMES[:3], 2), (-FRAMES, 2)]),
    "greedy": (Transducer().greedy, [(FRAMES,), (-FRAMES,), (FRAMES * 5, 2)]),
    "streaming": (Streaming(), [(FRAMES / 9,), (FRAMES * 9,), (FRAMES / 9, {"last": FRAMES * 9}), (FRAMES, {})]),
}


@pytest.mark.parametrize("target", [t for t, _ in CALLS.values() if isinstance(t, nn.Module)], ids=lambda t: type(t).__name__)
def test_torchscript_takes_them(target: nn.Module) -> None:
    torch.jit.script(target)


@pytest.mark.parametrize("name", CALLS)
def test_captured_as_eager_means_it(name: str) -> None:
    target, calls = CALLS[name]
    static = sg.to_static(copy.deepcopy(target) if isinstance(target, nn.Module) else target, backend="eager")
    for args in calls:
        assert same(static(*copy.deepcopy(args)), target(*copy.deepcopy(args)))


@pytest.mark.parametrize("name", CALLS)
def test_one_file_gives_what_eager_gives(name: str, tmp_path: Path) -> None:
    target, calls = CALLS[name]
    path = tmp_path / "it.pt2"
    sg.save(target, path, args=calls[0])
    loaded = sg.load(path)
    given = torch.utils._pytree.tree_leaves
    shapes = [[part.shape for part in given(args) if isinstance(part, Tensor)] for args in calls]
    alike = [args for args, shape in zip(calls, shapes, strict=True) if shape == shapes[0] and len(args) == len(calls[0])]
    for args in alike:
        torch.testing.assert_close(loaded(*copy.deepcopy(args)), target(*copy.deepcopy(args)))
