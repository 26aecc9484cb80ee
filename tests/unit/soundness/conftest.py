"""What these tests change of the Python world is put back after each of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch


@pytest.fixture(autouse=True)
def _the_world_is_put_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    environment, modules = dict(os.environ), set(sys.modules)
    grad, dtype, threads = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()
    deterministic, precision = torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()
    benchmark, limit, shown = torch.backends.cudnn.benchmark, sys.getrecursionlimit(), np.get_printoptions()
    yield
    monkeypatch.undo()
    os.environ.clear()
    os.environ.update(environment)
    for name in [name for name in sys.modules if "stillgraph_test" in name and name not in modules]:
        del sys.modules[name]
    torch.set_grad_enabled(grad)
    torch.set_default_dtype(dtype)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.benchmark = benchmark
    sys.setrecursionlimit(limit)
    np.set_printoptions(**shown)
