"""Conformance cases: ordinary eager PyTorch that must become one program with eager's results.

`grammar/` has one construct per function, `algorithms/` several at once. Each case is declared beside its function with
`case`, `harness` says what must hold of it, `pending` names what does not hold yet, and ``python -m
tests.cases.report`` prints the score.
"""
