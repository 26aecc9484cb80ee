"""The commands, as the command line takes them. What they do is imported when it is done."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from stillgraph.cli import later
from stillgraph.cli.usage import split_target
from stillgraph.core.reasons import REASONS

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
    See which versions are here, and what works with them:
      stillgraph doctor
    """


def _files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _codes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(code, help=r.title) for code, r in REASONS.items() if code.startswith(incomplete.upper())]


_target_argument = click.argument("target", shell_complete=_files)
_input_option = click.option("-i", "--input", "inputs", multiple=True, metavar="SPEC", help="An argument, see below.")
_values_option = click.option("--values", type=click.Path(dir_okay=False, exists=True, path_type=Path), metavar="FILE",
                              help="A .pt or .npz file with the arguments, see below.")
_verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show the whole traceback of a failure.")
_train_option = click.option("--train", is_flag=True, help="Keep a module in training mode instead of eval mode.")


# ---- commands
@main.command(epilog=_INPUTS_HELP, short_help="Show the program that TARGET becomes.")
@_target_argument
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
    split_target(target)
    later.explain(target, inputs, values, html, as_json, train, verbose)


@main.command(short_help="Show TARGET rewritten.")
@_target_argument
@_verbose_option
def code(target: str, verbose: bool) -> None:
    """Show TARGET rewritten: still plain Python, its control flow now in operators.

    \b
      stillgraph code solver.py:halve
    """
    split_target(target)
    later.code(target, verbose)


@main.command(epilog=_INPUTS_HELP, short_help="Save TARGET as a .pt2, .onnx or .py file.")
@_target_argument
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
    split_target(target)
    later.export(target, inputs, values, output, time_limit, train, verbose, **wishes)


@main.command(epilog=_INPUTS_HELP, short_help="Show what becomes of TARGET, written for TorchScript.")
@_target_argument
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
    split_target(target)
    later.migrate(target, inputs, made_with, as_json, train, verbose)


@main.command(short_help="Explain the codes of refusals.")
@click.argument("code", required=False, shell_complete=_codes)
def errors(code: str | None) -> None:
    """Explain CODE, the reason that an error ends in, or list all of them.

    \b
      stillgraph errors
      stillgraph errors SG201
    """
    later.errors(code)


@main.command(short_help="Capture, check and save four real programs.")
@click.option("-o", "--out", default="demo-out", show_default=True, metavar="FOLDER",
              type=click.Path(file_okay=False, path_type=Path), help="Where to write the files.")
def demo(out: Path) -> None:
    """Capture four real programs, compare each with eager PyTorch, and save them.

    BERT in training, GPT-2 decoding to ONNX, an early exit under Inductor, a solver as .pt2.

    \b
      stillgraph demo --out demo-out
    """
    later.demo(out)


@main.command(short_help="Show which versions are here, and what works.")
def doctor() -> None:
    """Show the versions of what stillgraph uses, and try what it does: calls, training, compiling, saving.

    Add what it prints to a report of a problem. The exit status is 1 if something fails that should work.

    \b
      stillgraph doctor
    """
    later.doctor()


@main.command(short_help="Print what makes a shell complete commands.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete the commands and options of stillgraph.

    \b
      stillgraph completion bash >> ~/.bashrc
      stillgraph completion zsh >> ~/.zshrc
      stillgraph completion fish > ~/.config/fish/completions/stillgraph.fish
    """
    made = get_completion_class(shell)
    assert made is not None, "click has a class for each of these shells"
    click.echo(made(main, {}, "stillgraph", "_STILLGRAPH_COMPLETE").source())
