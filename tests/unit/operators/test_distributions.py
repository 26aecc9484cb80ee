"""`torch.distributions`: with the checks of their arguments, which the run does, and what they keep once computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributions as D
from torch import Tensor, nn

import stillgraph as sg
from tests.sampling import crossed
from tests.unit.trace.agreement import agree, agree_fresh

X = torch.tensor([0.3, -1.0, 2.0])
INVALID = torch.tensor([float("nan"), 1.0, 2.0])
CALLS = (X, X / 2, INVALID, X.clone().requires_grad_())


def sampled_categories(x: Tensor) -> Any:
    actions = D.Categorical(logits=x)
    action = actions.sample()
    return action, actions.log_prob(action), actions.entropy()


def probabilities(x: Tensor) -> Any:
    actions = D.Categorical(probs=x.softmax(-1))
    return actions.log_prob(actions.sample()), actions.logits, actions.mean, actions.mode


def several_variables(x: Tensor) -> Any:
    joint = D.MultivariateNormal(x, torch.eye(3) * (1 + x.abs().sum()))
    return joint.rsample(), joint.log_prob(x), joint.entropy()


def transformed(x: Tensor) -> Any:
    squashed = D.TransformedDistribution(D.Normal(x, x.exp()), [D.TanhTransform(cache_size=1)])
    action = squashed.rsample()
    return action, squashed.log_prob(action)


def mixed(x: Tensor) -> Any:
    mixture = D.MixtureSameFamily(D.Categorical(logits=x), D.Normal(x, x.exp()))
    return mixture.sample(), mixture.log_prob(x[0])


def handled(x: Tensor) -> Tensor:
    try:
        return D.Normal(x, x).rsample()
    except ValueError:
        return x * 0


def in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return D.Normal(x, x.exp()).rsample()
    return x


def kept_in_an_arm(x: Tensor) -> Any:
    actions = D.Categorical(logits=x)
    first = actions.probs * 2 if x.sum() > 1 else actions.probs
    return first, actions.probs


def in_a_loop(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for _ in range(int(x.abs().sum())):
        total = total + D.Normal(x, x.exp()).sample()
    return total


def outside_the_support(x: Tensor) -> Tensor:
    return D.Categorical(logits=x).log_prob(torch.tensor(7))


def as_text(x: Tensor) -> str:
    print(D.Normal(x, x.exp()), repr(D.Independent(D.Normal(x, x.exp()), 1)))
    return str(D.Normal(x, x.exp())) + "!"


def no_divergence(x: Tensor) -> Tensor:
    return D.kl_divergence(D.Normal(x, x.exp()), D.Categorical(logits=x))


class _Shifted(D.Distribution):
    arg_constraints = {"loc": D.constraints.real}  # noqa: RUF012  # as torch spells it
    support = D.constraints.real

    def __init__(self, loc: Tensor, validate_args: bool | None = None) -> None:
        self.loc = loc
        super().__init__(loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc if self.loc.sum() > 0 else -self.loc

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + torch.randn(self._extended_shape(torch.Size(sample_shape)))


def of_a_class_of_ones_own(x: Tensor) -> Any:
    own = _Shifted(x)
    return own.rsample(), own.mean, own.sample()


FUNCTIONS: list[Callable[..., Any]] = [
    lambda x: D.Normal(x, x.exp()).rsample(),
    lambda x: D.Normal(0.0, 1.0).log_prob(x),
    lambda x: D.Normal(x, x.exp()),
    lambda x: D.Normal(x, x.exp()).expand((2, 3)).sample((4,)),
    lambda x: D.Independent(D.Bernoulli(logits=x), 1).log_prob((x > 0).float()),
    lambda x: D.kl_divergence(D.Normal(x, x.exp()), D.Normal(torch.zeros(3), torch.ones(3))),
    lambda x: D.kl_divergence(D.Categorical(logits=x), D.Categorical(logits=-x)),
    lambda x: D.OneHotCategoricalStraightThrough(logits=x).rsample(),
    lambda x: D.Beta(x.exp(), x.exp()).log_prob(x.sigmoid()),
    lambda x: D.Normal(x, -1.0).sample(),
    sampled_categories,
    probabilities,
    several_variables,
    transformed,
    mixed,
    handled,
    in_an_arm,
    kept_in_an_arm,
    in_a_loop,
    outside_the_support,
    as_text,
    no_divergence,
    of_a_class_of_ones_own,
]


@pytest.fixture
def _checks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether arguments are checked by default: until Dynamo is imported, which switches that off."""
    before = D.Distribution._validate_args
    D.Distribution.set_default_validate_args(request.param)
    yield
    D.Distribution.set_default_validate_args(before)


@pytest.mark.usefixtures("_checks")
@pytest.mark.parametrize(
    ("function", "_checks"),
    crossed(FUNCTIONS, [True, False]),
    indirect=["_checks"],
    ids=lambda each: {True: "checked", False: "unchecked"}.get(each),
)
def test_made_inside(function: Callable[..., Any]) -> None:
    agree(function, *CALLS, programs=2)


def test_of_a_size_that_is_declared_unknown() -> None:
    spec = [sg.InputSpec([None])]
    agree(lambda x: D.Normal(x, x.exp()).log_prob(x[0]).sum(), X, torch.rand(5), INVALID, input_spec=spec)


class _Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = nn.Linear(3, 4), nn.Linear(3, 1)

    def forward(self, x: Tensor, action: Tensor | None = None) -> Any:
        actions = D.Categorical(logits=self.actor(x))
        if action is None:
            action = actions.sample()
        return action, actions.log_prob(action), actions.entropy(), self.critic(x)


class _Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(3, 4), nn.Linear(2, 3)
        self.prior = D.Normal(torch.zeros(2), torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        mean, scale = self.encoder(x).chunk(2, -1)
        posterior = D.Normal(mean, scale.exp())
        pixels = D.Independent(D.Bernoulli(logits=self.decoder(posterior.rsample())), 1)
        return D.kl_divergence(posterior, self.prior).sum() - pixels.log_prob((x > 0).float())


@pytest.mark.parametrize("kind", [_Policy, _Autoencoder])
def test_in_a_module(kind: Any) -> None:
    agree_fresh(kind, *CALLS, programs=2)


def from_outside() -> Callable[[Tensor], Any]:
    actions = D.Categorical(probs=torch.tensor([0.2, 0.3, 0.5]))
    return lambda x: (actions.logits + x, actions.sample())


def from_outside_only_read() -> Callable[[Tensor], Any]:
    actions = D.Categorical(probs=torch.tensor([0.2, 0.3, 0.5]))
    return lambda x: actions.logits + x


@pytest.mark.parametrize("make", [from_outside, from_outside_only_read])
def test_what_one_from_outside_keeps(make: Callable[[], Any]) -> None:
    agree_fresh(make, X, X * 2, X * 3, programs=2)
