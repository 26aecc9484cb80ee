"""Shape join: what a branch or loop may do to the shape of what it leaves."""

import torch
from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, i32, ones

I0 = i32(0)  # the same tensor for two arguments of one call: an alias that nothing depends on


class M08_shape_change_in_while(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y, i):
        out = x
        while i < 3:
            if x + i < y:
                out = out + x
            else:
                out = out + y
            out = out + 1
            out = torch.unsqueeze(out, -1)
            i = i + 1
        return out


case(
    M08_shape_change_in_while,
    [(I0, i32(1), I0), (i32(-1), i32(4), i32(1))],
    export_refused="Shape Join Failed",
    capture_refused="Shape Join Failed",
)


def M09a_join_same(p, a, b):
    if p > 0:
        out = a * 1
    else:
        out = b * 1
    return out + 1


case(M09a_join_same, [(f(1.0), ones(3, 4), 2 * ones(3, 4)), (f(-1.0), ones(3, 4), 2 * ones(3, 4))])


def M09b_join_35_34(p, a, b):
    if p > 0:
        out = a * 1
    else:
        out = b * 1
    return out + 1


case(M09b_join_35_34, [(f(1.0), ones(3, 5), 2 * ones(3, 4)), (f(-1.0), ones(3, 5), 2 * ones(3, 4))])


def M09c_join_34_341(p, a, b):
    if p > 0:
        out = a * 1
    else:
        out = b * 1
    return out + 1


case(
    M09c_join_34_341,
    [(f(1.0), ones(3, 4), 2 * ones(3, 4, 1)), (f(-1.0), ones(3, 4), 2 * ones(3, 4, 1))],
    export_refused="Shape Join Failed",
)


def M09d_join_3u_34(p, a, b):
    if p > 0:
        out = a * 1
    else:
        out = b * 1
    return out + 1


case(
    M09d_join_3u_34,
    [(f(1.0), ones(3, 4), 2 * ones(3, 4)), (f(-1.0), ones(3, 4), 2 * ones(3, 4))],
    input_dims=[[], [3, None], [3, 4]],
)


def M09f_join_3u_3uu(p, a, b):
    if p > 0:
        out = a * 1
    else:
        out = b * 1
    return out + 1


case(
    M09f_join_3u_3uu,
    [(f(1.0), ones(3, 4), 2 * ones(3, 4, 5)), (f(-1.0), ones(3, 4), 2 * ones(3, 4, 5))],
    input_dims=[[], [3, None], [3, None, None]],
    export_refused="unknown rank",
)


def M09g_join_3u_4uu(p, a, b):
    if p > 0:
        out = a * 1
    else:
        out = b * 1
    return out + 1


case(
    M09g_join_3u_4uu,
    [(f(1.0), ones(3, 4), 2 * ones(4, 4, 5)), (f(-1.0), ones(3, 4), 2 * ones(4, 4, 5))],
    input_dims=[[], [3, None], [4, None, None]],
    export_refused="Shape Join Failed",
)


def M09h_join_3u_34u(p, a, b):
    if p > 0:
        out = a * 1
    else:
        out = b * 1
    return out + 1


case(
    M09h_join_3u_34u,
    [(f(1.0), ones(3, 4), 2 * ones(3, 4, 5)), (f(-1.0), ones(3, 4), 2 * ones(3, 4, 5))],
    input_dims=[[], [3, None], [3, 4, None]],
    export_refused="unknown rank",
)
