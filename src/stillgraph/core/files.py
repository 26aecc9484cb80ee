"""Whose file a line of code is in: told by its path alone, wherever the packages are installed; and whose a module is.

A path is a code object's ``co_filename`` or a module's ``__file__``. Three kinds divide all files between them:
stillgraph's own, those of torch and of the standard library, and the user's (`is_users`), among which installed
packages are told apart by `is_installed`. The demonstration is user code, and the polyfills are torch's, for which they
stand. Code that was not read from a file has a name in angle brackets.
"""

from __future__ import annotations

import functools
import importlib.util
import os

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEMO = _OURS + "demo" + os.sep
_POLYFILLS = _OURS + "polyfills" + os.sep
_WRITTEN_BY_US = "<stillgraph "
_WRITTEN_BY_TORCH = ("<eval_with_key>", "<string>")
_COMPILED_BY_TORCH = os.sep + "torchinductor_"
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_remembered = functools.lru_cache(maxsize=4096)  # whoever looks down the stack asks of every frame
_SITES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def _folder_of_torch() -> str:
    spec = importlib.util.find_spec("torch")  # which imports nothing
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("stillgraph needs torch, which is not installed", name="torch")
    return os.path.dirname(os.path.abspath(spec.origin)) + os.sep


_TORCH = _folder_of_torch()
_BESIDE_TORCH = os.path.dirname(os.path.dirname(_TORCH)) + os.sep
_BELOW_TORCH = tuple(  # what torch itself requires and calls
    _BESIDE_TORCH + name + end
    for name in ("sympy", "mpmath", "numpy", "networkx", "jinja2", "filelock", "fsspec", "typing_extensions", "triton")
    for end in (os.sep, ".py")
)


def folder_of_ours(name: str) -> str:
    """The path of one of stillgraph's packages, with a separator at its end."""
    return _OURS + name + os.sep


def path_in_torch(*names: str) -> str:
    """The path of a file or, where the last name is empty, of a folder inside torch."""
    return os.path.join(_TORCH, *names)


_DISTRIBUTIONS = path_in_torch("distributions", "")
_OF_FAKES = path_in_torch("_subclasses", "")
_TORCH_LAYERS = (
    path_in_torch("nn", "modules", ""),
    path_in_torch("nn", "utils", ""),
    path_in_torch("optim", "swa_utils.py"),
    path_in_torch("optim", "lbfgs.py"),  # whose line search minimizers of libraries use
    _DISTRIBUTIONS,
)


# ---- stillgraph's
@_remembered
def is_ours(file: str) -> bool:
    """Whether a file belongs to stillgraph, or is code that it has written. The demonstration is user code."""
    return file.startswith((_OURS, _WRITTEN_BY_US)) and not file.startswith((_DEMO, _POLYFILLS))


def is_written_by_us(file: str) -> bool:
    """Whether code was written by stillgraph: a driver, the check of guards and the like."""
    return file.startswith(_WRITTEN_BY_US)


@_remembered
def is_our_module(name: object) -> bool:
    """Whether a module belongs to stillgraph, by what is said to be its name. The demonstration is user code."""
    path = f"{name}."
    return path.startswith("stillgraph.") and not path.startswith(("stillgraph.demo.", "stillgraph.polyfills."))


# ---- torch's
@_remembered
def is_torch(file: str) -> bool:
    """Whether a file belongs to torch, or stands for a part of it."""
    return file.startswith((_TORCH, _POLYFILLS))


@_remembered
def is_below_torch(file: str) -> bool:
    """Whether a file belongs to torch, or to a package that torch computes with."""
    return file.startswith((_TORCH, _POLYFILLS, *_BELOW_TORCH))


def is_polyfill(file: str) -> bool:
    """Whether a file of ours stands for a part of torch, and is followed as the user's are."""
    return file.startswith(_POLYFILLS)


def is_of_fakes(file: str) -> bool:
    """Whether a file belongs to torch's fake tensors, which a capture computes with and eager PyTorch does not."""
    return file.startswith(_OF_FAKES)


def is_torch_layer(file: str) -> bool:
    """Whether a file belongs to what torch writes in Python around its layers: those may be converted."""
    return file.startswith(_TORCH_LAYERS)


def is_distributions(file: str) -> bool:
    """Whether a file belongs to `torch.distributions`, whose objects keep what they have computed."""
    return file.startswith(_DISTRIBUTIONS)


def is_written_by_torch(file: str) -> bool:
    """Whether code was written by torch or its compilers. What the user gives to ``exec`` is told as that too."""
    return file.startswith(_WRITTEN_BY_TORCH) or _COMPILED_BY_TORCH in file


# ---- Python's
@_remembered
def is_standard_library(file: str) -> bool:
    """Whether a file belongs to Python's standard library, in whose folder packages may be installed."""
    return file.startswith(("<frozen", _STANDARD)) and not _is_below_site(file)


def is_container_class(file: str) -> bool:
    """Whether a file has the standard library's containers written in Python: what they do to themselves is noted."""
    return file.endswith(os.path.join("collections", "__init__.py"))


# ---- the user's, and other people's
@_remembered
def is_users(file: str) -> bool:
    """Whether a file is neither ours, nor torch's, nor the standard library's."""
    return not (is_ours(file) or is_torch(file) or is_standard_library(file))


def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package, torch included; stillgraph is none, wherever it lies."""
    return is_torch(file) or (_is_below_site(file) and not file.startswith(_OURS))


def is_library(file: str) -> bool:
    """Whether code is an installed package's, or from no file: it is converted only where that is needed."""
    return file.startswith("<") or is_installed(file)


def is_package(file: str) -> bool:
    """Whether a file belongs to an installed package that is not torch's."""
    return is_installed(file) and not is_torch(file)


def is_dependency(file: str) -> bool:
    """Whether a file is not of the user's project: stillgraph's, torch's, the standard library's, a package's."""
    return is_installed(file) or not is_users(file)


def _is_below_site(file: str) -> bool:
    return any(site in file for site in _SITES)
