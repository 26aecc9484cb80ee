from __future__ import annotations

import io
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from rich.console import Console
from torch import nn

import stillgraph as sg
from stillgraph import demo
from stillgraph.cli import commands, reasons
from stillgraph.cli.commands import main
from stillgraph.core.diagnostics import refuse
from stillgraph.core.reasons import REASONS

MODELS = '''
import torch
from torch import nn


def halve(x, limit):
    while x.norm() > limit:
        x = x / 2
    return x


def failing(x):
    raise KeyError("no\\nsecond line")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        return self.dropout(x)


def reads_a_file(x):
    with open("weights.txt") as file:
        return x + float(file.read())


class NeedsArguments(nn.Module):
    def __init__(self, width):
        super().__init__()


class NotAModule:
    pass


net = Net()
number = 3
'''

STATIC = '''
import stillgraph as sg
from some_models import Net


@sg.to_static(backend="eager")
def full(x):
    return x + 1 if x.sum() > 0 else x


@sg.to_static(full_graph=False, backend="eager")
def partial(x):
    y = (x * 2).sum()
    print("sum", y.item())
    return x + y


traced = sg.symbolic_trace(Net())
'''


@pytest.fixture(autouse=True)
def _models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with `some_models.py` as the working directory; what a command imports is forgotten afterwards."""
    (tmp_path / "some_models.py").write_text(MODELS)
    (tmp_path / "static_models.py").write_text(STATIC)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)\n")
    monkeypatch.chdir(tmp_path)
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    made = {"some_models", "some_models_file", "static_models", "broken", "leaving"}
    for name in made & (set(sys.modules) - modules):
        del sys.modules[name]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


# ---- what is static already
@pytest.mark.parametrize(
    ("name", "begin"),
    [("full", "def full(x)"), ("partial", "def partial(x)"), ("traced", "def forward(self, x)")],
)
def test_code_of_what_is_static_already(name: str, begin: str) -> None:
    result = invoke("code", f"static_models:{name}")
    assert result.exit_code == 0, result.output
    assert begin in result.stdout
    assert "stillgraph" not in result.stdout


def test_explain_shows_a_plan() -> None:
    result = invoke("explain", "static_models:partial", "-i", "float32[2]")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("partial: 2 subgraphs, 1 break\n")
    assert result.stderr.startswith("sum ")
    told = json.loads(invoke("explain", "static_models:partial", "-i", "float32[2]", "--json").stdout)
    assert [step["text"] for step in told["breaks"]] == ["print('sum', item)"]
    assert invoke("explain", "static_models:traced", "-i", "float32[2]").stdout.startswith("Net.forward: 1 subgraph, ")
    result = invoke("explain", "static_models:full", "-i", "float32[2]")
    assert result.stdout.startswith("full: 3 operations")


def test_a_plan_has_no_page(tmp_path: Path) -> None:
    result = invoke("explain", "static_models:partial", "-i", "float32[2]", "--html", str(tmp_path / "plan.html"))
    assert result.exit_code == 2
    assert "--html is for full graphs" in result.stderr


# ---- the target
@pytest.mark.parametrize("module", ["some_models", "some_models.py", "./some_models.py"])
def test_code_shows_rewritten_python(module: str) -> None:
    result = invoke("code", f"{module}:halve")
    assert result.exit_code == 0, result.output
    assert "def halve(x, limit)" in result.stdout


@pytest.mark.parametrize("name", ["Net", "net", "net.forward"])
def test_classes_instances_and_methods(name: str) -> None:
    result = invoke("code", f"some_models:{name}")
    assert result.exit_code == 0, result.output
    assert "def forward(self, x)" in result.stdout


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("some_models", "must be MODULE:NAME"),
        (":halve", "must be MODULE:NAME"),
        ("some_models:", "must be MODULE:NAME"),
        ("some_models:half", "'some_models' has no 'half'; it has NeedsArguments, Net, NotAModule, failing, halve"),
        ("some_models:net.nothing", "has no 'net.nothing'"),
        ("some_models:number", "is a int, not a function or module"),
        ("some_models:NotAModule", "NotAModule is not an nn.Module"),
        ("some_models:NeedsArguments", "missing 1 required positional argument: 'width'; name an instance"),
        ("no_such_module:f", "cannot import 'no_such_module'"),
        ("no_such_file.py:f", "there is no file 'no_such_file.py'"),
        ("broken:f", "No module named 'nothing_of_this_name'"),
        ("broken.py:f", "No module named 'nothing_of_this_name'"),
        ("leaving.py:f", "cannot import 'leaving.py': SystemExit: 0"),
    ],
)
def test_a_wrong_target_is_one_line_on_stderr(target: str, says: str) -> None:
    result = invoke("code", target)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ((), "no --input is given, and halve(x"),
        (("float32[3]",), "1 --input is given, and halve(x"),
        (("float32[3]", "=2", "=3"), "3 --input are given, and halve(x"),
    ],
)
@pytest.mark.parametrize("command", [("explain",), ("export", "-o", "halve.py")])
def test_inputs_that_make_no_call_are_one_line_on_stderr(
    command: tuple[str, ...], inputs: tuple[str, ...], says: str
) -> None:
    options = [word for each in inputs for word in ("--input", each)]
    result = invoke(*command, "some_models:halve", *options)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "give one --input for each argument" in result.stderr
    assert "TypeError" not in result.stderr
    assert result.stdout == ""


# ---- explain
def test_explain_shows_the_program() -> None:
    result = invoke("explain", "some_models:halve", "--input", "float32[3,4]", "--input", "float32[](1..2)")
    assert result.exit_code == 0, result.output
    assert "halve" in result.stdout
    assert "while" in result.stdout


_HALVE = ("explain", "some_models:halve", "--input", "float32[3,4]", "--input", "float32[](1..2)")


def test_explain_writes_json_to_stdout() -> None:
    result = invoke(*_HALVE, "--json")
    assert result.exit_code == 0, result.output
    loaded = json.loads(result.stdout)
    assert (loaded["schema"], loaded["name"]) == (1, "halve")


def test_explain_writes_files_and_nothing_to_stdout(tmp_path: Path) -> None:
    result = invoke(*_HALVE, "--json", "it.json", "--html", "it.html")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "saved it.html" in result.stderr
    assert json.loads(Path("it.json").read_text())["name"] == "halve"
    assert Path("it.html").read_text().startswith("<!doctype html>")


def test_explain_shows_a_refused_call_and_fails() -> None:
    result = invoke("explain", "some_models:reads_a_file", "--input", "float32[2]", "--html", "it.html")
    assert result.exit_code == 1
    assert "reason SG305" in result.stderr
    assert "Refused." in Path("it.html").read_text()
    result = invoke("explain", "some_models:reads_a_file", "--input", "float32[2]")
    assert result.exit_code == 1
    assert result.stderr.startswith("refused some_models:reads_a_file: ")
    assert result.stderr.endswith("reason SG305\n")
    assert result.stderr.count("\n") == 1
    assert ">" in next(line for line in result.stdout.splitlines() if "with open" in line and "refused" in line)


def test_explain_cannot_write_where_there_is_no_folder() -> None:
    result = invoke(*_HALVE, "--html", "nowhere/it.html")
    assert result.exit_code == 1
    assert "there is no folder 'nowhere'" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("spec", ["float32[2,", "int99[2]", "=nothing"])
def test_a_wrong_input_is_one_line_on_stderr(spec: str) -> None:
    result = invoke("explain", "some_models:halve", "--input", spec)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_what_the_function_raises_is_a_failure_without_traceback() -> None:
    result = invoke("explain", "some_models:failing", "--input", "float32[2]")
    assert result.exit_code == 1
    assert re.search(r"some_models\.py:\d+: KeyError", result.stderr)
    assert "Traceback" not in result.output


def test_verbose_shows_the_traceback() -> None:
    result = invoke("explain", "some_models:failing", "--input", "float32[2]", "--verbose")
    assert isinstance(result.exception, KeyError)


def test_a_refused_capture_is_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **kwargs: Any) -> None:
        raise refuse("SG203", "the arms leave unlike values")

    monkeypatch.setattr(sg, "to_static", refused)
    result = invoke("explain", "some_models:halve", "--input", "float32[2]", "--input", "=1")
    assert result.exit_code == 1
    assert "the arms leave unlike values" in result.stderr
    assert "hint:" in result.stderr


@pytest.mark.parametrize(("flags", "training"), [([], False), (["--train"], True)])
def test_modules_are_captured_in_eval_mode_unless_told(
    monkeypatch: pytest.MonkeyPatch, flags: list[str], training: bool
) -> None:
    seen: list[bool] = []

    def to_static(target: nn.Module, **options: Any) -> Any:
        seen.append(target.training)
        return SimpleNamespace(explain=lambda *args, **kwargs: "it")

    monkeypatch.setattr(sg, "to_static", to_static)
    assert invoke("explain", "some_models:Net", "--input", "float32[2]", *flags).stdout == "it\n"
    assert seen == [training]


# ---- export
@pytest.fixture
def saves(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `save` was asked for; it writes an empty file."""
    asked: list[dict[str, Any]] = []

    def save(target: Any, path: Path, **options: Any) -> None:
        asked.append({"target": target, "path": path, **options})
        path.write_bytes(b"")

    monkeypatch.setattr(sg, "save", save)
    return asked


