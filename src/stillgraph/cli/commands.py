"""The commands: each loads its target, makes example arguments, and asks `stillgraph.api` for the rest."""
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
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from torch import nn

from stillgraph import api
from stillgraph.api.capturing import is_partial
from stillgraph.api.migration import entry_points
from stillgraph.api.migration import migrate as migrated
from stillgraph.cli import sections
from stillgraph.cli.failures import ERR, showing_failures
from stillgraph.cli.inputs import Example, parse_inputs, read_values, told
from stillgraph.cli.target import WrongUsage, load
from stillgraph.core.diagnostics import ExampleTimeout
from stillgraph.core.reasons import REASONS, Reason

_OUT = Console(soft_wrap=True)

_INPUTS_HELP = """\b
SPEC is one argument, in order; repeat the option for each:
  float32[2,3]     random numbers of that type and shape; [] is 0-d
  float32[?,3]     the same, for any size of the first dimension
  int64[4](0..10)  values from 0 up to, not including, 10
  =3               a Python value: number, string, True, None, tuple
  scale=float32[]  any of these by keyword; scale==3 for a value
  [float32[2], =3] a list of any of these; (a, b) is a tuple, {name: a} a dict
Random numbers are those of torch.randn for floats, and 0 to 9 for whole numbers.
--values FILE gives your own: a .pt with a tuple (or a dict, by keyword), as torch.save
writes it, or a .npz. The SPECs then only say which sizes are open.
"""


