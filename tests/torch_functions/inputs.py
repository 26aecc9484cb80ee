"""What the letters in the table's expressions are, and how a row is carried out."""

from __future__ import annotations

import ast
import copy
import functools
import linecache
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import stillgraph as sg
from tests.torch_functions.table import EXPRESSIONS, LATER

LETTERS = "vwmaqbegofijzprc"
_FIXED = {
    "b": (1,),
    "e": (2,),
    "g": (1,),
    "o": (1,),
    "f": (1, 2),
    "c": (1,),
    "m": (1,),
    "a": (1,),
    "j": (1,),
    "z": (1,),
    "r": (1,),
}
"""Dimensions that stay as they are: channels and features, of which a weight has as many."""


def tensors(letters: str, n: int, t: int) -> list[torch.Tensor]:
    """A tensor for each letter.

    Args:
        n: the size of the batch.
        t: the length, height and width.
    """
    draw = torch.Generator().manual_seed(n)

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=draw) * 0.8 + 0.1

    whole = rand(n, n)
    made = {
        "v": rand(n),
        "w": rand(n),
        "m": rand(n, 3),
        "a": rand(n, 3),
        "q": whole @ whole.T + torch.eye(n) * 2,
        "b": rand(n, 4, t),
        "e": rand(n, 4, 6),
        "g": rand(n, 4, t, t),
        "o": rand(n, 2, t, t, t),
        "f": rand(n, 4, 4),
        "i": torch.randint(0, 3, (n,), generator=draw),
        "j": torch.randint(0, 3, (n, 3), generator=draw),
        "z": torch.complex(rand(n, 3), rand(n, 3)),
        "p": rand(n) > 0.4,
        "r": rand(n, 3) > 0.4,
        "c": rand(n, 3),
    }
    return [made[letter] for letter in letters]


@functools.cache
def used(expression: str) -> str:
    """The letters in an expression."""
    names = {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
    return "".join(letter for letter in LETTERS if letter in names)


# ---- forms of an expression
def forms() -> list[str]:
    """The expressions of the table, and those that call a method, or one in place, for what is a function there."""
    made = [*EXPRESSIONS, *(row for name, row in LATER.items() if _is_there(name))]
    for expression in EXPRESSIONS:
        call = ast.parse(expression, mode="eval").body
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and ast.unparse(call.func.value) == "torch"
        ):
            made += _as_methods(call, call.func.attr)
    return list(dict.fromkeys(made))


def _is_there(name: str) -> bool:
    """Whether this torch has a function, by its full name."""
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found is not None


def _as_methods(call: ast.Call, name: str) -> list[str]:
    if not call.args or not isinstance(call.args[0], ast.Name):
        return []
    receiver = ast.unparse(call.args[0])
    rest = ", ".join([*map(ast.unparse, call.args[1:]), *map(ast.unparse, call.keywords)])
    found = []
    if callable(getattr(torch.Tensor, name, None)):
        found.append(f"{receiver}.{name}({rest})")
    if callable(getattr(torch.Tensor, f"{name}_", None)):
        found.append(f"{receiver}.clone().{name}_({rest})")
    return found


