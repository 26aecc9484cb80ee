"""Ten mistakes that people make when eager PyTorch becomes a static program, and what three compilers say of each.

    python -m bench.mistakes            # what docs/errors.md has under "Ten typical mistakes, three compilers"

Each mistake is an ordinary function that runs in eager PyTorch, and the same function mended as stillgraph's message
says. `torch.compile` is asked for one graph (``fullgraph=True``), as is `torch.export.export`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

import stillgraph as sg


@dataclass(frozen=True)
class Mistake:
    """A function that is refused with a code, the same one mended, and what to call both with."""

    title: str
    code: str
    wrong: Callable[..., Any]
    mended: Callable[..., Any]
    args: tuple[Any, ...]


# ---- 1
def pool(x: Tensor) -> Tensor:
    while x.norm() > 1:
        x = x.mean(0) / 2
    return x


def pool_mended(x: Tensor) -> Tensor:
    while x.norm() > 1:
        x = x.mean(0, keepdim=True) / 2
    return x


# ---- 2
def count_up(x: Tensor) -> Tensor:
    total = torch.zeros(3, dtype=torch.int64)
    while total.sum() < 10:
        total, x = x, total + 1
    return total


def count_up_mended(x: Tensor) -> Tensor:
    total = torch.zeros(3, dtype=x.dtype)
    while total.sum() < 10:
        total, x = x, total + 1
    return total


# ---- 3
def history(x: Tensor) -> Any:
    path = None
    while x.norm() > 1:
        x = x / 2
        path = (x, path)
    return path


def history_mended(x: Tensor) -> Any:
    path = []
    while x.norm() > 1:
        x = x / 2
        path.append(x)
    return path


# ---- 4
def summary(x: Tensor) -> dict[str, Any]:
    found = SimpleNamespace(scaled=x * 2)
    if x.max() > 1:
        found.peak = x.max()
    return vars(found)


def summary_mended(x: Tensor) -> dict[str, Any]:
    found = SimpleNamespace(scaled=x * 2, peak=None)
    if x.max() > 1:
        found.peak = x.max()
    return vars(found)


# ---- 5
def rows(x: Tensor) -> Tensor:
    found = []
    for row in x:
        if row.sum() > 0:
            found.append(row)
    return torch.vstack(found)


def rows_mended(x: Tensor) -> Tensor:
    found = []
    for row in x:
        if row.sum() > 0:
            found.append(row)
    return torch.stack(found)


# ---- 6
def scaled(x: Tensor) -> Tensor:
    options = {}
    if x.sum() > 0:
        options["alpha"] = 2
    print(options)
    return torch.add(x, x, **options)


def scaled_mended(x: Tensor) -> Tensor:
    options = {}
    if x.sum() > 0:
        options["alpha"] = 2
    print("alpha" in options)
    return torch.add(x, x, **options)


# ---- 7
def routed(x: Tensor) -> Tensor:
    name = f"expert {x.argmax().item()}"
    return x * float(name.split()[1])


def routed_mended(x: Tensor) -> Tensor:
    expert = x.argmax().item()
    return x * float(expert)


# ---- 8
def spectrum(x: Tensor) -> Tensor:
    y = x * 2
    return torch.from_numpy(np.fft.fft(y.numpy()).real)


def spectrum_mended(x: Tensor) -> Tensor:
    y = x * 2
    return torch.fft.fft(y).real


# ---- 9
def scaler(x: Tensor) -> Any:
    scale = x.mean()
    return lambda y: y * scale


def scaler_mended(x: Tensor) -> Any:
    return x.mean()


# ---- 10
def halvings(x: Tensor) -> Any:
    if x.norm() > 1:
        return (x, halvings(x / 2))
    return x


def halvings_mended(x: Tensor) -> Any:
    found = [x]
    while x.norm() > 1:
        x = x / 2
        found.append(x)
    return found


X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ROW = torch.tensor([1.0, 2.0, 3.0])
MISTAKES = (
    Mistake("A loop gives up a dimension", "SG201", pool, pool_mended, (X,)),
    Mistake("A loop changes a dtype", "SG202", count_up, count_up_mended, (ROW,)),
    Mistake("A history of nested tuples", "SG203", history, history_mended, (ROW,)),
    Mistake("A field of a result set in one arm", "SG204", summary, summary_mended, (ROW,)),
    Mistake("A list of unknown length in a function of torch's", "SG210", rows, rows_mended, (X,)),
    Mistake("Options of one arm, printed", "SG211", scaled, scaled_mended, (ROW,)),
    Mistake("A text of a tensor taken apart", "SG302", routed, routed_mended, (ROW,)),
    Mistake("numpy on a tensor", "SG310", spectrum, spectrum_mended, (ROW,)),
    Mistake("A closure returned", "SG306", scaler, scaler_mended, (ROW,)),
    Mistake("A recursion that nests its results", "SG207", halvings, halvings_mended, (ROW,)),
)


# ---- what each compiler says
def target(function: Any) -> Any:
    """The function, or a module of the class."""
    return function() if isinstance(function, type) else function


def said(compile_and_call: Callable[[], Any]) -> tuple[str | None, Any]:
    """The text of the error that a compiler raises, or None; and what it gives."""
    torch._dynamo.reset()
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return None, compile_and_call()
        except Exception as error:  # of any kind: that is what is looked at
            return f"{type(error).__name__}: {error}", None


class _Module(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def by_compile(mistake: Mistake) -> tuple[str | None, Any]:
    """What `torch.compile` says and gives, of one graph."""
    function = target(mistake.wrong)
    return said(lambda: torch.compile(function, backend="eager", fullgraph=True)(*mistake.args))


def by_export(mistake: Mistake) -> tuple[str | None, Any]:
    """What `torch.export.export` says and gives."""
    function = target(mistake.wrong)
    module = function if isinstance(function, torch.nn.Module) else _Module(function)
    return said(lambda: torch.export.export(module, mistake.args).module()(*mistake.args))


def by_stillgraph(mistake: Mistake) -> str:
    """What stillgraph says: files without folders, lines counted from the function's first."""
    text, _ = said(lambda: sg.to_static(target(mistake.wrong), backend="eager")(*mistake.args))
    assert text is not None, f"{mistake.title} is not refused"
    first = inspect.getsourcelines(mistake.wrong)[1]
    lines = re.sub(r'File "[^"]*/([^"/]*)", line (\d+)', lambda m: f'File "{m[1]}", line {int(m[2]) - first + 1}', text)
    return lines.removeprefix("CaptureError: ")


