"""Cases that do not hold yet, each with what will bring it. A case that holds by now must leave this list."""
from __future__ import annotations

_TENSOR_LIST = "tensor lists: a list that grows or shrinks where a tensor decides"
_ORDERING = "an order that Python finds in the run, as one graph"
_RECURSION = "recursion on a variable condition as a call of the function's own region"
_CAUGHT = "a raise under a variable condition, caught by the same function, as control flow"
_GENERATOR = "variable conditions inside generators"
_IDENTITY = "containers that are an argument on one path and new on another"
_NUMPY = "numpy on the values of a staged tensor"

STATIC: dict[str, str] = {
    "A28_recur_tensor": _RECURSION,
    "A30_list_append_while": _TENSOR_LIST,
    "A30b_list_append_return": _TENSOR_LIST,
    "A31_list_pop_in_if": _TENSOR_LIST,
    "A32b_nested_list_loop": _TENSOR_LIST,
    "A37_numpy_tensor": _NUMPY,
    "A43_try_except": _CAUGHT,
    "GreedyDecoder": _TENSOR_LIST,
    "adaptive_simpson": _RECURSION,
    "entropy_or_normalise": _CAUGHT,
    "keep_positive_rows": _TENSOR_LIST,
    "loudness": _GENERATOR,
    "stack_machine": _TENSOR_LIST,
}
"""By case: why its static function does not give eager's results in one program."""

_NOT_CAPTURED = {name: reason for name, reason in STATIC.items() if name != "adaptive_simpson"}  # an export refuses it
_STATE = "an ONNX file keeps no state from one call to the next"

PT2: dict[str, str] = {**_NOT_CAPTURED, "A33_list_sort": _ORDERING, "A33b_sorted": _ORDERING}
"""By case: why it cannot be saved as `.pt2`, or the loaded program differs."""

ONNX: dict[str, str] = {
    **PT2,
    **dict.fromkeys(("LossScaler", "RunningNormalizer", "S08_store_attr", "S10b_nonlocal_write"), _STATE),
}
"""By case: why it cannot be saved as `.onnx`, or onnxruntime differs."""
