"""Programs of the zoo: solvers of differential equations, minimizers, and optimal transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bench.zoo.entries import Entry, Made


class _Field(nn.Module):
    """A small vector field that counts nothing and keeps nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        return self.net(y) * (1 + t)  # type: ignore[no-any-return]


class _Solved(nn.Module):
    """A neural differential equation."""

    def __init__(self, method: str, **options: Any) -> None:
        super().__init__()
        self.field = _Field()
        self.method, self.options = method, options

    def forward(self, y: Tensor, t: Tensor) -> Tensor:
        from torchdiffeq import odeint

        found: Tensor = odeint(self.field, y, t, method=self.method, **self.options)
        return found


class _Adjoint(_Solved):
    """The same, with gradients that another differential equation gives."""

    def forward(self, y: Tensor, t: Tensor) -> Tensor:
        from torchdiffeq import odeint_adjoint

        found: Tensor = odeint_adjoint(self.field, y, t, method=self.method, **self.options)
        return found


class _Bounce(nn.Module):
    """A ball that falls until it touches the ground."""

    def forward(self, t: Tensor, state: Tensor) -> Tensor:
        return torch.stack([state[1], torch.full_like(state[1], -9.81)])

    def fallen(self, y: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        from torchdiffeq import odeint_event

        when, states = odeint_event(self, y, t, event_fn=lambda _, state: state[0], method="dopri5")
        return when, states[-1]


def _starts() -> list[tuple[Any, ...]]:
    ends = torch.tensor([0.0, 0.5, 1.0])
    drawn = torch.Generator().manual_seed(0)
    made = [(torch.randn(3, 2, generator=drawn) * (1 + 3 * n), ends * (1 + n)) for n in range(3)]
    return [*made, (made[0][0], ends.flip(0))]


def _odeint(method: str, **options: Any) -> Callable[[], Made]:
    return lambda: Made(_Solved(method, **options), _starts, trains=True)


def _odeint_adjoint() -> Made:
    return Made(_Adjoint("dopri5"), _starts, trains=True)


def _odeint_event() -> Made:
    heights = (1.0, 5.0, 20.0)
    return Made(_Bounce().fallen, lambda: [(torch.tensor([height, 0.0]), torch.tensor(0.0)) for height in heights])


class _Noisy(nn.Module):
    """A stochastic differential equation with diagonal noise."""

    noise_type, sde_type = "diagonal", "ito"

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.drift, self.options = nn.Linear(2, 2), options

    def f(self, t: Tensor, y: Tensor) -> Tensor:
        return self.drift(y).tanh() * (1 + t)  # type: ignore[no-any-return]

    def g(self, t: Tensor, y: Tensor) -> Tensor:
        return 0.1 * y.sigmoid()

    def forward(self, y: Tensor, t: Tensor) -> Tensor:
        from torchsde import BrownianInterval, sdeint

        noise = BrownianInterval(0.0, 4.0, size=(3, 2), entropy=7, levy_area_approximation="space-time")
        found: Tensor = sdeint(self, y, t.detach(), bm=noise, dt=0.25, **self.options)
        return found


def _sdeint(**options: Any) -> Callable[[], Made]:
    return lambda: Made(_Noisy(**options), lambda: _starts()[:3], trains=True)


class _Controlled(nn.Module):
    """A neural controlled differential equation along a path through samples."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 8)

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        return self.net(z).tanh().view(*z.shape, 2)  # type: ignore[no-any-return]


class _Along(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.field = _Controlled()

    def forward(self, samples: Tensor, z: Tensor) -> Tensor:
        import torchcde

        path = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(samples))
        found: Tensor = torchcde.cdeint(X=path, func=self.field, z0=z, t=path.interval, adjoint=False, method="rk4")
        return found


def _cdeint() -> Made:
    def calls() -> list[tuple[Any, ...]]:
        drawn = torch.Generator().manual_seed(0)
        samples = [torch.randn(3, 5, 2, generator=drawn) for _ in range(2)]
        samples[1][0, 2:4] = torch.nan  # which are missing
        return [(each.cumsum(1), torch.ones(3, 4)) for each in samples]

    return Made(_Along(), calls, trains=True)


def _valley(x: Tensor) -> Tensor:
    """Rosenbrock's function, as a user writes it."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _points() -> list[tuple[Any, ...]]:
    return [(torch.tensor(point, dtype=torch.float64),) for point in ([-1.0, 1.0], [1.0, 1.1], [3.0, -2.0])]


def _minimized(method: str) -> Callable[[], Made]:
    def found(x: Tensor) -> tuple[Any, ...]:
        from torchmin import minimize

        result = minimize(_valley, x, method=method, max_iter=60)
        return result.x, result.fun, result.nit, bool(result.success)

    return lambda: Made(found, _points)


def _least_squares() -> Made:
    def found(x: Tensor) -> tuple[Any, ...]:
        from torchmin import least_squares

        result = least_squares(lambda v: torch.stack([10 * (v[1] - v[0] ** 2), 1 - v[0]]), x, max_nfev=20)
        return result.x, result.cost

    return Made(found, _points)


def _sinkhorn() -> Made:
    def transported(x: Tensor, y: Tensor) -> Any:
        import ot

        return ot.sinkhorn(torch.full((4,), 0.25), torch.full((5,), 0.2), ot.dist(x, y), reg=1.0, numItermax=200)

    def calls() -> list[tuple[Any, ...]]:
        drawn = torch.Generator().manual_seed(0)
        return [(torch.randn(4, 2, generator=drawn) * n, torch.randn(5, 2, generator=drawn)) for n in (1, 0.2, 2)]

    return Made(transported, calls)


FIXED = ("euler", "midpoint", "heun3", "rk4", "explicit_adams", "implicit_adams")
ADAPTIVE = ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")
MINIMIZERS = ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "trust-ncg")

ENTRIES = (
    *(Entry(f"odeint {method}", "torchdiffeq", _odeint(method)) for method in FIXED),
    *(Entry(f"odeint {method}", "torchdiffeq", _odeint(method, rtol=1e-4, atol=1e-5)) for method in ADAPTIVE),
    Entry("odeint_adjoint", "torchdiffeq", _odeint_adjoint),
    Entry("odeint_event", "torchdiffeq", _odeint_event),
    *(Entry(f"sdeint {method}", "torchsde", _sdeint(method=method)) for method in ("euler", "milstein", "srk")),
    Entry("sdeint adaptive", "torchsde", _sdeint(method="milstein", adaptive=True)),
    Entry("cdeint", "torchcde", _cdeint),
    *(Entry(f"minimize {method}", "torchmin", _minimized(method)) for method in MINIMIZERS),
    Entry("least_squares", "torchmin", _least_squares),
    Entry("sinkhorn", "ot", _sinkhorn),
)