_SAYING = ("Explanation:", "Could not guard", "RuntimeError:", "KeyError:", "raised exception", "not supported")


def shortened(answer: tuple[str | None, Any], expected: Any) -> str:
    """The first line of an error, and the first that explains it; or what is given in place of one."""
    text, given = answer
    if text is None:
        dtypes = getattr(given, "dtype", None), getattr(expected, "dtype", None)
        return "takes it" + (" and gives {} where eager gives {}".format(*dtypes) if len(set(dtypes)) > 1 else "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    more = next((line for line in lines[1:] if any(saying in line for saying in _SAYING)), "")
    shown = (textwrap.shorten(line.replace("`", "'"), 160, placeholder=" ...") for line in (lines[0], more))
    return " ".join(shown).strip()


def report() -> str:
    """The ten mistakes as docs/errors.md shows them."""
    parts = []
    for number, mistake in enumerate(MISTAKES, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = target(mistake.wrong)(*mistake.args)
        parts += [
            f"## {number}. {mistake.title}\n",
            f"```python\n{inspect.getsource(mistake.wrong)}```\n",
            f"- torch.compile: `{shortened(by_compile(mistake), expected)}`",
            f"- torch.export: `{shortened(by_export(mistake), expected)}`",
            f"- stillgraph:\n\n```\n{by_stillgraph(mistake)}\n```\n\nMended:\n",
            f"```python\n{inspect.getsource(mistake.mended)}```\n",
        ]
    return "\n".join(parts)


if __name__ == "__main__":
    print(report())