def test_export_saves(saves: list[dict[str, Any]]) -> None:
    result = invoke("export", "some_models:halve", "-i", "float32[?,3]", "-i", "limit==2.0", "-o", "out.pt2")
    assert result.exit_code == 0, result.output
    (asked,) = saves
    assert asked["target"].__name__ == "halve"
    assert asked["path"] == Path("out.pt2")
    assert asked["args"][0].shape[1] == 3
    assert asked["kwargs"] == {"limit": 2.0}
    assert tuple(asked["input_spec"][0].shape) == (None, 3)


def test_export_with_bounds(saves: list[dict[str, Any]]) -> None:
    given = ["export", "some_models:halve", "-i", "float32[3]", "-i", "limit==2.0", "--max-iterations", "5"]
    assert invoke(*given, "-o", "out.onnx").exit_code == 0
    assert [asked["max_iterations"] for asked in saves] == [5]
    refused = invoke(*given, "-o", "out.py")
    assert refused.exit_code == 2
    assert "--max-iterations is for .pt2 and .onnx" in refused.stderr
    assert len(saves) == 1


def test_export_with_wishes(saves: list[dict[str, Any]]) -> None:
    given = ["export", "some_models:halve", "-i", "float32[3]", "-i", "limit==2.0"]
    wishes = ["--prints", "refuse", "--assertions", "return", "--opset", "20"]
    assert invoke(*given, *wishes, "-o", "out.onnx").exit_code == 0
    (asked,) = saves
    assert (asked["prints"], asked["assertions"], asked["opset"]) == ("refuse", "return", 20)


