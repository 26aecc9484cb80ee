"""What the commands do: each loads its target, makes example arguments, and asks the library for the rest."""
from __future__ import annotations

import contextlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import torch
from rich.markup import escape
from rich.syntax import Syntax
from torch import nn

import stillgraph as sg
from stillgraph import demo as demonstration
from stillgraph.api.capturing import is_partial
from stillgraph.api.migration import entry_points
from stillgraph.api.migration import migrate as migrated
from stillgraph.cli.failures import ERR, OUT, showing_failures
from stillgraph.cli.inputs import Example, parse_inputs, read_values, told
from stillgraph.cli.target import load
from stillgraph.cli.usage import WrongUsage
from stillgraph.core.diagnostics import ExampleTimeout


def explain(
    target: str,
    inputs: tuple[str, ...],
    values: Path | None,
    html: Path | None,
    as_json: str | None,
    train: bool,
    verbose: bool,
) -> None:
    """See `commands.explain`."""
    function, example = load(target, training=train), _example(inputs, values)
    _require_fitting(function, example)
    if is_partial(function):
        if html is not None:
            raise WrongUsage("--html is for full graphs; a plan is shown as text, or with --json")
        with showing_failures(verbose, f"calling {target}"), contextlib.redirect_stdout(sys.stderr):
            function(*example.args, **example.kwargs)
            explanation = _static_function(function).explain()
    else:
        with showing_failures(verbose, f"capturing {target}"):
            static = sg.to_static(function, input_spec=example.input_spec, backend="eager")
            explanation = _static_function(static).explain(*example.args, **example.kwargs)
    with showing_failures(verbose, f"writing the report of {target}"):
        if html is not None:
            explanation.to_html(html)
            ERR.print(f"[green]saved[/] {escape(str(html))} ({html.stat().st_size:,} bytes)", highlight=False)
        if as_json not in (None, "-"):
            explanation.to_json(as_json)
    if as_json == "-":
        click.echo(explanation.to_json())
    elif html is None and as_json is None:
        if OUT.is_terminal:
            OUT.print(explanation, soft_wrap=False)
        else:
            click.echo(str(explanation))
    refused = getattr(explanation, "refused", None)
    if refused is not None:
        ERR.print(f"[red]refused[/] {escape(target)}: {escape(refused.title)}, reason {refused.code}", highlight=False)
        sys.exit(1)


def code(target: str, verbose: bool) -> None:
    """See `commands.code`."""
    function = load(target)
    with showing_failures(verbose, f"rewriting {target}"):
        source = str(_static_function(sg.to_static(function, backend="eager")).code)
    if OUT.is_terminal:
        OUT.print(Syntax(source, "python", background_color="default"))
    else:
        click.echo(source)


def export(
    target: str,
    inputs: tuple[str, ...],
    values: Path | None,
    output: Path,
    time_limit: float,
    train: bool,
    verbose: bool,
    **wishes: Any,
) -> None:
    """See `commands.export`."""
    if output.suffix not in _FORMATS:
        raise WrongUsage(f"{output.name!r} must end in {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}")
    if not output.absolute().parent.is_dir():
        raise WrongUsage(f"there is no folder {str(output.parent)!r}")
    wanted = {name: wish for name, wish in wishes.items() if wish is not None}
    _require_possible(wanted, output.suffix)
    function, example = load(target, training=train), _example(inputs, values)
    _require_fitting(function, example)
    doing = f"exporting {target}"
    with showing_failures(verbose, doing), _showing_what_was_tried(example), torch.set_grad_enabled(train):
        sg.save(
            function,
            output,
            args=example.args,
            kwargs=example.kwargs,
            input_spec=example.input_spec,
            time_limit=time_limit,
            progress=True,
            **wanted,
        )
    ERR.print(f"[green]saved[/] {escape(str(output))} ({output.stat().st_size:,} bytes)", highlight=False)


