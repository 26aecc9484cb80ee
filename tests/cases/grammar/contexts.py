"""Context managers, the user's and torch's."""

import contextlib

import torch

from tests.cases.case import case
from tests.cases.tensors import f, ones


@contextlib.contextmanager
def _guard():
    yield 1


def S07_user_ctx_manager(x):
    with _guard():
        out = x + 1
    return out


case(S07_user_ctx_manager, [(f([1, 2]),), (f([3, 4]),)])


def S07b_fw_ctx_manager(x):
    with torch.no_grad():
        out = x + 1
    return out


case(S07b_fw_ctx_manager, [(f([1, 2]),), (f([3, 4]),)])


def S07c_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.matmul(x, x)
    return y.float()


case(S07c_autocast, [(ones(2, 2),), (ones(2, 2) * 2,)])
