"""From a program to a program: one file per pass."""
