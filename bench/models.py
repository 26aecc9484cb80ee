"""Whole decoders, detectors and solvers as people write them: what is exported and timed by this folder's scripts.

Each is a `Case`, as those of ``tests/cases``: a function or module, and inputs that take different paths, of which the
first is the one to export for.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from examples.adaptive_computation import AdaptiveRNN
from examples.early_exit import EarlyExit
from examples.mixture_of_experts import Model as MixtureOfExperts
from examples.solver import cube_root
from tests.cases.case import Case
from tests.cases.tensors import f, i64, integers, normal

_normal, _integers = normal(seed=11), integers(seed=11)


# ---- decoders
class StaticCacheDecoder(nn.Module):
    """Greedy decoding by a layer of attention; keys and values are written into buffers of the full length."""

    def __init__(self, vocabulary: int = 40, width: int = 32, max_length: int = 64, eos: int = 37) -> None:
        super().__init__()
        self.width, self.max_length, self.eos = width, max_length, eos
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(max_length, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.output = nn.Linear(width, vocabulary)

    def forward(self, token: Tensor) -> tuple[Tensor, int]:
        batch = token.shape[0]
        keys = torch.zeros(batch, self.max_length, self.width)
        values = torch.zeros(batch, self.max_length, self.width)
        text = torch.zeros(batch, self.max_length, dtype=torch.long)
        finished = torch.zeros(batch, dtype=torch.bool)
        places = torch.arange(self.max_length)
        step = 0
        while step < self.max_length and not finished.all():
            text[:, step] = token
            x = self.embedding(token) + self.position(torch.full_like(token, step))
            query, key, value = self.qkv(x).chunk(3, dim=-1)
            keys[:, step] = key
            values[:, step] = value
            scores = (keys @ query.unsqueeze(-1)).squeeze(-1) / self.width**0.5
            weights = scores.masked_fill(places > step, float("-inf")).softmax(dim=-1)
            x = x + (weights.unsqueeze(1) @ values).squeeze(1)
            token = self.output(x + self.mix(x)).argmax(dim=-1)
            finished = finished | (token == self.eos)
            step += 1
        return text, step


class GrowingDecoder(nn.Module):
    """Greedy decoding that reads the whole text for each new token, and appends to it."""

    def __init__(self, vocabulary: int = 30, width: int = 32, max_length: int = 24, eos: int = 2) -> None:
        super().__init__()
        self.max_length, self.eos = max_length, eos
        self.embedding = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        finished = torch.zeros(ids.shape[0], dtype=torch.bool)
        while ids.shape[1] < self.max_length and not finished.all():
            hidden, _ = self.rnn(self.embedding(ids))
            token = self.output(hidden[:, -1]).argmax(dim=-1).masked_fill(finished, 0)
            ids = torch.cat([ids, token.unsqueeze(1)], dim=1)
            finished = finished | (token == self.eos)
        return ids


class BeamSearch(nn.Module):
    """The best text of three beams; a beam that has ended keeps its score, and the search stops when all have."""

    def __init__(self, vocabulary: int = 20, width: int = 24, beams: int = 3, steps: int = 12, eos: int = 13) -> None:
        super().__init__()
        self.vocabulary, self.beams, self.steps, self.eos = vocabulary, beams, steps, eos
        self.embedding = nn.Embedding(vocabulary, width)
        self.cell = nn.GRUCell(width, width)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        states = state.expand(self.beams, -1)
        texts = torch.zeros(self.beams, self.steps + 1, dtype=torch.long)
        scores = torch.tensor([0.0] + [-1e9] * (self.beams - 1))
        ended = torch.zeros(self.beams, dtype=torch.bool)
        only_end = torch.full((self.vocabulary,), -1e9)
        only_end[self.eos] = 0.0
        for step in range(self.steps):
            states = self.cell(self.embedding(texts[:, step]), states)
            log_probabilities = self.output(states).log_softmax(dim=-1)
            log_probabilities = torch.where(ended.unsqueeze(1), only_end, log_probabilities)
            scores, best = (scores.unsqueeze(1) + log_probabilities).flatten().topk(self.beams)
            beam, token = best // self.vocabulary, best % self.vocabulary
            texts, states, ended = texts[beam], states[beam], ended[beam] | (token == self.eos)
            texts[:, step + 1] = token
            if ended.all():
                break
        return texts[0], scores[0]


class Transducer(nn.Module):
    """RNN-T, greedy: at each frame tokens are emitted until the blank, at most three."""

    def __init__(self, features: int = 8, width: int = 24, vocabulary: int = 16, most: int = 3) -> None:
        super().__init__()
        self.most = most
        self.encoder = nn.GRU(features, width)
        self.embedding = nn.Embedding(vocabulary, width)
        self.cell = nn.GRUCell(width, width)
        self.joint = nn.Linear(2 * width, vocabulary)

    def forward(self, frames: Tensor) -> tuple[Tensor, int]:
        encoded, _ = self.encoder(frames.unsqueeze(1))
        text = torch.zeros(self.most * frames.shape[0], dtype=torch.long)
        state = self.cell(self.embedding(text[:1]))
        length = 0
        for frame in encoded:
            emitted = 0
            while emitted < self.most:
                token = self.joint(torch.tanh(torch.cat([frame, state], dim=1))).argmax(dim=1)
                if token[0] == 0:
                    break
                text[length] = token[0]
                state = self.cell(self.embedding(token), state)
                length += 1
                emitted += 1
        return text, length


def ctc_collapse(logits: Tensor) -> Tensor:
    """The likeliest path without repetitions and blanks."""
    path = logits.argmax(dim=-1)
    tokens: list[Tensor] = []
    last = torch.zeros((), dtype=torch.long)
    for token in path:
        if token != last and token != 0:
            tokens.append(token)
        last = token
    if len(tokens) == 0:
        return path[:0]
    return torch.stack(tokens)


# ---- detectors
def non_maximum_suppression(boxes: Tensor, scores: Tensor, threshold: float = 0.5) -> Tensor:
    """The numbers of the boxes that overlap with no better one; written in torch alone."""
    order = scores.argsort(descending=True)
    x1, y1, x2, y2 = boxes.unbind(dim=1)
    areas = (x2 - x1) * (y2 - y1)
    kept: list[Tensor] = []
    while order.numel() > 0:
        best = order[0]
        kept.append(best)
        order = order[1:]
        width = (torch.minimum(x2[best], x2[order]) - torch.maximum(x1[best], x1[order])).clamp(min=0)
        height = (torch.minimum(y2[best], y2[order]) - torch.maximum(y1[best], y1[order])).clamp(min=0)
        overlap = width * height
        order = order[overlap / (areas[best] + areas[order] - overlap) <= threshold]
    return torch.stack(kept)


class Detector(nn.Module):
    """A convolutional head with a box at each place; those with a good score go through suppression."""

    def __init__(self, threshold: float = 0.55) -> None:
        super().__init__()
        self.threshold = threshold
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1))
        self.scores = nn.Conv2d(16, 1, 1)
        self.sizes = nn.Conv2d(16, 2, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(image.unsqueeze(0))
        scores = torch.sigmoid(self.scores(features)).flatten()
        half = 4 * torch.sigmoid(self.sizes(features)).flatten(2)[0].T
        rows, columns = features.shape[2], features.shape[3]
        centres = torch.stack([torch.arange(rows).repeat_interleave(columns), torch.arange(columns).repeat(rows)], 1)
        boxes = torch.cat([centres - half, centres + half], dim=1)
        good = scores > self.threshold
        if not good.any():
            return boxes[:0], scores[:0]
        boxes, scores = boxes[good], scores[good]
        kept = non_maximum_suppression(boxes, scores)
        return boxes[kept], scores[kept]


class SetDetector(nn.Module):
    """As DETR: a transformer turns queries into boxes and classes; those with a good score are given, or the best."""

    def __init__(self, width: int = 32, queries: int = 8, classes: int = 4, threshold: float = 0.85) -> None:
        super().__init__()
        self.threshold = threshold
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.transformer = nn.Transformer(width, 4, 1, 1, 64, dropout=0.0, batch_first=True)
        self.queries = nn.Parameter(torch.randn(1, queries, width))
        self.classes = nn.Linear(width, classes + 1)
        nn.init.normal_(self.classes.weight, std=0.5)  # so that some queries are sure of themselves
        self.boxes = nn.Linear(width, 4)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        patches = self.patches(image.unsqueeze(0)).flatten(2).transpose(1, 2)
        decoded = self.transformer(patches, self.queries)[0]
        scores, labels = self.classes(decoded).softmax(dim=-1)[:, :-1].max(dim=-1)
        boxes = torch.sigmoid(self.boxes(decoded))
        kept = scores > self.threshold
        if not kept.any():
            kept = scores == scores.max()
        return {"scores": scores[kept], "labels": labels[kept], "boxes": boxes[kept]}


# ---- solvers
class NeuralODE(nn.Module):
    """From time 0 to 1 by Heun's method; a step is taken if the error is small, and its size follows the error."""

    def __init__(self, width: int = 16, tolerance: float = 1e-4) -> None:
        super().__init__()
        self.tolerance = tolerance
        self.field = nn.Sequential(nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, width))

    def forward(self, state: Tensor) -> tuple[Tensor, int]:
        time, step = torch.zeros(()), torch.tensor(0.1)
        taken = 0
        while time < 1 - 1e-6:
            step = torch.minimum(step, 1 - time)
            slope = self.field(state)
            euler = state + step * slope
            heun = state + step * (slope + self.field(euler)) / 2
            error = (heun - euler).abs().max() / self.tolerance
            if error <= 1:
                time, state = time + step, heun
                taken += 1
            step = step * (0.9 / (error + 1e-8).sqrt()).clamp(0.2, 5.0)
        return state, taken


