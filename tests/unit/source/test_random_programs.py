"""Random programs do the same when they are rewritten: results, errors, calls and their order, and state."""
from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.source.run_programs import check, write


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2 ** 40))
def test_a_random_function(seed: int) -> None:
    check(write(seed))


@settings(max_examples=75, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2 ** 40))
def test_a_random_generator(seed: int) -> None:
    check(write(seed, generator=True))
