"""The adapter to torch's archive of exported programs: one zip file with graphs, weights and our text."""

from __future__ import annotations

import errno
import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from torch.export import ExportedProgram
from torch.export.pt2_archive import PT2ArchiveReader, PT2ArchiveWriter
from torch.export.pt2_archive._package import load_pt2, package_pt2
from torch.export.pt2_archive.constants import (
    CONSTANTS_CONFIG_FILENAME_FORMAT,
    CONSTANTS_DIR,
    WEIGHTS_CONFIG_FILENAME_FORMAT,
    WEIGHTS_DIR,
)

from stillgraph.core.diagnostics import LoadError, load_error
from stillgraph.deploy.exporting.torch_export import quiet, summary
from stillgraph.deploy.pt2.damage import check_sums
from stillgraph.deploy.pt2.patient import patient
from stillgraph.deploy.pt2.serde import without_vain_work
from stillgraph.deploy.pt2.untrusted import check_records

ALONE = "model"
"""The name under which `torch.export.load` looks for a program."""


def write(path: Path, programs: Mapping[str, ExportedProgram], extra: Mapping[str, str]) -> None:
    """Write programs and texts; weights that several programs bring along are in the file once.

    Args:
        path: of the file.
        programs: by name.
        extra: texts by name.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("wb") as file, quiet():
        if len(programs) == 1:
            _package(file, programs, extra)
            return
        with tempfile.TemporaryFile(dir=path.parent) as whole:
            _package(whole, programs, extra)
            with patient(file) as writing:
                _share_weights(PT2ArchiveReader(whole), writing, programs)


def _package(file: IO[bytes], programs: Mapping[str, ExportedProgram], extra: Mapping[str, str]) -> None:
    with patient(file) as writing, without_vain_work():
        package_pt2(writing, exported_programs=dict(programs), extra_files=dict(extra))
    file.seek(0)


def read(file: IO[bytes]) -> tuple[dict[str, ExportedProgram], dict[str, str]]:
    """The programs and texts of an archive, by name.

    Raises:
        LoadError: it is damaged, or reading it could run code.
    """
    file.seek(0)
    try:
        with quiet():
            check_records(PT2ArchiveReader(file), file)
            check_sums(file)
            file.seek(0)
            with without_vain_work():
                contents = load_pt2(file)
    except LoadError:
        raise
    except Exception as error:  # of any kind: torch's reader is not made for damaged files
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that is a place before the start of the file
            raise
        raise load_error(f"it is damaged, or no .pt2 archive ({summary(error)})") from error
    return contents.exported_programs, contents.extra_files


# ---- weights once
def _share_weights(whole: PT2ArchiveReader, file: IO[bytes], names: Mapping[str, Any]) -> None:
    """Copy an archive; what a program brings along that an earlier one has too is not written again."""
    configs = {
        form.format(name): folder
        for name in names
        for form, folder in (
            (WEIGHTS_CONFIG_FILENAME_FORMAT, WEIGHTS_DIR),
            (CONSTANTS_CONFIG_FILENAME_FORMAT, CONSTANTS_DIR),
        )
    }
    kept: dict[Any, list[str]] = {}
    with PT2ArchiveWriter(file) as writer:
        for config, folder in configs.items():
            _copy_payload(whole, writer, config, folder, kept)
        for name in whole.get_file_names():
            written_by_torch = name.startswith(".data/") or name == "byteorder"
            if name not in configs and not name.startswith((WEIGHTS_DIR, CONSTANTS_DIR)) and not written_by_torch:
                writer.write_bytes(name, whole.read_bytes(name))


def _copy_payload(
    whole: PT2ArchiveReader, writer: PT2ArchiveWriter, config: str, folder: str, kept: dict[Any, list[str]]
) -> None:
    """Copy the tensors of one program, or refer to those of an earlier one: two of its own stay two."""
    listed = json.loads(whole.read_string(config))
    places: dict[str, str] = {}
    for payload in listed["config"].values():
        path = payload["path_name"]
        if path not in places:
            data = whole.read_bytes(folder + path)
            key = (folder, payload["tensor_meta"]["dtype"], hashlib.sha256(data).digest())
            same = next((name for name in kept.get(key, []) if name not in places.values()), None)
            if same is None:
                writer.write_bytes(folder + path, data)
                kept.setdefault(key, []).append(path)
            places[path] = same or path
        payload["path_name"] = places[path]
    writer.write_string(config, json.dumps(listed))