@pytest.mark.parametrize(
    ("wish", "output", "says"),
    [
        (["--opset", "20"], "out.pt2", "--opset is for .onnx"),
        (["--opset", "20"], "out.py", "--opset is not for .py"),
        (["--assertions", "drop"], "out.py", "--assertions is not for .py, which prints and asserts as the original"),
        (["--prints", "drop"], "out.py", "--prints is not for .py"),
    ],
)
def test_a_wish_that_a_format_cannot_fulfil(
    saves: list[dict[str, Any]], wish: list[str], output: str, says: str
) -> None:
    refused = invoke("export", "some_models:halve", "-i", "float32[3]", "-i", "limit==2.0", *wish, "-o", output)
    assert refused.exit_code == 2
    assert says in refused.stderr
    assert not saves


@pytest.mark.parametrize(
    ("output", "says"), [("out.zip", "must end in .pt2, .onnx or .py"), ("no_folder/out.pt2", "there is no folder")]
)
def test_a_wrong_output_is_one_line_on_stderr(saves: list[dict[str, Any]], output: str, says: str) -> None:
    result = invoke("export", "some_models:halve", "-o", output)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert saves == []


def test_export_for_real(tmp_path: Path) -> None:
    result = invoke("export", "some_models:halve", "-i", "float32[3]", "-i", "float32[](1..2)", "-o", "halve.pt2")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "halve.pt2").stat().st_size > 0


