"""Fake tensors and symbolic sizes: the adapters to torch's own machinery for these.

Gives `FakeTensorMode` and `ShapeEnv` as a capture wants them, and torch's modes and settings.
It must not know what is recorded.
"""