def k_means(points: Tensor, centres: Tensor, most: int = 100) -> tuple[Tensor, Tensor, int]:
    """Lloyd's algorithm until no point changes its cluster; a cluster without points stays where it is."""
    assigned = torch.full((points.shape[0],), -1)
    for iteration in range(most):
        nearest = torch.cdist(points, centres).argmin(dim=1)
        if (nearest == assigned).all():
            return centres, assigned, iteration
        assigned = nearest
        members = nn.functional.one_hot(assigned, centres.shape[0]).to(points.dtype)
        counts = members.sum(dim=0).unsqueeze(1)
        centres = torch.where(counts > 0, members.T @ points / counts.clamp(min=1), centres)
    return centres, assigned, most


def countdown(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """A loop on scalars: as many iterations as it takes `x` to come to `limit` in steps of one."""
    total = torch.zeros_like(x)
    while x > limit:
        total = total + x * 0.5
        x = x - 1
    return total, x


# ---- the models with their inputs
def _hugging_face_gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    from stillgraph.demo.gpt2 import GreedyDecoder

    config = GPT2Config(
        vocab_size=100,
        n_embd=48,
        n_layer=2,
        n_head=4,
        n_positions=32,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.5,  # so that the tokens vary
        use_cache=False,
        attn_implementation="eager",
    )
    return GreedyDecoder(GPT2LMHeadModel(config), eos=60, max_length=24).eval()


def _boxes(count: int) -> Tensor:
    corners = 2 * _normal(count, 2)
    return torch.cat([corners, corners + 3 + _normal(count, 2).abs()], dim=1)


def _path(*tokens: int) -> Tensor:
    return 5 * nn.functional.one_hot(i64(tokens), 6).float()


def _clusters(spread: float, count: int = 60) -> Tensor:
    return torch.cat([spread * _normal(count // 3, 2) + centre for centre in f([0, 0], [5, 1], [2, 6])])


def _directions(*scales: float) -> list[tuple[Tensor]]:
    direction = _normal(8, 32)
    return [(scale * direction,) for scale in scales]


def _words(*scales: float) -> list[tuple[Tensor]]:
    return [(scale * _normal(24, 16) + 2 * _normal(1, 16),) for scale in scales]


MODELS: tuple[Case, ...] = (
    Case("GPT-2, greedy", _hugging_face_gpt2, [(5 + _integers(95, 2, n),) for n in (6, 4, 6, 9)]),
    Case("greedy, static cache", lambda: StaticCacheDecoder().eval(), [(i64(*t),) for t in ((5, 9), (7, 7), (30, 3))]),
    Case("greedy, growing", lambda: GrowingDecoder().eval(), [(3 + _integers(27, 2, n),) for n in (4, 4, 7, 3)]),
    Case("beam search", lambda: BeamSearch().eval(), [(scale * _normal(1, 24),) for scale in (1, 3, 8, 0.1)]),
    Case("RNN-T, greedy", lambda: Transducer().eval(), [(s * _normal(n, 8),) for n, s in ((10, 2), (7, 4), (12, 0.1))]),
    Case("CTC collapse", lambda: ctc_collapse, [(_path(*p),) for p in ((0, 1, 1, 0, 1), (2, 2, 3, 3, 3), (0,) * 7)]),
    Case("NMS", lambda: non_maximum_suppression, [(_boxes(n), _normal(n)) for n in (20, 20, 33, 8)]),
    Case("detector with NMS", lambda: Detector().eval(), [(s * _normal(3, 32, 32),) for s in (1, 2, 0.01)]),
    Case("DETR", lambda: SetDetector().eval(), [(s * _normal(3, 16, 16),) for s in (1, 4, 0)]),
    Case("ODE, adaptive step", lambda: NeuralODE().eval(), [(s * _normal(4, 16),) for s in (1, 10, 0.01)]),
    Case("k-means", lambda: k_means, [(p, p[:3].clone()) for p in map(_clusters, (3.0, 0.5, 0.1))]),
    Case("Newton's method", lambda: cube_root, [(f(0.5, 8, 27),), (f(1, 1, 1),), (f(1000, 2, 0.01),)]),
    Case("early exit", lambda: EarlyExit().eval(), _directions(0.1, 2, 6, 20)),
    Case("mixture of experts", lambda: MixtureOfExperts().eval(), _words(1, 0.1)),
    Case("adaptive computation", lambda: AdaptiveRNN().eval(), [(s * _normal(4, 3, 3),) for s in (1, 5, 0)]),
    Case("scalar loop", lambda: countdown, [(f(200), f(0)), (f(7.5), f(-3)), (f(0), f(3))]),
)
