"""Everyday functions: models with outputs, caches and configurations, decoding, tokenizers, detection, metrics."""

from __future__ import annotations

import collections
import csv
import dataclasses
import io
import itertools
import math
import random
import re
from typing import NamedTuple, TypedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.unit.bytecode.everyday.program import everyday, random_tensor


class ModelOutput(collections.OrderedDict):
    """As in the library of transformers: a dictionary whose keys are attributes too."""

    def __post_init__(s):
        for field in dataclasses.fields(s):
            value = getattr(s, field.name)
            if value is not None:
                s[field.name] = value

    def __getitem__(s, k):
        if isinstance(k, str):
            return dict(s.items())[k]
        return s.to_tuple()[k]

    def __setattr__(s, name, value):
        if name in s and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(s, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def to_tuple(s):
        return tuple(s[k] for k in s)


@dataclasses.dataclass
class CausalOutput(ModelOutput):
    loss: torch.Tensor | None = None
    logits: torch.Tensor = None
    past: tuple | None = None


class Config:
    def __init__(s, **kwargs):
        s.hidden = kwargs.pop("hidden", 4)
        s.layers = kwargs.pop("layers", 2)
        s.vocab = kwargs.pop("vocab", 7)
        s.act = kwargs.pop("act", "gelu")
        for key, value in kwargs.items():
            setattr(s, key, value)

    def to_dict(s):
        return dict(s.__dict__)


class Cache:
    def __init__(s):
        s.keys = []
        s.values = []
        s.seen = 0

    def update(s, k, v, layer):
        if layer == 0:
            s.seen += k.shape[-2]
        if len(s.keys) <= layer:
            s.keys.append(k)
            s.values.append(v)
        else:
            s.keys[layer] = torch.cat([s.keys[layer], k], dim=-2)
            s.values[layer] = torch.cat([s.values[layer], v], dim=-2)
        return s.keys[layer], s.values[layer]

    def __len__(s):
        return len(s.keys)

    def length(s, layer=0):
        return s.keys[layer].shape[-2] if len(s) > layer else 0


ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "silu": lambda x: x * torch.sigmoid(x)}


class Block(nn.Module):
    def __init__(s, config, index):
        super().__init__()
        s.index = index
        s.qkv = nn.Linear(config.hidden, 3 * config.hidden)
        s.out = nn.Linear(config.hidden, config.hidden)
        s.norm = nn.LayerNorm(config.hidden)
        s.act = ACTIVATIONS[config.act]

    def forward(s, x, cache=None, mask=None):
        q, k, v = s.qkv(s.norm(x)).chunk(3, dim=-1)
        if cache is not None:
            k, v = cache.update(k, v, s.index)
        w = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        if mask is not None:
            w = w + mask
        return x + s.act(s.out(w.softmax(-1) @ v))


class Causal(nn.Module):
    def __init__(s, config):
        super().__init__()
        s.config = config
        s.embed = nn.Embedding(config.vocab, config.hidden)
        s.blocks = nn.ModuleList(Block(config, i) for i in range(config.layers))
        s.head = nn.Linear(config.hidden, config.vocab, bias=False)
        s.head.weight = s.embed.weight

    def forward(s, ids, cache=None, labels=None, return_dict=True):
        h = s.embed(ids)
        n = ids.shape[-1]
        mask = None
        if n > 1:
            mask = torch.full((n, n), float("-inf")).triu(1)
        for block in s.blocks:
            h = block(h, cache, mask)
        logits = s.head(h)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        if not return_dict:
            return (loss, logits) if loss is not None else (logits,)
        return CausalOutput(loss=loss, logits=logits, past=cache)


def causal(**kwargs):
    torch.manual_seed(0)
    return Causal(Config(**kwargs))


MODEL = causal()
IDS = torch.tensor([[1, 2, 3]])


@everyday((IDS, 4), (torch.tensor([[4, 4]]), 3))
def greedy_cached(ids, n):
    cache = Cache()
    out = MODEL(ids, cache)
    with torch.no_grad():
        for step in range(n):
            token = out.logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, token], dim=-1)
            print("token", step, token.item(), cache.length())
            if token.item() == 6:
                break
            out = MODEL(token, cache)
    return ids, cache.seen, len(cache)


@everyday((IDS, True), (IDS, False), (torch.tensor([[5, 1, 6, 0]]), True))
def outputs(ids, wanted):
    out = MODEL(ids, labels=ids, return_dict=wanted)
    if isinstance(out, tuple):
        print("tuple", len(out), round(out[0].item(), 4))
        return out
    print(list(out.keys()), round(out.loss.item(), 4))
    loss = out.to_tuple()[0]
    out["loss"] = loss * 2
    return out.loss, out["logits"], out[1].shape, MODEL.config.to_dict()["act"]


