"""Functions that do something to the world outside, for `test_acts`; `FOLDER` is where they do it."""
# ruff: noqa: B028, UP031  (what users write)

from __future__ import annotations

import csv
import functools
import io
import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

LOG = logging.getLogger("tests.acting")
FOLDER = Path("nowhere")
STREAM = io.StringIO()
NET = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))


# ---- files
def removes(x: Tensor) -> Tensor:
    if x.sum() < 0:
        os.remove(FOLDER / "kept")
    return x


def writes_text(x: Tensor) -> Any:
    count = 0
    if x.sum() < 0:
        count = (FOLDER / "text").write_text(f"{x.sum().item():.2f}")
    return x, count


def makes_folders(x: Tensor) -> Tensor:
    os.makedirs(FOLDER / "a" / "b", exist_ok=True)
    if x.sum() < 0:
        os.rmdir(FOLDER / "a" / "b")
    return x


def copies(x: Tensor) -> Tensor:
    if x.sum() < 0:
        shutil.copy(FOLDER / "kept", FOLDER / "copy")
        shutil.rmtree(FOLDER / "tree")
    return x


def runs_a_process(x: Tensor) -> Tensor:
    if x.sum() < 0:
        subprocess.run([sys.executable, "-c", f"open({str(FOLDER / 'ran')!r}, 'w').close()"], check=True)
    return x


def saves_the_best(x: Tensor) -> Tensor:
    if x.sum() < 0:
        torch.save({"net": NET.state_dict(), "loss": x.sum().item(), "x": x}, FOLDER / "best.pt")
    return x * 2


def saves_arrays(x: Tensor) -> Tensor:
    np.save(FOLDER / "array.npy", x.numpy())
    return x


def removes_what_may_be_missing(x: Tensor) -> Tensor:
    try:
        os.remove(FOLDER / "kept")
    except FileNotFoundError:
        x = x + 1
    return x


def raises_at_a_missing_file(x: Tensor) -> Tensor:
    print("before")
    os.rename(FOLDER / "missing", FOLDER / "other")
    return x


def in_a_loop(x: Tensor) -> Tensor:
    while x.sum() > 1:
        x = x / 2
        LOG.info("halved to %.3f", x.sum().item())
        time.sleep(0)
        os.makedirs(FOLDER / "loop", exist_ok=True)
    return x


# ---- streams
def writes_to_streams(x: Tensor) -> Any:
    sys.stdout.write(f"{x.sum().item():.3f}\n")
    sys.stdout.writelines(["a", "b\n"])
    sys.stdout.flush()
    count = STREAM.write("%d,%f\n" % (1, x.sum().item()))
    print("printed", x.sum().item(), file=STREAM, flush=True)
    return count


def dumps(x: Tensor) -> None:
    if x.sum() < 0:
        json.dump({"loss": x.sum().item(), "all": x.tolist()}, STREAM)


WRITER = csv.writer(STREAM)


def writes_rows(x: Tensor) -> None:
    WRITER.writerow(["loss", x.sum().item()])


def keeps_a_stream_of_its_own(x: Tensor) -> Any:
    stream = io.StringIO()
    stream.write("a")
    stream.write("b")
    return stream.getvalue(), x


# ---- logging
class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log = LOG
        self.adapter = logging.LoggerAdapter(LOG, {"who": "holder"})

    def forward(self, x: Tensor) -> Tensor:
        self.log.info("sum %s", x.sum())
        if x.sum() < 0:
            self.adapter.warning("negative %.1f, %s", x.sum().item(), {"all": [x[0].item()]})
        return x


def logs(x: Tensor) -> Tensor:
    LOG.warning("step")
    if x.sum() < 0:
        LOG.error(f"negative {x.sum().item()}")
        logging.getLogger("tests.acting").log(logging.INFO, "a " + str(x.sum().item()))
    elif LOG.isEnabledFor(logging.DEBUG):
        LOG.debug("positive")
    return x


def said(message: str) -> None:
    LOG.info(message, stacklevel=2)


def logs_for_its_caller(x: Tensor) -> Tensor:
    if x.sum() < 0:
        said("negative")
    said("always")
    return x


@functools.lru_cache
def said_once(message: str) -> None:
    LOG.warning(message)


def logs_once(x: Tensor) -> Tensor:
    if x.sum() < 0:
        said_once("negative")
    return x


def logs_what_it_changes(x: Tensor) -> Tensor:
    seen = [1]
    LOG.info("%s %s", seen, {2})
    seen.append(2)
    LOG.info("%s", seen)
    return x


# ---- warnings
def warns(x: Tensor) -> Tensor:
    if x.sum() < 0:
        warnings.warn("negative", RuntimeWarning)
    warnings.warn(f"sum {x.sum().item()}")
    return x


def deprecated() -> None:
    warnings.warn("old", DeprecationWarning, stacklevel=2)


def warns_for_its_caller(x: Tensor) -> Tensor:
    deprecated()
    return x


def warns_for_the_outermost(x: Tensor) -> Tensor:
    warnings.warn("from outside", FutureWarning, stacklevel=2)
    return x


def catches_a_warning(x: Tensor) -> Tensor:
    try:
        warnings.warn("to be caught", RuntimeWarning)
    except RuntimeWarning:
        return x + 1
    return x


def keeps_warnings_quiet(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("unheard")
    return x


# ---- refused
def opens_for_writing(x: Tensor) -> Tensor:
    if x.sum() < 0:
        open(FOLDER / "kept", "w").close()
    return x


def opens_a_path(x: Tensor) -> Tensor:
    with (FOLDER / "kept").open(mode="w") as file:
        file.write(f"{x}")
    return x


def pickles_an_object(x: Tensor) -> Tensor:
    pickle.dump(NET, STREAM)  # type: ignore[arg-type]
    return x


def uses_what_a_process_gives(x: Tensor) -> Any:
    done = subprocess.run(["true"])
    return done.returncode + x


def reads_what_it_writes(x: Tensor) -> Any:
    os.makedirs(FOLDER / "read", exist_ok=True)
    return os.path.exists(FOLDER / "read"), x


def reads_its_stream(x: Tensor) -> Any:
    STREAM.write("a")
    return STREAM.getvalue(), x


def changes_the_environment(x: Tensor) -> Tensor:
    if x.sum() < 0:
        os.environ["STILLGRAPH_TEST"] = "set"
    return x


def logs_the_stack(x: Tensor) -> Tensor:
    LOG.info("here", stack_info=True)
    return x


def prints_to_a_file_of_its_own(x: Tensor) -> Tensor:
    print(x, file=io.StringIO())
    return x