def test_export_python_source(tmp_path: Path) -> None:
    result = invoke("export", "some_models:halve", "-i", "float32[3]", "-i", "float32[](1..2)", "-o", "written.py")
    assert result.exit_code == 0, result.output
    assert "def halve(x" in (tmp_path / "written.py").read_text()


# ---- errors
def test_errors_lists_every_code_with_its_title() -> None:
    lines = invoke("errors").stdout.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [[code, reason.title] for code, reason in REASONS.items()]


@pytest.mark.parametrize("code", REASONS)
def test_errors_shows_the_section_of_a_code_with_its_examples(code: str) -> None:
    shown = invoke("errors", code).stdout
    assert shown.startswith(f"{code} {REASONS[code].title}\n\n")
    page = (Path(__file__).parents[3] / "docs/errors.md").read_text()
    text = page.partition(f"\n## {code} ")[2].partition("\n## ")[0].partition("\n# ")[0]
    blocks = re.findall(r"^```python.*?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert all(textwrap.indent(block.strip("\n"), "    ") in shown for block in blocks)
    assert shown.count("Refused:") + shown.count("Told by explain:") + shown.count("Instead:") == len(blocks)
    assert "```" not in shown


def test_errors_has_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(reasons, "OUT", Console(file=text, force_terminal=True, width=200, color_system="standard"))
    invoke("errors", "SG201")
    assert "\x1b[" in text.getvalue()
    assert "Refused:" in text.getvalue()


@pytest.mark.parametrize("code", REASONS)
def test_errors_explains_a_code_without_the_page(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    reason = REASONS[code]
    assert invoke("errors", code).stdout.splitlines() == [
        f"{code} {reason.title}",
        f"  {reason.explanation}",
        f"  hint: {reason.hint}",
        f"  more: docs/errors.md, section {code}",
    ]


@pytest.mark.parametrize("spelled", ["201", "sg201", "Sg201"])
def test_errors_takes_a_code_as_people_type_it(spelled: str) -> None:
    assert invoke("errors", spelled).stdout == invoke("errors", "SG201").stdout


@pytest.mark.parametrize(
    ("code", "nearest"), [("SG2011", "SG201"), ("109", "SG107"), ("sg599", "SG503"), ("2", "SG201")]
)
def test_errors_names_the_nearest_code(code: str, nearest: str) -> None:
    result = invoke("errors", code)
    assert result.exit_code == 2
    assert f"there is no reason {code!r}; the nearest is {nearest}" in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_error_says_which_command_explains_it() -> None:
    assert str(refuse("SG203", "unlike values")).endswith("\n  reason SG203 (stillgraph errors SG203)")


# ---- demo
@pytest.mark.parametrize(("agrees", "status"), [(True, 0), (False, 1)])
def test_demo_says_by_its_status_whether_all_agreed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, agrees: bool, status: int
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(demo, "run", lambda out, console: asked.append(out) or agrees)
    assert invoke("demo", "--out", "files").exit_code == status
    assert asked == [Path("files")]


def test_demo_cannot_write_into_a_file(tmp_path: Path) -> None:
    result = invoke("demo", "--out", "some_models.py/under")
    assert result.exit_code == 2
    assert "cannot make" in result.stderr


# ---- help
@pytest.mark.parametrize("command", [[], *([name] for name in commands.main.commands)])
def test_help_teaches(command: list[str]) -> None:
    result = invoke(*command, "--help")
    assert result.exit_code == 0
    assert "stillgraph" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


# ---- migrate
SCRIPTED = '''
import torch
from typing import List


class Decoder(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        outputs = torch.jit.annotate(List[torch.Tensor], [])
        while x.norm() > self.size:
            x = x / 2
        return x

    @torch.jit.export
    def step(self, x, scale: float = 1.0):
        return x * scale if x.sum() > 0 else x

    @torch.jit.export
    def reads(self, x):
        return x + len(open("weights.txt").read())
'''
_MIGRATE = ("migrate", "scripted_models.py:Decoder", "--init", "=2")


@pytest.fixture
def _scripted(tmp_path: Path) -> Iterator[None]:
    (tmp_path / "scripted_models.py").write_text(SCRIPTED)
    yield
    for name in ("scripted_models", "scripted_models_file"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("_scripted")
def test_migrate_tells_of_every_entry_point() -> None:
    inputs = ("float32[3]", "step:float32[3]", "step:scale==2.0", "reads:float32[3]")
    result = invoke(*_MIGRATE, *(each for text in inputs for each in ("-i", text)))
    assert result.exit_code == 1, result.output
    assert [" ".join(line.split()) for line in result.stdout.splitlines()[1:4]] == [
        "forward one program, 3 regions",
        "step one program, 3 regions",
        "reads refused (SG305)",
    ]
    assert "scripted_models.py:23  SG305 state outside the program" in result.stdout
    assert "torch.jit.annotate  scripted_models.py:12" in result.stdout


@pytest.mark.usefixtures("_scripted")
def test_migrate_as_json_ends_well_if_all_is_one_program() -> None:
    result = invoke("migrate", "some_models:halve", "-i", "float32[3]", "-i", "=1.0", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["is_one_program"] is True


@pytest.mark.usefixtures("_scripted")
def test_migrate_without_inputs_says_how_to_give_them() -> None:
    result = invoke(*_MIGRATE)
    assert result.exit_code == 1
    assert '  --input "float32[2,3]"\n  --input "step:float32[2,3]"' in result.stdout
    assert "torch.jit.export" in result.stdout


@pytest.mark.usefixtures("_scripted")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*_MIGRATE, "-i", "other:float32[3]"), "'other' is no entry point; there are forward, step, reads"),
        ((*_MIGRATE, "-i", "step:float"), "neither a tensor"),
        (_MIGRATE[:2], "missing 1 required positional argument: 'size'"),
        (("migrate", "scripted_models.py:Encoder"), "has no 'Encoder'"),
    ],
)
def test_migrate_used_wrongly(arguments: tuple[str, ...], says: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr


# ---- arguments from a file, and ones that a loop never ends for
def test_what_was_tried_is_told_where_a_loop_does_not_end(tmp_path: Path) -> None:
    inputs = ("-i", "float32[3]", "-i", "float32[](-2..-1)")
    result = invoke("export", "some_models:halve", *inputs, "-o", "halve.py", "--time-limit", "0.2")
    assert result.exit_code == 1
    assert "runs for more than 0.2 s on the example arguments" in result.stderr
    assert re.search(r"Tried was \(float32\[3\] from -?[\d.]+ to [\d.]+, float32\[\] of -1\.\d+\)", result.stderr)
    assert "--values" in result.stderr
    assert not (tmp_path / "halve.py").exists()


def test_values_from_a_file(tmp_path: Path) -> None:
    torch.save((torch.ones(3), torch.tensor(0.5)), tmp_path / "values.pt")
    shapes = ("-i", "float32[?]", "-i", "float32[]")
    result = invoke("export", "some_models:halve", "--values", "values.pt", *shapes, "-o", "halve.py")
    assert result.exit_code == 0, result.output
    result = invoke("explain", "some_models:halve", "--values", "values.pt")
    assert result.exit_code == 0, result.output
    result = invoke("explain", "some_models:halve", "--values", "values.pt", "-i", "float32[?]")
    assert result.exit_code == 2
    assert "'values.pt' holds 2 arguments in order, and --input describes 1" in result.stderr
    result = invoke("explain", "some_models:halve", "--values", "some_models.py")
    assert result.exit_code == 2
    assert "'some_models.py' holds no arguments in the form of a .pt or .npz" in result.stderr