class RepetitionPenalty:
    def __init__(s, penalty):
        s.penalty = penalty

    def __call__(s, ids, scores):
        score = torch.gather(scores, 1, ids)
        score = torch.where(score < 0, score * s.penalty, score / s.penalty)
        return scores.scatter(1, ids, score)


class TopK:
    def __init__(s, k):
        s.k = k
        s.removed = 0

    def __call__(s, ids, scores):
        k = min(s.k, scores.size(-1))
        gone = scores < torch.topk(scores, k)[0][..., -1, None]
        s.removed += gone.sum().item()
        return scores.masked_fill(gone, -float("inf"))


class ProcessorList(list):
    def __call__(s, ids, scores, **kwargs):
        for processor in s:
            scores = processor(ids, scores, **kwargs)
        return scores


class MaxLength:
    def __init__(s, n):
        s.n = n

    def __call__(s, ids):
        return ids.shape[-1] >= s.n


class StopOn:
    def __init__(s, token):
        s.token = token

    def __call__(s, ids):
        return (ids[0, -1] == s.token).item()


@everyday((IDS, 2.0, 7), (IDS, 1.2, 6), (torch.tensor([[0]]), 1.5, 4))
def sampling(ids, penalty, longest):
    processors = ProcessorList([RepetitionPenalty(penalty)])
    processors.append(TopK(3))
    stops = [MaxLength(longest), StopOn(6)]
    while not any(stop(ids) for stop in stops):
        scores = processors(ids, MODEL(ids).logits[:, -1])
        token = torch.multinomial(scores.softmax(-1), 1)
        ids = torch.cat([ids, token], -1)
    print(ids.tolist(), processors[1].removed)
    return ids, processors[-1].removed


VOCAB = {word: i for i, word in enumerate(["<pad>", "<unk>", "the", "cat", "sat", "##s", "on", "."])}
WORDS = re.compile(r"\w+|[^\w\s]")


def pieces(word):
    if word in VOCAB:
        return [VOCAB[word]]
    for end in range(len(word) - 1, 0, -1):
        if (head := word[:end]) in VOCAB and f"##{word[end:]}" in VOCAB:
            return [VOCAB[head], VOCAB["##" + word[end:]]]
    return [VOCAB["<unk>"]]


@everyday((["The cat sat.", "Cats on"], random_tensor(0, 8, 3)), (["zebras sat on the cats ."], random_tensor(1, 8, 3)))
def tokenize(texts, table):
    ids = [[i for w in WORDS.findall(t.lower().strip()) for i in pieces(w)] for t in texts]
    longest = max(map(len, ids))
    batch = torch.tensor([row + [VOCAB["<pad>"]] * (longest - len(row)) for row in ids])
    mask = (batch != VOCAB["<pad>"]).long()
    h = F.embedding(batch, table)
    pooled = (h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    back = {i: w for w, i in VOCAB.items()}
    for row in batch:
        print(" ".join(back[i.item()] for i in row if i).replace(" ##", ""))
    return pooled, mask, ids


def iou(a, b):
    left = max(a[0], b[0])
    right = min(a[1], b[1])
    inter = max(0.0, right - left)
    return inter / ((a[1] - a[0]) + (b[1] - b[0]) - inter)


@everyday((random_tensor(0, 6), random_tensor(1, 6)), (random_tensor(2, 6), random_tensor(3, 6)))
def suppress_overlaps(starts, scores):
    boxes = torch.stack([starts, starts + 1.5], 1)
    per_class = collections.defaultdict(list)
    order = scores.argsort(descending=True).tolist()
    while order:
        best = order.pop(0)
        if scores[best] < -0.5:
            continue
        per_class[best % 2].append((best, round(scores[best].item(), 3)))
        order = [i for i in order if i % 2 != best % 2 or iou(boxes[best].tolist(), boxes[i].tolist()) < 0.3]
    print({k: len(v) for k, v in sorted(per_class.items())})
    kept = torch.tensor([i for k in sorted(per_class) for i, _ in per_class[k]], dtype=torch.long)
    return boxes[kept], dict(per_class)


class Detection(NamedTuple):
    box: torch.Tensor
    score: float
    label: str = "thing"


class Record(TypedDict, total=False):
    label: str
    scores: list


@everyday((random_tensor(0, 5, 4),), (random_tensor(5, 5, 4),))
def detections(x):
    found = [Detection(r[:2], r[2].sigmoid().item(), "cat" if r[3] > 0 else "dog") for r in x if r[2] > -1]
    best = max(found, key=lambda d: d.score)
    by_label: dict[str, Record] = {}
    for d in found:
        by_label.setdefault(d.label, Record(label=d.label, scores=[]))["scores"].append(d.score)
    print(best.label, f"{best.score:.3f}", len(by_label))
    return [d._replace(score=round(d.score, 2)) for d in found], by_label, best.box


Transition = collections.namedtuple("Transition", "state action reward")


class Replay:
    def __init__(s, capacity, seed):
        s.memory = collections.deque(maxlen=capacity)
        s.rng = random.Random(seed)

    def push(s, *args):
        s.memory.append(Transition(*args))

    def sample(s, n):
        return s.rng.sample(list(s.memory), n)

    def __len__(s):
        return len(s.memory)


@everyday((random_tensor(0, 6, 3),), (random_tensor(1, 6, 3),))
def replay(x):
    memory = Replay(4, 7)
    w = torch.zeros(3)
    for t, state in enumerate(x):
        action = int(state.argmax())
        reward = 1.0 if state[action].item() > 0.7 else -1.0
        memory.push(state, action, reward)
        if len(memory) < 3:
            continue
        batch = Transition(*zip(*memory.sample(2)))
        states = torch.stack(batch.state)
        rewards = torch.tensor(batch.reward)
        w = w + 0.1 * (rewards[:, None] * states).mean(0)
        if t == 4:
            print(batch.action, w.tolist())
    return w, len(memory), [m.action for m in memory.memory]


class Progress:
    def __init__(s, items, desc=""):
        s.items, s.desc, s.n, s.post = items, desc, 0, {}

    def __iter__(s):
        for item in s.items:
            yield item
            s.n += 1
            if s.n % 2 == 0:
                print(s.desc, s.n, "/", len(s.items), s.post)

    def set_postfix(s, **kwargs):
        s.post.update({k: f"{v:.3f}" for k, v in kwargs.items()})


@everyday((random_tensor(0, 5, 2),), (random_tensor(1, 5, 2),))
def progress(x):
    total = 0.0
    bar = Progress([*x], desc="eval")
    for i, row in enumerate(bar):
        total = total + row.sum()
        bar.set_postfix(total=total.item(), i=i)
    return total, bar.n, bar.post


@everyday((random_tensor(0, 3, 2),), (random_tensor(1, 3, 2),))
def csv_metrics(x):
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=["step", "loss"])
    writer.writeheader()
    for step, row in enumerate(x):
        loss = row.pow(2).mean()
        writer.writerow({"step": step, "loss": f"{loss.item():.4f}"})
        x = x - 0.1 * loss
    buffer.seek(0)
    rows = list(csv.DictReader(buffer))
    print(rows[-1])
    return x, [float(r["loss"]) for r in rows], buffer.getvalue()