class _Modules(ast.NodeTransformer):
    """Has the modules of an expression made before the function is called."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "nn":
            self.made.append(ast.unparse(node))
            return ast.Name(f"module_{len(self.made) - 1}", ast.Load())
        return self.generic_visit(node)


_CUT = (
    {"q": "q = q[keep][:, keep]"}
    | dict.fromkeys("b", "b = b[keep][:, :, more]")
    | dict.fromkeys("g", "g = g[keep][:, :, more][..., more]")
)


def function_of(expression: str, cut: bool) -> Callable[..., Any]:
    """A function of the letters in an expression that gives its value, with new modules.

    Args:
        cut: whether the tensors are cut first by masks ``keep`` and ``more``, so that only the run knows their sizes.
    """
    modules = _Modules()
    body = ast.unparse(modules.visit(ast.parse(expression, mode="eval")))
    torch.manual_seed(0)
    space: dict[str, Any] = {"torch": torch, "F": F, "nn": nn}
    space |= {f"module_{k}": eval(made, dict(space)) for k, made in enumerate(modules.made)}
    letters = used(expression)
    lines = [f"    {_CUT.get(each, f'{each} = {each}[keep]')}\n" for each in letters] if cut else []
    masks = ["keep", "more"] if cut else []
    source = f"def function({', '.join([*letters, *masks])}):\n{''.join(lines)}    return {body}\n"
    name = f"<{'cut ' if cut else ''}{expression}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), space)
    return space["function"]


# ---- the outcome of a row
@dataclass(frozen=True)
class Outcome:
    """What a capture gives beside eager PyTorch: ``equal``, the code of a refusal, or what is wrong."""

    said: str
    detail: str = ""


def outcome(expression: str, cut: bool) -> Outcome:
    """Capture an expression and compare it, for two sizes."""
    letters = used(expression)
    examples = [(5, 6), (7, 8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eager = [_ran(function_of(expression, cut), _given(letters, cut, *sizes)) for sizes in examples]
        except Exception as error:
            return Outcome("eager", f"{type(error).__name__}: {error}"[:200])
        warnings.filterwarnings("error", r"(?s).*The call was made in plain PyTorch", RuntimeWarning)
        warnings.filterwarnings("error", "the capture fails", RuntimeWarning)
        try:
            spec = None if cut else [spec_of(letter, tensor) for letter, tensor in zip(letters, tensors(letters, 5, 6))]
            static = sg.to_static(function_of(expression, cut), input_spec=spec, full_graph=True, backend="eager")
            got = [_ran(static, _given(letters, cut, *sizes)) for sizes in (examples[:1] if cut else examples)]
        except (sg.StillgraphError, RuntimeWarning) as error:
            code = re.search(r"reason (SG\d+)", str(error))
            return Outcome(code[1] if code else type(error).__name__, str(error)[:600])
        except Exception as error:
            return Outcome("crash", f"{type(error).__name__}: {error}"[:600])
    for mine, theirs in zip(got, eager):
        wrong = _difference(mine[0], theirs[0]) or _difference(mine[1], theirs[1])
        if wrong:
            return Outcome("wrong", wrong)
    return Outcome("equal")


def _given(letters: str, cut: bool, n: int, t: int) -> list[torch.Tensor]:
    given = tensors(letters, n + cut, t + cut)
    made = [each.requires_grad_(each.is_floating_point() or each.is_complex()) for each in given]
    if not cut:
        return made
    keep = torch.ones(n + 1, dtype=torch.bool)
    more = torch.ones(t + 1, dtype=torch.bool)
    keep[0] = more[0] = False
    return [*made, keep, more]


def spec_of(letter: str, tensor: torch.Tensor) -> sg.InputSpec:
    """What a tensor of the table may be: open in all dimensions that no weight fixes."""
    fixed = _FIXED.get(letter, ())
    return sg.InputSpec([size if dim in fixed else None for dim, size in enumerate(tensor.shape)], tensor.dtype)


def _ran(function: Callable[..., Any], given: list[torch.Tensor]) -> tuple[Any, Any]:
    """A result, and the gradients of what is given."""
    torch.manual_seed(1)
    result = function(*given)
    floats = [
        each
        for each in torch.utils._pytree.tree_leaves(result)
        if isinstance(each, torch.Tensor) and each.requires_grad
    ]
    leaves = [each for each in given if each.requires_grad]
    if not floats or not leaves:
        return copy.copy(result), None
    total = sum(
        (
            torch.view_as_real(each.resolve_conj())
            if each.is_complex()
            else each.to_dense()
            if each.layout != torch.strided
            else each
        )
        .double()
        .pow(2)
        .sum()
        for each in floats
    )
    try:
        found = torch.autograd.grad(total, leaves, allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        return result, type(error).__name__
    return result, found


def _difference(mine: Any, theirs: Any) -> str:
    """What is unlike in two results; nothing where they are equal."""
    if type(mine) is not type(theirs):
        return f"{type(mine).__name__}, eager {type(theirs).__name__}"
    if isinstance(theirs, torch.Tensor):
        if (mine.dtype, mine.shape, mine.layout, mine.requires_grad) != (
            theirs.dtype,
            theirs.shape,
            theirs.layout,
            theirs.requires_grad,
        ):
            said = [f"{each.dtype} {tuple(each.shape)} {each.requires_grad}" for each in (mine, theirs)]
            return f"{said[0]}, eager {said[1]}"
        mine, theirs = (
            each.detach().to_dense() if each.layout != torch.strided else each.detach() for each in (mine, theirs)
        )
        return (
            ""
            if torch.allclose(mine, theirs, rtol=1e-3, atol=1e-6, equal_nan=True)
            else f"{mine}, eager {theirs}"[:300]
        )
    if isinstance(theirs, (tuple, list)):
        if len(mine) != len(theirs):
            return f"{len(mine)} of them, eager {len(theirs)}"
        return next(filter(None, map(_difference, mine, theirs)), "")
    return "" if mine == theirs or (mine != mine and theirs != theirs) else f"{mine}, eager {theirs}"
