"""Options of `torch.compile`, `torch.export`, `torch.onnx` and `paddle.jit`: what to write here instead of each."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

_NOT_NEEDED = "leave it out"
TO_STATIC = {
    "fullgraph": "it is full_graph here, and True by default",
    "disable": "leave the decorator out, or call sg.enable_to_static(False)",
    "build_strategy": "it is backend here",
    "property": f"{_NOT_NEEDED}: attributes are read as they are",
    "loader": f"{_NOT_NEEDED}; sg.load(path) loads a file",
    "example_inputs": f"{_NOT_NEEDED}: the first call is the example",
    "example_kwarg_inputs": f"{_NOT_NEEDED}: the first call is the example",
    "optimize": f"{_NOT_NEEDED}; backend says what compiles",
    "check_trace": "it is check here, a number of calls",
    "guard_filter_fn": f"{_NOT_NEEDED}: a program without its guards would be wrong for some calls",
    "isolate_recompiles": f"{_NOT_NEEDED}: each static function has a cache of its own",
}
SAVE = {
    "f": "it is path here, the second argument",
    "example_inputs": "it is args here",
    "inputs": "it is args here",
    "opset_version": "it is opset here",
    "dynamic_axes": "it is dynamic_shapes here, as torch.export takes it, or input_spec",
    "strict": f"{_NOT_NEEDED}: Python is captured as it is",
    "preserve_module_call_signature": f"{_NOT_NEEDED}: save several entries, each with its own arguments, as a dict",
    "dynamo": f"{_NOT_NEEDED}: there is one exporter",
    "fallback": f"{_NOT_NEEDED}: there is one exporter",
    "verify": f"{_NOT_NEEDED}: every file is compared with the program before it appears",
    "report": f"{_NOT_NEEDED}; static.explain(*args).to_html(path) writes a report",
    "verbose": "it is progress here; STILLGRAPH_LOG=deploy tells more",
    "export_params": f"{_NOT_NEEDED}: a file holds the weights",
    "keep_initializers_as_inputs": f"{_NOT_NEEDED}: state that a call writes is an input, weights are not",
    "do_constant_folding": f"{_NOT_NEEDED}: it is done",
    "training": "call train() or eval() on the module first",
    "configs": "it is opset, prints, assertions or max_iterations here",
    "extra_files": f"{_NOT_NEEDED}: write them beside the file",
    "pickle_protocol": f"{_NOT_NEEDED}: a file holds no pickles",
}


def refuse_unknown(function: Callable[..., Any], given: Mapping[str, Any], elsewhere: Mapping[str, str]) -> None:
    """Refuse options that there are not.

    Args:
        function: what is called; its own options are named where one of them may be meant.
        given: options that it does not have.
        elsewhere: options of other libraries, with what to write instead.

    Raises:
        TypeError: there are some.
    """
    for name in given:
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        known = [each.name for each in inspect.signature(function).parameters.values() if each.kind in kinds]
        near = difflib.get_close_matches(name, known, n=1)
        instead = elsewhere.get(name) or (f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}")
        raise TypeError(f"{function.__name__} has no option {name!r}: {instead}")
