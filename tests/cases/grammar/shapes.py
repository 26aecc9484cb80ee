"""Sizes as Python numbers, known and symbolic."""

from tests.cases.case import case
from tests.cases.tensors import f, i64, ones


def A22_shape_return(x):
    return x.shape[0]


case(A22_shape_return, [(ones(2, 3),), (ones(4, 3),)], shapes_vary=True)


def A22b_shape_arith(x):
    return x * x.shape[0]


case(A22b_shape_arith, [(ones(2, 3),), (ones(4, 3),)], shapes_vary=True)


def A22c_shape_branch_dyn(x):
    if x.shape[0] > 3:
        out = x.sum()
    else:
        out = x.mean() * 2
    return out


case(A22c_shape_branch_dyn, [(ones(2, 3),), (ones(5, 3),)], shapes_vary=True, input_dims=[[None, 3]])


def A22d_shape_loop_dyn(x):
    s = x[0] * 0
    for i in range(x.shape[0]):
        s = s + x[i] * i
    return s


case(A22d_shape_loop_dyn, [(ones(2, 3),), (ones(5, 3),)], shapes_vary=True, input_dims=[[None, 3]])


def A25_len(x):
    return x * len(x)


case(A25_len, [(ones(2, 3),), (ones(4, 3),)], shapes_vary=True)


def A38_shape_after_reshape(x, y):
    t = x.reshape(y.tolist())
    return t.shape[0]


case(A38_shape_after_reshape, [(f([2.0, 1.0]), i64([2])), (ones(6), i64([3, 2]))], shapes_vary=True)


def A38b_shape_after_reshape_used(x, y):
    t = x.reshape(y.tolist())
    return t * t.shape[0]


case(A38b_shape_after_reshape_used, [(f([2.0, 1.0]), i64([2])), (ones(2), i64([1, 2]))], shapes_vary=True)


def A39_shape_after_expand(x, y):
    t = x.expand(y.tolist())
    return t.shape[0]


case(A39_shape_after_expand, [(ones(1, 3), i64([4, 3])), (ones(1, 3), i64([6, 3]))])
