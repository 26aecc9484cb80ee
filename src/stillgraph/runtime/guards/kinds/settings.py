"""Guards on what belongs to the process or the thread: torch's modes, settings, environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from stillgraph.program.context import SWITCHES, current_context, function_mode_depth
from stillgraph.program.guards import EnvironmentGuard, ModeGuard, ReadingGuard
from stillgraph.program.sources import Source
from stillgraph.runtime.guards.comparing import same_reading
from stillgraph.runtime.guards.kinds.kind import G, Kind, Read
from stillgraph.runtime.guards.words import shown
from stillgraph.runtime.native.backends import any_autocast
from stillgraph.runtime.native.function_writer import FunctionWriter

_CPU = torch.device("cpu")


class _OfSettings(Kind[G]):
    """What is found at no source."""

    cost = 5

    def sources(self, guard: G) -> Sequence[Source]:
        return ()


class OfReadings(_OfSettings[ReadingGuard]):
    """A function that reads a setting gives what it gave."""

    def miss(self, guard: ReadingGuard, writer: FunctionWriter) -> str:
        call = f"{writer.constant(guard.function)}({', '.join(map(writer.constant, guard.args))})"
        return f"{writer.constant(same_reading)}({call}, {writer.constant(guard.value)}) is False"

    def why(self, guard: ReadingGuard, read: Read) -> str | None:
        value = guard.function(*guard.args)
        if same_reading(value, guard.value):
            return None
        return f"{guard.call} should be {shown(guard.value)}, but is {shown(value)}"


class OfEnvironment(_OfSettings[EnvironmentGuard]):
    """An environment variable, or all of them, are what they were."""

    def miss(self, guard: EnvironmentGuard, writer: FunctionWriter) -> str:
        environ = f"{writer.constant(os)}.environ"
        found = f"{{**{environ}}}" if guard.name is None else f"{environ}.get({guard.name!r})"
        return f"{found} != {writer.constant(guard.value)}"

    def why(self, guard: EnvironmentGuard, read: Read) -> str | None:
        before = guard.value if guard.name is None else {guard.name: guard.value}
        variables = before if guard.name is not None else {**before, **os.environ}
        changed = next((key for key in variables if os.environ.get(key) != before.get(key)), None)
        return None if changed is None else f"os.environ[{changed!r}] should be what it was, but was changed"


class OfModes(_OfSettings[ModeGuard]):
    """torch's modes of the thread are what they were."""

    def miss(self, guard: ModeGuard, writer: FunctionWriter) -> str:
        context = writer.constant(current_context)
        dtype, device = writer.constant(guard.default_dtype), writer.constant(guard.default_device)
        default_device = f"{writer.constant(torch.get_default_device)}() != {device}"
        if guard.default_device == _CPU:  # a default device is a torch function mode: without any, it is the CPU
            default_device = f"({writer.constant(function_mode_depth)}() and {default_device})"
        autocast = f"{context}().autocast != {writer.constant(guard.context.autocast)}"
        if not guard.context.autocast:
            autocast = f"({writer.constant(any_autocast)}() and {autocast})"
        switches = f"{context}().switches != {writer.constant(guard.context.switches)}"
        return " or ".join(
            [
                f"{writer.constant(torch.is_grad_enabled)}() is not {guard.context.grad}",
                f"{writer.constant(torch.is_inference_mode_enabled)}() is not {guard.context.inference}",
                f"{writer.constant(torch.get_default_dtype)}() is not {dtype}",
                autocast,
                default_device,
                *([switches] if guard.switches_matter else ()),
            ]
        )

    def why(self, guard: ModeGuard, read: Read) -> str | None:
        return next(self.reasons(guard, read), None)

    def reasons(self, guard: ModeGuard, read: Read) -> Iterator[str]:
        """A sentence on each mode that is another one."""
        now = current_context()
        facts: tuple[tuple[str, Any, Any], ...] = (
            ("grad mode", guard.context.grad, now.grad),
            ("inference mode", guard.context.inference, now.inference),
            ("the default dtype", guard.default_dtype, torch.get_default_dtype()),
            ("autocast", guard.context.autocast, now.autocast),
            ("the default device", guard.default_device, torch.get_default_device()),
        )
        if guard.switches_matter:
            names = (switch.name for switch in SWITCHES)
            facts = (*facts, *zip(names, guard.context.switches, now.switches))
        for name, expected, found in facts:
            if expected != found:
                yield f"{name} should be {_mode_text(expected)}, but is {_mode_text(found)}"


def _mode_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " and ".join(str(item) for item in value) or "off"
    return str(value)
