"""The models by name, each with what it is saved for and what its file is called with."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

import stillgraph as sg
from tests.e2e.shipping import detection, numerics, routing, speech, text
from tests.e2e.shipping.model import Arguments, Model, normal, tokens

_GROWS = {"aoti": "SG402"}  # a loop carries a tensor or a list that grows
_TOKENS = sg.InputSpec([None, None], torch.int64)
_TEXTS = sg.InputSpec([sg.Dim("batch"), sg.Dim("length")], torch.int64)


def _prompt(seed: int, batch: int, length: int) -> Arguments:
    return (tokens(seed, batch, length, text.VOCABULARY),)


def _text(seed: int, *lengths: int) -> Arguments:
    """Texts of several lengths, filled up, and the mask that says so."""
    (ids,) = _prompt(seed, len(lengths), max(lengths))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return ids.masked_fill(~mask, text.PAD), mask.long()


def _speech(seed: int, frames: int, scale: float = 1.0) -> Arguments:
    return (scale * normal(seed, frames, speech.FEATURES),)


def _photographs(seed: int, width: int, scale: float) -> Arguments:
    """Two images, one of which is narrower; both have a size in pixels that boxes are given in."""
    mask = torch.ones(2, 32, width, dtype=torch.long)
    mask[1, :, width - 8 :] = 0
    sizes = torch.tensor([[120.0, 200.0], [300.0, 150.0 + seed]])
    return scale * normal(seed, 2, 3, 32, width), mask, sizes


def _clouds(seed: int, count: int, spread: float) -> Arguments:
    """Points around three places, and four centres to begin with, of which one is far from all of them."""
    points = spread * normal(seed, count, 2) + normal(seed + 100, 3, 2).repeat(count, 1)[:count]
    return points, torch.cat([points[:3], torch.tensor([[50.0, 50.0]])])


def _fields(seed: int, batch: int, end: float) -> Arguments:
    return normal(seed, batch, 3).double(), torch.tensor(end)


def _words(seed: int, batch: int, length: int) -> Arguments:
    return (normal(seed, batch, length, 16),)


def _samples(seed: int, count: int, scale: float) -> Arguments:
    return (scale * normal(seed, count, 16),)


def _silence(frames: int) -> Tensor:
    return torch.zeros(frames, speech.FEATURES)


MODELS: Mapping[str, Model] = {
    "gpt2_greedy": Model(
        "GPT-2, greedy, a text that grows",
        lambda: text.Greedy(text.gpt2(), eos=51, max_length=24),
        _prompt(0, 2, 3),
        (_prompt(1, 2, 4), _prompt(2, 3, 9), _prompt(3, 4, 6), _prompt(5, 2, 24)),
        [_TOKENS],
        _GROWS,
    ),
    "gpt2_greedy_cached": Model(
        "GPT-2, greedy, static cache",
        lambda: text.CachedGreedy(text.gpt2(), eos=51, max_length=24),
        _prompt(0, 2, 3),
        (_prompt(1, 2, 4), _prompt(2, 3, 9), _prompt(3, 4, 6)),
        [_TOKENS],
    ),
    **{
        f"{name}_generate": Model(
            f"{title}, `generate()`",
            lambda model=model: text.Generated(model()),
            _prompt(0, 2, 5),
            (_prompt(1, 2, 5), _prompt(2, 3, 7), _prompt(3, 4, 2), _prompt(4, 1, 11)),
            [_TOKENS],
            _GROWS,
            ("py",),
        )
        for name, title, model in (("gpt2", "GPT-2", lambda: text.gpt2("sdpa")), ("llama", "Llama", text.llama))
    },
    "gpt2_beam": Model(
        "GPT-2, beam search, a text that grows",
        lambda: text.Beam(text.gpt2(), eos=7, max_length=20),
        _prompt(0, 1, 3),
        (_prompt(1, 1, 4), _prompt(2, 1, 5), _prompt(3, 1, 6), _prompt(4, 1, 12)),
        [sg.InputSpec([1, None], torch.int64)],
        _GROWS,
    ),
    "gpt2_beam_cached": Model(
        "GPT-2, beam search, static cache",
        lambda: text.CachedBeam(text.gpt2(), eos=7, max_length=20),
        _prompt(0, 1, 3),
        (_prompt(1, 1, 4), _prompt(2, 1, 5), _prompt(3, 1, 6), _prompt(4, 1, 12)),
        [sg.InputSpec([1, None], torch.int64)],
    ),
    "t5_greedy": Model(
        "T5, greedy",
        lambda: text.Translator(text.t5(), eos=16, max_length=6),
        _text(0, 5, 3),
        (_text(1, 4, 4), _text(2, 3, 9, 6), _text(3, 7, 2)),
        [_TEXTS, _TEXTS],
        _GROWS,
    ),
    "whisper_greedy": Model(
        "Whisper, greedy",
        lambda: text.Transcriber(text.whisper(), eos=47, max_length=12),
        (normal(0, 1, 8, 40), torch.tensor([3, 4])),
        (
            (normal(1, 1, 8, 40), torch.tensor([3, 4, 47])),
            (normal(2, 1, 8, 40), torch.tensor([7, 5, 6, 8])),
            (normal(3, 1, 8, 40), torch.tensor([42, 59])),
        ),
        [None, sg.InputSpec([None], torch.int64)],
        _GROWS,
    ),
    **{
        f"transducer_{kind}": Model(
            f"RNN-T, greedy, {kind} encoder",
            lambda encoder=encoder: speech.Transducer(encoder()),
            _speech(0, 6),
            (_speech(1, 9), _speech(2, 14, 0.3), _speech(3, 4, 3.0), (_silence(5),)),
            [sg.InputSpec([None, speech.FEATURES])],
            refused,
        )
        for kind, encoder, refused in (
            ("convolutional", speech.Convolutional, _GROWS),
            ("recurrent", speech.Recurrent, _GROWS),
        )
    },
    "ctc": Model(
        "CTC, frame by frame",
        speech.Acoustic,
        _speech(0, 6),
        (_speech(1, 9), _speech(2, 14), _speech(3, 4, 0.1), (_silence(5),)),
        [sg.InputSpec([None, speech.FEATURES])],
        _GROWS,
    ),
    "ctc_batch": Model(
        "CTC, a batch of several lengths",
        speech.BatchedAcoustic,
        (normal(0, 3, 6, speech.FEATURES), torch.tensor([6, 2, 4])),
        (
            (normal(1, 3, 9, speech.FEATURES), torch.tensor([1, 9, 7])),
            (normal(2, 2, 5, speech.FEATURES), torch.tensor([5, 5])),
            (torch.zeros(4, 3, speech.FEATURES), torch.tensor([3, 1, 2, 3])),
        ),
        [sg.InputSpec([None, None, speech.FEATURES]), sg.InputSpec([None], torch.int64)],
    ),
    "nms": Model(
        "convolutional detector with non-maximum suppression",
        detection.Detector,
        (2 * normal(1, 3, 20, 24),),
        ((normal(0, 3, 16, 20),), (3 * normal(2, 3, 24, 17),), (4 * normal(3, 3, 28, 33),), (0 * normal(4, 3, 9, 9),)),
        [sg.InputSpec([3, None, None])],
        _GROWS,
    ),
    "detr": Model(
        "DETR with its threshold",
        lambda: detection.Detr(sure=0.92),
        _photographs(0, 32, 1.0),
        (_photographs(1, 40, 2.0), _photographs(2, 48, 0.5), _photographs(3, 32, 3.0)),
        [sg.InputSpec([2, 3, 32, None]), sg.InputSpec([2, 32, None], torch.int64), None],
    ),
    "ode": Model(
        "neural ODE, adaptive step",
        lambda: numerics.Field().double(),
        _fields(0, 2, 1.0),
        (_fields(1, 2, 3.0), _fields(2, 5, 5.0), _fields(3, 3, 0.05), _fields(4, 2, 0.0)),
        [sg.InputSpec([None, 3], torch.float64), None],
        _GROWS,
    ),
    "kmeans": Model(
        "k-means until nothing moves",
        lambda: numerics.kmeans,
        _clouds(0, 20, 0.5),
        (_clouds(1, 30, 0.1), _clouds(2, 9, 2.0), _clouds(3, 50, 1.0)),
        [sg.InputSpec([None, 2]), None],
    ),
    "early_exit": Model(
        "early exit",
        routing.EarlyExit,
        _samples(0, 3, 0.1),
        (_samples(1, 4, 2.0), _samples(2, 5, 6.0), _samples(3, 2, 20.0), _samples(4, 7, 1.0)),
        [sg.InputSpec([None, 16])],
    ),
    "experts": Model(
        "mixture of experts",
        routing.Experts,
        _words(0, 2, 4),
        (_words(1, 2, 7), _words(2, 3, 2), (normal(3, 16).repeat(2, 3, 1),)),
        [sg.InputSpec([None, None, 16])],
    ),
}
