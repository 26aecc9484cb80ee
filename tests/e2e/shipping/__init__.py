"""Whole decoders, detectors and solvers as people write them, each saved as one file and run without its code."""
