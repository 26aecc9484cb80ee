"""Realistic algorithms in which several constructs meet: training scripts, decoders, numerical code."""
