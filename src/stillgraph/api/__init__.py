"""The public functions, and what they are made of: the only place that wires front end, runtime and deploy together."""
