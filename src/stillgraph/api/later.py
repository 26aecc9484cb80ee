"""What a static function needs from its first call on: the front ends, the trace, the reports.

None of that is imported where a function is only decorated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillgraph.core.later import imported_when_asked

if TYPE_CHECKING:
    from stillgraph.api.captures import capture_call, check_open, function_of, has_receiver
    from stillgraph.api.front_ends import SOURCE, rewritten
    from stillgraph.api.plan import Plan
    from stillgraph.api.varying import Varying
    from stillgraph.operators.torch.torchscript import refuse_module
    from stillgraph.report.explain import Explanation, cache_state, explain, explain_refusal
    from stillgraph.runtime.calls.whole import compile_whole
    from stillgraph.trace.capture.tracer import trace
    from stillgraph.trace.graph.current import current

__all__ = [
    "SOURCE",
    "Explanation",
    "Plan",
    "Varying",
    "cache_state",
    "capture_call",
    "check_open",
    "compile_whole",
    "current",
    "explain",
    "explain_refusal",
    "function_of",
    "has_receiver",
    "refuse_module",
    "rewritten",
    "trace",
]

_HOMES = {
    "SOURCE": "stillgraph.api.front_ends",
    "Explanation": "stillgraph.report.explain",
    "Plan": "stillgraph.api.plan",
    "Varying": "stillgraph.api.varying",
    "cache_state": "stillgraph.report.explain",
    "capture_call": "stillgraph.api.captures",
    "check_open": "stillgraph.api.captures",
    "compile_whole": "stillgraph.runtime.calls.whole",
    "current": "stillgraph.trace.graph.current",
    "explain": "stillgraph.report.explain",
    "explain_refusal": "stillgraph.report.explain",
    "function_of": "stillgraph.api.captures",
    "has_receiver": "stillgraph.api.captures",
    "refuse_module": "stillgraph.operators.torch.torchscript",
    "rewritten": "stillgraph.api.front_ends",
    "trace": "stillgraph.trace.capture.tracer",
}
__getattr__ = imported_when_asked(__name__, _HOMES)
