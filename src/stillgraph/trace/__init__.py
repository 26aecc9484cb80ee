"""Recording: what a call does to tensors and to Python state becomes a program, staged where a tensor decides."""