@click.group("stillgraph", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stillgraph")
def main() -> None:
    """Whole static programs from plain eager PyTorch.

    TARGET is MODULE:NAME, where MODULE is an importable module or a .py file and NAME a function, an nn.Module or a
    class of modules that needs no arguments.

    \b
    See the program a function becomes:
      stillgraph explain solver.py:fixed_point --input "float32[4]" --input "float32[4,4]"
    See how its control flow was rewritten:
      stillgraph code solver.py:fixed_point
    Save it for other runtimes, the batch size left open:
      stillgraph export models.net:Classifier --input "float32[?,16]" -o classifier.onnx
    See what is left to do with code written for TorchScript:
      stillgraph migrate models.py:Decoder --input "float32[2,16]"
    Read why something is refused, and what to write instead:
      stillgraph errors SG201
    Watch four real programs being captured and checked:
      stillgraph demo
    """


_input_option = click.option("-i", "--input", "inputs", multiple=True, metavar="SPEC", help="An argument, see below.")
_values_option = click.option("--values", type=click.Path(dir_okay=False, exists=True, path_type=Path), metavar="FILE",
                              help="A .pt or .npz file with the arguments, see below.")
_verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show the whole traceback of a failure.")
_train_option = click.option("--train", is_flag=True, help="Keep a module in training mode instead of eval mode.")


# ---- commands
@main.command(epilog=_INPUTS_HELP, short_help="Show the program that TARGET becomes.")
@click.argument("target")
@_input_option
@_values_option
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write a page that needs nothing else, to be opened in a browser.")
@click.option("--json", "as_json", is_flag=False, flag_value="-", metavar="[FILE]",
              help="Write the data as JSON, to a file or else to stdout.")
@_train_option
@_verbose_option
def explain(
    target: str,
    inputs: tuple[str, ...],
    values: Path | None,
    html: Path | None,
    as_json: str | None,
    train: bool,
    verbose: bool,
) -> None:
    """Capture TARGET for example arguments and show what became of it: each line of its source, the program, guards.

    A call that is refused is shown, too, its line marked; the exit status is then 1. Of a function that is static
    without a full graph, the call is made, and its plan is shown; what it prints goes to stderr.

    \b
      stillgraph explain solver.py:halve --input "float32[3,4]" --input "float32[]"
      stillgraph explain solver.py:halve --input "float32[3,4]" --input "float32[]" --html halve.html
    """
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
            static = api.to_static(function, input_spec=example.input_spec, backend="eager")
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
        if _OUT.is_terminal:
            _OUT.print(explanation, soft_wrap=False)
        else:
            click.echo(str(explanation))
    refused = getattr(explanation, "refused", None)
    if refused is not None:
        ERR.print(f"[red]refused[/] {escape(target)}: {escape(refused.title)}, reason {refused.code}", highlight=False)
        sys.exit(1)


@main.command(short_help="Show TARGET rewritten.")
@click.argument("target")
@_verbose_option
def code(target: str, verbose: bool) -> None:
    """Show TARGET rewritten: still plain Python, its control flow now in operators.

    \b
      stillgraph code solver.py:halve
    """
    function = load(target)
    with showing_failures(verbose, f"rewriting {target}"):
        source = str(_static_function(api.to_static(function, backend="eager")).code)
    if _OUT.is_terminal:
        _OUT.print(Syntax(source, "python", background_color="default"))
    else:
        click.echo(source)


@main.command(epilog=_INPUTS_HELP, short_help="Save TARGET as a .pt2, .onnx or .py file.")
@click.argument("target")
@_input_option
@_values_option
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Where to save; the suffix says the format: .pt2, .onnx or .py.")
@click.option("--max-iterations", type=click.IntRange(min=1), metavar="N",
              help="Write each loop out as N iterations, for what runs no while; .pt2 and .onnx.")
@click.option("--prints", type=click.Choice(["drop", "refuse"]),
              help="What becomes of print and logging; .pt2 and .onnx.")
@click.option("--assertions", type=click.Choice(["keep", "drop", "return"]),
              help="What becomes of assert: return makes results of them; .pt2 and .onnx.")
@click.option("--opset", type=click.IntRange(min=1), metavar="N", help="The version of ONNX's operators; .onnx.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True,
              metavar="SECONDS", help="How long TARGET may run on the example arguments.")
@_train_option
@_verbose_option
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
    """Save TARGET as one program that runs without its Python.

    A .py file is Python that needs torch alone, its weights beside it; with --train it takes gradients. Every file is
    checked against the program on the example arguments before it appears.

    \b
      stillgraph export models.net:Classifier --input "float32[?,16]" -o classifier.pt2
    """
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
        api.save(
            function,
            output,
            args=example.args,
            kwargs=example.kwargs,
            input_spec=example.input_spec,
            time_limit=time_limit,
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


@main.command(epilog=_INPUTS_HELP, short_help="Show what becomes of TARGET, written for TorchScript.")
@click.argument("target")
@click.option("-i", "--input", "inputs", multiple=True, metavar="[METHOD:]SPEC",
              help="An argument of forward, or of a method with @torch.jit.export, see below.")
@click.option("--init", "made_with", multiple=True, metavar="SPEC", help="An argument to make an instance of a class.")
@click.option("--json", "as_json", is_flag=True, help="Write the data as JSON.")
@_train_option
@_verbose_option
def migrate(
    target: str, inputs: tuple[str, ...], made_with: tuple[str, ...], as_json: bool, train: bool, verbose: bool
) -> None:
    """Show what of TARGET becomes one program as it is, what needs a change, and what can be deleted.

    TARGET may be what torch.jit.script or torch.jit.trace made. The exit status is 0 if forward and every method with
    @torch.jit.export become one program each, for example arguments, and 1 if not; without them nothing is captured.

    \b
      stillgraph migrate models.py:Decoder --init "=16" -i "float32[2,16]" -i "step:float32[16]"
    """
    function, calls = load(target, training=train, made_with=_example(made_with)), _examples_by_method(inputs)
    unknown = [name for name in calls if name not in entry_points(function)]
    if unknown:
        raise WrongUsage(f"{unknown[0]!r} is no entry point; there are {', '.join(entry_points(function))}")
    with showing_failures(verbose, f"migrating {target}"):
        migration = migrated(function, calls)
    click.echo(migration.to_json() if as_json else str(migration), nl=as_json)
    sys.exit(0 if migration.is_one_program else 1)


@main.command(short_help="Explain the codes of refusals.")
@click.argument("code", required=False)
def errors(code: str | None) -> None:
    """Explain CODE, the reason that an error ends in, or list all of them.

    \b
      stillgraph errors
      stillgraph errors SG201
    """
    if code is None:
        click.echo("\n".join(f"{reason.code}  {reason.title}" for reason in REASONS.values()))
        return
    reason = _reason(code)
    parts = sections.section(reason.code)
    if parts:
        sections.show(f"{reason.code} {reason.title}", parts, _OUT)
    else:
        click.echo(_told(reason))


@main.command(short_help="Capture, check and save four real programs.")
@click.option("-o", "--out", default="demo-out", show_default=True, metavar="FOLDER",
              type=click.Path(file_okay=False, path_type=Path), help="Where to write the files.")
def demo(out: Path) -> None:
    """Capture four real programs, compare each with eager PyTorch, and save them.

    BERT in training, GPT-2 decoding to ONNX, an early exit under Inductor, a solver as .pt2.

    \b
      stillgraph demo --out demo-out
    """
    from stillgraph import demo as demonstration  # its parts are needed by this command alone

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(f"cannot make {str(out)!r}: {error.strerror}") from error
    if not demonstration.run(out, _OUT):
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


def _reason(text: str) -> Reason:
    """The reason that is meant by ``SG201``, ``sg201`` or ``201``."""
    code = "SG" + text.upper().removeprefix("SG")
    if code not in REASONS:
        nearest = min(REASONS, key=lambda each: [abs(ord(a) - ord(b)) for a, b in zip(each, code)])
        meant = f"{nearest} ({REASONS[nearest].title})"
        raise WrongUsage(f"there is no reason {text!r}; the nearest is {meant}, and `stillgraph errors` lists all")
    return REASONS[code]


def _told(reason: Reason) -> str:
    more = f"docs/errors.md, section {reason.code}"
    return f"{reason.code} {reason.title}\n  {reason.explanation}\n  hint: {reason.hint}\n  more: {more}"


def _static_function(target: Any) -> Any:
    """A static module is the module itself, its `forward` is what was captured."""
    return target.forward if isinstance(target, nn.Module) else target