@contextlib.contextmanager
def _showing_what_was_tried(example: Example) -> Iterator[None]:
    """Have an error about the time that the example call takes say which call that is, and how to give another."""
    try:
        yield
    except ExampleTimeout as error:
        instead = "Give a range, such as float32[](1..10), your own --values, or more --time-limit."
        hint = f"Tried was {told(example)}. {instead}"
        raise ExampleTimeout(error.reason, error.message, location=error.location, hint=hint) from None


_FORMATS = (".pt2", ".onnx", ".py")


def _require_possible(wanted: dict[str, Any], suffix: str) -> None:
    """Refuse options that a format does not have."""
    if suffix == ".py" and "max_iterations" in wanted:
        raise WrongUsage("--max-iterations is for .pt2 and .onnx; Python source has the loops of the original")
    if suffix == ".py" and wanted:
        raise WrongUsage(f"--{next(iter(wanted))} is not for .py, which prints and asserts as the original does")
    if suffix != ".onnx" and "opset" in wanted:
        raise WrongUsage("--opset is for .onnx")


def migrate(
    target: str, inputs: tuple[str, ...], made_with: tuple[str, ...], as_json: bool, train: bool, verbose: bool
) -> None:
    """See `commands.migrate`."""
    function, calls = load(target, training=train, made_with=_example(made_with)), _examples_by_method(inputs)
    unknown = [name for name in calls if name not in entry_points(function)]
    if unknown:
        raise WrongUsage(f"{unknown[0]!r} is no entry point; there are {', '.join(entry_points(function))}")
    with showing_failures(verbose, f"migrating {target}"):
        migration = migrated(function, calls)
    click.echo(migration.to_json() if as_json else str(migration), nl=as_json)
    sys.exit(0 if migration.is_one_program else 1)


def demo(out: Path) -> None:
    """See `commands.demo`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(f"cannot make {str(out)!r}: {error.strerror}") from error
    if not demonstration.run(out, OUT):
        sys.exit(1)


# ---- what the commands share
def _example(inputs: tuple[str, ...], values: Path | None = None) -> Example:
    try:
        example = parse_inputs(inputs)
        return example if values is None else read_values(values, example)
    except ValueError as error:
        raise WrongUsage(str(error)) from error


def _examples_by_method(inputs: tuple[str, ...]) -> dict[str, tuple[tuple[Any, ...], dict[str, Any], Any]]:
    """The example call of each method: ``encode:float32[2]`` is for ``encode``, what names none for ``forward``."""
    texts: dict[str, list[str]] = {}
    for text in inputs:
        named = _OF_METHOD.fullmatch(text.strip())
        texts.setdefault(named["method"] if named else "forward", []).append(named["spec"] if named else text)
    examples = {method: _example(tuple(given)) for method, given in texts.items()}
    return {method: (each.args, each.kwargs, each.input_spec) for method, each in examples.items()}


_OF_METHOD = re.compile(r"(?P<method>[A-Za-z_]\w*):(?P<spec>.*)", re.DOTALL)


def _require_fitting(function: Any, example: Example) -> None:
    """Have the inputs be a call of the target, as far as its signature says.

    Raises:
        WrongUsage: there are too few of them, too many, or others.
    """
    is_plain = type(function).__call__ is nn.Module.__call__
    called = function.forward if isinstance(function, nn.Module) and is_plain else function
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*example.args, **example.kwargs)
    except TypeError as error:
        given = len(example.args) + len(example.kwargs)
        counted = f"{given or 'no'} --input {'are' if given > 1 else 'is'} given"
        wanted = f"{getattr(called, '__name__', type(called).__name__)}{signature}"
        text = f"{counted}, and {wanted} wants others ({error}): give one --input for each argument, see --help"
        raise WrongUsage(text) from error


def _static_function(target: Any) -> Any:
    """A static module is the module itself, its `forward` is what was captured."""
    return target.forward if isinstance(target, nn.Module) else target
