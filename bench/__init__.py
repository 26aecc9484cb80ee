"""Measurements. Each is a script: ``python bench/capture.py``, ``bench/overhead.py``, ``bench/peers.py``."""
