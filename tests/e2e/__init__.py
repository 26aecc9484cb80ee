"""Whole programs on real input: library models, the demonstration, the examples."""
