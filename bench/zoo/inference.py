"""Programs of the zoo: Gaussian processes, samplers, optimal transport, and measures of quality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bench.zoo.entries import Entry, Made


def _drawn() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _matrix(condition: float, size: int = 12) -> Tensor:
    """A symmetric positive definite matrix. Solvers take more steps the larger `condition` is."""
    basis, _ = torch.linalg.qr(torch.randn(size, size, generator=_drawn()))
    return basis @ torch.diag(torch.linspace(1, condition, size)) @ basis.T


def _linear_cg() -> Made:
    from linear_operator.utils.linear_cg import linear_cg

    def solve(matrix: Tensor, rhs: Tensor) -> Tensor:
        found: Tensor = linear_cg(matrix.matmul, rhs, tolerance=1e-3, max_iter=40, max_tridiag_iter=5)
        return found

    rhs = torch.randn(12, 2, generator=_drawn())
    return Made(solve, lambda: [(_matrix(20.0), rhs.clone()), (_matrix(900.0), rhs.clone()), (_matrix(1.0), 0 * rhs)])


def _lanczos() -> Made:
    from linear_operator.utils.lanczos import lanczos_tridiag

    def tridiagonal(matrix: Tensor, start: Tensor) -> Any:
        return lanczos_tridiag(matrix.matmul, 6, matrix.dtype, matrix.device, matrix.shape, init_vecs=start)

    start = torch.randn(12, 1, generator=_drawn())
    return Made(tridiagonal, lambda: [(_matrix(n), start.clone()) for n in (20.0, 1.5, 1e4)])


def _process() -> nn.Module:
    import gpytorch

    class Regression(gpytorch.models.ExactGP):  # type: ignore[misc, name-defined]  # no types are shipped
        def __init__(self, x: Tensor, y: Tensor) -> None:
            super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean = gpytorch.means.ConstantMean()
            self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))

    x = torch.linspace(0, 1, 8)
    return Regression(x, torch.sin(6 * x))


def _predicted() -> Made:
    model: Any = _process().eval()

    def predict(x: Tensor) -> tuple[Tensor, Tensor]:
        found = model.likelihood(model(x))
        return found.mean, found.variance

    return Made(predict, lambda: [(torch.linspace(n, n + 1, 5),) for n in range(3)])


def _likelihood() -> Made:
    import gpytorch

    model: Any = _process().train()
    measure = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

    def loss(targets: Tensor) -> Tensor:
        found: Tensor = -measure(model(model.train_inputs[0]), targets)
        return found

    calls = [(torch.sin(torch.arange(8.0) * n),) for n in range(1, 4)]
    return Made(loss, lambda: calls, trains=True, parameters=tuple(model.parameters()))


def _surrogate() -> Any:
    from botorch.models import SingleTaskGP

    x = torch.rand(6, 2, generator=_drawn(), dtype=torch.double)
    return SingleTaskGP(x, torch.sin(x.sum(1, keepdim=True) * 3)).eval()


def _acquisition() -> Made:
    from botorch.acquisition import LogExpectedImprovement

    return Made(
        LogExpectedImprovement(_surrogate(), best_f=0.2),
        lambda: [(torch.rand(4, 1, 2, dtype=torch.double, generator=_drawn()) * n,) for n in range(1, 4)],
    )


def _ascent() -> Made:
    from botorch.acquisition import UpperConfidenceBound
    from botorch.generation import gen_candidates_torch

    acquisition = UpperConfidenceBound(_surrogate(), beta=0.1)

    def candidates(starts: Tensor) -> Any:
        return gen_candidates_torch(starts, acquisition, 0.0, 1.0, options={"maxiter": 5})

    return Made(candidates, lambda: [(torch.full((2, 1, 2), n / 4, dtype=torch.double),) for n in range(1, 4)])


def _hmc() -> Made:
    import pyro
    import pyro.distributions as dist
    from pyro.infer import HMC

    data = torch.tensor([0.2, 1.1, 0.7])

    def model() -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with pyro.plate("data", 3):
            pyro.sample("seen", dist.Normal(mean, 0.5), obs=data)

    kernel = HMC(model, step_size=0.3, num_steps=4, adapt_step_size=False, adapt_mass_matrix=False)
    kernel.setup(0)

    def transition(mean: Tensor) -> Tensor:
        found: Tensor = kernel.sample({"mean": mean})["mean"]
        return found

    return Made(transition, lambda: [(torch.tensor(float(n)),) for n in range(5)])


def _svi() -> Made:
    import pyro
    import pyro.distributions as dist
    from pyro.infer import Trace_ELBO

    def model(data: Tensor) -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with pyro.plate("data", 3):
            pyro.sample("seen", dist.Normal(mean, 0.5), obs=data)

    def guide(data: Tensor) -> None:
        where = pyro.param("where", torch.tensor(0.3))
        spread = pyro.param("spread", torch.tensor(0.5), constraint=dist.constraints.positive)
        pyro.sample("mean", dist.Normal(where, spread))

    pyro.clear_param_store()
    elbo = Trace_ELBO()
    elbo.loss(model, guide, torch.zeros(3))

    def loss(data: Tensor) -> Tensor:
        found: Tensor = elbo.differentiable_loss(model, guide, data)
        return found

    return Made(loss, lambda: [(torch.randn(3, generator=_drawn()) * n,) for n in range(1, 4)])


def _von_mises() -> Made:
    def angles(where: Tensor, concentration: Tensor) -> Tensor:
        return torch.distributions.VonMises(where, concentration).sample((4,))

    return Made(angles, lambda: [(torch.zeros(3), torch.tensor([0.1, 1.0, 9.0]) * n) for n in range(1, 4)])


def _sinkhorn(**options: Any) -> Callable[[], Made]:
    def make() -> Made:
        from geomloss import SamplesLoss

        def clouds() -> list[tuple[Any, ...]]:
            drawn = _drawn()
            return [(torch.randn(5, 2, generator=drawn) * n, torch.randn(6, 2, generator=drawn)) for n in range(1, 4)]

        return Made(SamplesLoss(backend="tensorized", **options), clouds, trains=True)

    return make


def _measured(name: str, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        import torchmetrics.functional as measures

        def measure(scores: Tensor, targets: Tensor) -> Any:
            return getattr(measures, name)(scores, targets, **options)

        def calls() -> list[tuple[Any, ...]]:
            drawn = _drawn()
            known = [(torch.rand(8, generator=drawn), torch.rand(8, generator=drawn) > 0.5) for _ in range(2)]
            logits = torch.randn(8, generator=drawn) * 4
            return [*known, (logits, torch.arange(8) > 4), (logits, torch.zeros(8, dtype=torch.bool))]

        return Made(measure, lambda: [(scores, targets.long()) for scores, targets in calls()])

    return make


ENTRIES = (
    Entry("linear_cg", "linear_operator", _linear_cg),
    Entry("lanczos", "linear_operator", _lanczos),
    Entry("ExactGP predicts", "gpytorch", _predicted),
    Entry("ExactGP likelihood", "gpytorch", _likelihood),
    Entry("LogExpectedImprovement", "botorch", _acquisition),
    Entry("gen_candidates_torch", "botorch", _ascent),
    Entry("HMC", "pyro", _hmc),
    Entry("Trace_ELBO", "pyro", _svi),
    Entry("VonMises", "torch", _von_mises),
    Entry("Sinkhorn", "geomloss", _sinkhorn(loss="sinkhorn", p=2, blur=0.05, scaling=0.5)),
    Entry("Sinkhorn unbalanced", "geomloss", _sinkhorn(loss="sinkhorn", p=1, blur=0.1, reach=0.5, diameter=4.0)),
    Entry("AUROC", "torchmetrics", _measured("auroc", task="binary")),
    Entry("AUROC up to a rate", "torchmetrics", _measured("auroc", task="binary", max_fpr=0.5)),
    Entry("average precision", "torchmetrics", _measured("average_precision", task="binary")),
    Entry("retrieval NDCG", "torchmetrics", _measured("retrieval_normalized_dcg")),
    Entry("retrieval MRR", "torchmetrics", _measured("retrieval_reciprocal_rank")),
)