def batches(data, size):
    it = iter(data)
    while chunk := list(itertools.islice(it, size)):
        yield chunk


def collate(items):
    longest = max(len(i) for i in items)
    padded = [F.pad(i, (0, longest - len(i))) for i in items]
    return torch.stack(padded), torch.tensor([len(i) for i in items])


@everyday((random_tensor(0, 9), [2, 3, 4]), (random_tensor(1, 9), [4, 1, 1, 3]))
def collating(x, sizes):
    parts = x.split(sizes)
    results = []
    for number, batch in enumerate(batches(parts, 2)):
        padded, lengths = collate(batch)
        mean = padded.sum(1) / lengths
        print(number, tuple(padded.shape), lengths.tolist(), f"{mean.max().item():.3f}")
        results.append(mean)
    return torch.cat(results)


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def structured(x):
    a = np.zeros(4, dtype=[("id", "i4"), ("v", "f4")])
    a["id"] = np.arange(4)
    a["v"] = x.numpy()
    a.sort(order="v")
    print(a["id"].tolist())
    return x[torch.from_numpy(a["id"].astype(np.int64))], float(a["v"].max())


@everyday(
    (random_tensor(0, 8, 3), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])),
    (random_tensor(1, 8, 3), torch.tensor([2] * 8)),
)
def confusion(logits, labels):
    matrix = [[0] * 3 for _ in range(3)]
    for p, t in zip(logits.argmax(1), labels):
        matrix[t][p] += 1
    rates = {}
    for c in range(3):
        total = sum(matrix[c])
        rates[f"class_{c}"] = matrix[c][c] / total if total else float("nan")
    print("\n".join(" ".join(f"{n:2d}" for n in row) for row in matrix))
    return torch.tensor(matrix), rates


@everyday((random_tensor(0, 5, 4), [1, 2, 1, 3]), (random_tensor(1, 5, 4), [3, 3]))
def edit_distance(logits, target):
    ids = [k for k, _ in itertools.groupby(logits.argmax(1).tolist()) if k != 0]
    rows = list(range(len(target) + 1))
    for i, a in enumerate(ids, 1):
        previous, rows[0] = rows[0], i
        for j, b in enumerate(target, 1):
            previous, rows[j] = rows[j], min(rows[j] + 1, rows[j - 1] + 1, previous + (a != b))
    print(ids, rows[-1])
    return logits.sum() * rows[-1], rows


def reset() -> None:
    """Make the state as it was in the beginning."""
    MODEL.load_state_dict(causal().state_dict())
