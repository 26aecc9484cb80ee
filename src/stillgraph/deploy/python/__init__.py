"""A program as a Python module that needs torch alone."""
