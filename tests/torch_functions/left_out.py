"""What the table leaves out, and which of its rows are refused."""

from __future__ import annotations

REFUSED: dict[str, tuple[str, str, str]] = {
    # a piece of the expression: the code for open sizes, for sizes of the run ("" where it is captured), and why
    "to_sparse": ("SG304", "SG304", "how many elements are not zero decides the sizes of what it holds"),
    "torch.cov(": ("SG304", "SG304", "of one row it gives a number, of more a matrix"),
    "m.cov(": ("SG304", "SG304", "of one row it gives a number, of more a matrix"),
    "corrcoef(": ("SG304", "SG304", "of one row it gives a number, of more a matrix"),
    "unbind(m, dim=0)": ("SG303", "", "how many there are depends on the size"),
    "m.unbind(dim=0)": ("SG303", "", "how many there are depends on the size"),
    "split_copy(m, 2)": ("SG303", "SG304", "how many there are depends on the size"),
    "dsplit(b, 2)": ("", "SG304", "torch asks whether the size can be divided"),
    "b.dsplit(2)": ("", "SG304", "torch asks whether the size can be divided"),
    "sum_to_size(1": ("", "SG304", "where the size is that already it is the tensor itself"),
    "m.tolist()": ("SG301", "SG301", "a list of lists of which only the run knows the length"),
    "squeeze_()": ("", "SG304", "with a size of 1 the result has a dimension less"),
    "reversed(v)": ("SG306", "SG306", "it is an iterator in the program"),
    "CrossMapLRN2d": ("SG303", "SG304", "torch makes its buffers with resize_as_"),
    "torch.range(": ("SG303", "SG304", "deprecated; torch.arange takes a number of the run"),
    "resize_": ("SG304", "SG304", "what memory a tensor has decides what it does"),
    "resize_as_": ("SG304", "SG304", "what memory a tensor has decides what it does"),
    "i.new_ones(1, 2) + i[:1]": ("", "SG304", "no size, or one of 1, beside one of 2: the first does not fit"),
    "linalg.lstsq": ("SG304", "SG304", "the rank decides how many residuals there are"),
    "map_(": ("SG304", "SG304", "Python for each element"),
    "apply_(": ("SG304", "SG304", "Python for each element"),
}

LEFT_OUT = frozenset(
    [
        # kernels of other machines
        *["batch_norm_backward_elemt", "batch_norm_backward_reduce", "batch_norm_elemt", "batch_norm_gather_stats"],
        *[
            "batch_norm_gather_stats_with_counts",
            "batch_norm_stats",
            "batch_norm_update_stats",
            "cuda",
            "ipu",
            "mtia",
            "xpu",
            "to_mkldnn",
        ],
        *[
            "miopen_batch_norm",
            "miopen_convolution",
            "miopen_convolution_add_relu",
            "miopen_convolution_relu",
            "miopen_rnn",
        ],
        *["miopen_convolution_transpose", "miopen_depthwise_convolution", "pin_memory", "record_stream", "native_norm"],
        # quantized tensors, which no program takes
        *["choose_qparams_optimized", "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation"],
        *["fbgemm_linear_int8_weight", "fbgemm_linear_int8_weight_fp32_activation", "fbgemm_linear_quantize_weight"],
        *[
            "fbgemm_pack_gemm_matrix_fp16",
            "fbgemm_pack_quantized_matrix",
            "fused_moving_avg_obs_fake_quant",
            "int_repr",
        ],
        *[
            "q_per_channel_axis",
            "q_per_channel_scales",
            "q_per_channel_zero_points",
            "q_scale",
            "q_zero_point",
            "qscheme",
        ],
        *["quantize_per_channel", "quantize_per_tensor", "quantize_per_tensor_dynamic", "quantized_batch_norm"],
        *[
            "quantized_gru_cell",
            "quantized_lstm_cell",
            "quantized_max_pool1d",
            "quantized_max_pool2d",
            "quantized_max_pool3d",
        ],
        *["quantized_rnn_relu_cell", "quantized_rnn_tanh_cell"],
        # the memory behind a tensor, and what is part of it
        *[
            "as_strided_copy",
            "ccol_indices_copy",
            "col_indices_copy",
            "crow_indices_copy",
            "indices_copy",
            "row_indices_copy",
        ],
        *[
            "values_copy",
            "const_data_ptr",
            "data_ptr",
            "is_set_to",
            "module_load",
            "share_memory_",
            "storage",
            "storage_type",
        ],
        *["untyped_storage", "resize", "resize_as", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_"],
        # hooks and gradients, which have tests of their own
        *[
            "backward",
            "register_hook",
            "register_post_accumulate_grad_hook",
            "retain_grad",
            "autocast",
            "index",
            "sym_sum",
        ],
        # what fails in eager PyTorch with a gradient, or takes what no tensor of the table is
        *[
            "saddmm",
            "view_as_complex_copy",
            "hash_tensor",
            "native_group_norm",
            "map2_",
            "addbmm_",
            "addmm_",
            "addr_",
            "baddbmm_",
        ],
        *["mvlgamma_", "polygamma_", "log_sigmoid", "numpy", "resize_as_"],
    ]
)
"""By the name of the function."""

MODULES_LEFT_OUT = frozenset(
    [
        "Container",
        "DataParallel",
        "Module",
        "ModuleDict",
        "ModuleList",
        "ParameterDict",
        "ParameterList",
        "RNNBase",
        "RNNCellBase",
        "NLLLoss2d",
        "SyncBatchNorm",
    ]
)
"""Containers, bases, what has another name or wants several machines; lazy modules are no longer so after a call."""


def why_refused(expression: str, cut: bool) -> str | None:
    """The code with which a row is refused; None where it is captured."""
    for piece, (open_, of_the_run, _) in REFUSED.items():
        if piece in expression and not (piece == "map_(" and "_map_(" in expression):
            return (of_the_run if cut else open_) or None
    return None
