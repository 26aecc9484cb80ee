"""Programs of the zoo: layers with control flow inside, and samplers of images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bench.zoo.entries import Entry, Made


def _floats(*shape: int, scale: float = 1.0) -> Callable[[], list[tuple[Any, ...]]]:
    """Three calls with random floats."""

    def calls() -> list[tuple[Any, ...]]:
        drawn = torch.Generator().manual_seed(0)
        return [(torch.randn(shape, generator=drawn) * scale * (1 + n),) for n in range(3)]

    return calls


def _entmax(name: str, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        import entmax

        return Made(functools.partial(getattr(entmax, name), **options), _floats(3, 6), trains=True)

    return make


def _entmax_loss(name: str) -> Callable[[], Made]:
    def make() -> Made:
        import entmax

        targets = torch.tensor([0, 4, 2])
        return Made(lambda scores: getattr(entmax, name)(scores, targets), _floats(3, 6), trains=True)

    return make


class _Quantized(nn.Module):
    """A quantizer, without what its results cost where it says no cost."""

    def __init__(self, quantizer: nn.Module) -> None:
        super().__init__()
        self.quantizer = quantizer

    def forward(self, x: Tensor) -> Any:
        return self.quantizer(x)


def _quantizer(name: str, train: bool = True, trains: bool = True, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        import vector_quantize_pytorch

        quantizer = getattr(vector_quantize_pytorch, name)(**options).train(train)
        return Made(quantizer, _floats(2, 6, 4), trains=trains)

    return make


class _Spiking(nn.Module):
    """The network of snnTorch's tutorials: two layers of leaky neurons, stepped over time."""

    def __init__(self, reset: str) -> None:
        super().__init__()
        import snntorch

        self.fc1, self.fc2 = nn.Linear(4, 5), nn.Linear(5, 3)
        self.lif1 = snntorch.Leaky(beta=0.9, reset_mechanism=reset)
        self.lif2 = snntorch.Leaky(beta=0.8, learn_beta=True, reset_mechanism=reset)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
        spikes, potentials = [], []
        for step in range(x.size(0)):
            spk1, mem1 = self.lif1(self.fc1(x[step]), mem1)
            spk2, mem2 = self.lif2(self.fc2(spk1), mem2)
            spikes.append(spk2)
            potentials.append(mem2)
        return torch.stack(spikes), torch.stack(potentials)


def _spiking(reset: str) -> Callable[[], Made]:
    return lambda: Made(_Spiking(reset), _floats(4, 2, 4), trains=True)


def _diffusion(**options: Any) -> Callable[[], Made]:
    """Images that are drawn: no argument changes what is done."""

    def make() -> Made:
        from denoising_diffusion_pytorch import GaussianDiffusion, Unet

        net = Unet(dim=8, dim_mults=(1, 2), channels=1, flash_attn=False)
        diffusion = GaussianDiffusion(net, image_size=8, timesteps=4, **options)
        return Made(lambda: diffusion.sample(batch_size=1), lambda: [(), (), ()])

    return make


class _Denoiser(nn.Module):
    """A small model, and a scheduler's loop around it as diffusers' pipelines write it."""

    def __init__(self, scheduler: Any, steps: int) -> None:
        super().__init__()
        self.scheduler, self.steps = scheduler, steps
        self.net = nn.Conv2d(1, 1, 3, padding=1)

    @torch.no_grad()
    def forward(self, sample: Tensor) -> Tensor:
        self.scheduler.set_timesteps(self.steps)
        sample = sample * self.scheduler.init_noise_sigma
        for t in self.scheduler.timesteps:
            scaled = self.scheduler.scale_model_input(sample, t)
            sample = self.scheduler.step(self.net(scaled), t, sample).prev_sample
        return sample


def _scheduler(name: str, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        import diffusers

        scheduler = getattr(diffusers, f"{name}Scheduler")(num_train_timesteps=20, **options)
        return Made(_Denoiser(scheduler, 4), _floats(1, 1, 4, 4))

    return make


SIZES = {
    "image_size": 16, "patch_size": 4, "num_classes": 3,
    "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 16, "dim_head": 8,
}


def _vit() -> Made:
    from vit_pytorch import ViT

    return Made(ViT(**SIZES), _floats(2, 3, 16, 16), trains=True)


def _adaptive_vit() -> Made:
    from vit_pytorch.ats_vit import ViT

    return Made(ViT(**SIZES, max_tokens_per_depth=(8, 4)), _floats(2, 3, 16, 16))


def _native_resolution_vit() -> Made:
    from vit_pytorch.na_vit import NaViT

    model = NaViT(**SIZES, dropout=0.0, token_dropout_prob=None)

    def forward(wide: Tensor, high: Tensor) -> Tensor:
        found: Tensor = model([[wide, high]])
        return found

    def calls() -> list[tuple[Any, ...]]:
        return [(a[:, :8], b[:, :, :8]) for (a,), (b,) in zip(_floats(3, 16, 16)(), _floats(3, 16, 16)())]

    return Made(forward, calls)


SCHEDULERS = ("DDPM", "DDIM", "EulerDiscrete", "EulerAncestralDiscrete", "DPMSolverMultistep", "PNDM", "HeunDiscrete")

ENTRIES = (
    *(Entry(name, "entmax", _entmax(name)) for name in ("sparsemax", "entmax15", "entmax_bisect", "normmax_bisect")),
    Entry("sparsemax k", "entmax", _entmax("sparsemax", k=2)),
    *(Entry(name, "entmax", _entmax_loss(name)) for name in ("sparsemax_loss", "entmax15_loss", "entmax_bisect_loss")),
    Entry("vector quantize", "vector_quantize_pytorch", _quantizer("VectorQuantize", dim=4, codebook_size=5)),
    Entry(
        "vector quantize kmeans",
        "vector_quantize_pytorch",
        _quantizer("VectorQuantize", dim=4, codebook_size=5, kmeans_init=True, kmeans_iters=3),
    ),
    Entry(
        "vector quantize dead codes",
        "vector_quantize_pytorch",
        _quantizer("VectorQuantize", dim=4, codebook_size=5, threshold_ema_dead_code=2),
    ),
    Entry(
        "vector quantize eval",
        "vector_quantize_pytorch",
        _quantizer("VectorQuantize", train=False, trains=False, dim=4, codebook_size=5),
    ),
    Entry(
        "residual vq dropout",
        "vector_quantize_pytorch",
        _quantizer("ResidualVQ", dim=4, codebook_size=5, num_quantizers=3, quantize_dropout=True),
    ),
    Entry("fsq", "vector_quantize_pytorch", _quantizer("FSQ", levels=[5, 3, 4], dim=4)),
    Entry("lfq", "vector_quantize_pytorch", _quantizer("LFQ", codebook_size=8, dim=4)),
    Entry("leaky neurons", "snntorch", _spiking("subtract")),
    Entry("leaky neurons to zero", "snntorch", _spiking("zero")),
    Entry("gaussian diffusion", "denoising_diffusion_pytorch", _diffusion()),
    Entry("gaussian diffusion ddim", "denoising_diffusion_pytorch", _diffusion(sampling_timesteps=2)),
    *(Entry(f"scheduler {name}", "diffusers", _scheduler(name)) for name in SCHEDULERS),
    Entry("vit", "vit_pytorch", _vit),
    Entry("adaptive token vit", "vit_pytorch", _adaptive_vit),
    Entry("native resolution vit", "vit_pytorch", _native_resolution_vit),
)
