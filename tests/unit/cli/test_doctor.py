"""`stillgraph doctor` and `completion`; commands that are wrong are told without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner

from stillgraph.cli import doctor
from stillgraph.cli.commands import main


def fails() -> None:
    raise ValueError("first\nsecond")


def test_doctor_tells_versions_and_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {"call and train": lambda: doctor._check_call("eager"), "save .onnx": "not tried: the extra is missing"}
    monkeypatch.setattr(doctor, "_checks", lambda: checks)
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 0
    assert f"torch                   {torch.__version__}" in result.output
    assert "call and train          ok\n" in result.output
    assert "save .onnx              not tried: the extra is missing" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_doctor_tells_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_checks", lambda: {"save .pt2": fails})
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 1
    assert "save .pt2               FAILS  ValueError: first\n" in result.output


def test_a_version_that_is_not_supported_is_told() -> None:
    assert doctor._support("torch", (2, 13), (2, 11), (2, 14)) == ""
    assert doctor._support("torch", (2, 10), (2, 11), (2, 14)) == " (supported are torch 2.11 to 2.14)"


@pytest.mark.slow
def test_all_that_doctor_tries_works_here() -> None:
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_STILLGRAPH_COMPLETE" in result.output


@pytest.mark.parametrize(
    ("words", "wanted"), [("stillgraph exp", "plain,export"), ("stillgraph errors SG20", "plain,SG201")]
)
def test_a_shell_completes_commands_and_codes(words: str, wanted: str) -> None:
    asked = {"_STILLGRAPH_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = CliRunner().invoke(main, prog_name="stillgraph", env=asked)
    assert wanted in result.output.splitlines()


@pytest.mark.parametrize(
    ("target", "told"), [("models", "must be MODULE:NAME"), ("missing.py:f", "there is no file 'missing.py'")]
)
def test_a_target_that_is_wrong_is_told_without_torch(target: str, told: str) -> None:
    code = (
        "import sys\nfrom stillgraph.cli.commands import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n    print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, "explain", target], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "False\n")
    assert told in done.stderr
