"""Running saved files where neither stillgraph nor the code of the tests can be imported."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

_HEAD = "import sys\nsys.modules['stillgraph'] = sys.modules['tests'] = None\nimport torch\n"


def alone(script: str) -> str:
    """Run a script in a fresh process that has torch and no stillgraph.

    Args:
        script: Python source; torch is imported.

    Returns:
        What it prints.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-W", "ignore", "-c", _HEAD + textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
