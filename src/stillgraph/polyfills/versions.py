"""What releases of torch do differently, for the functions that are written once more here."""

from __future__ import annotations

import torch

CHECKS_TAKE_TEXTS = torch.__version__ >= "2.14"
"""Whether the message of ``torch._check`` may be a text, and not only a callable that gives one."""

COMBINES_ANYWHERE = torch.__version__ >= "2.14"
"""Whether ``associative_scan`` combines "pointwise" on any device, and not on GPUs alone."""
