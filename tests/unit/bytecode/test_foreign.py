"""Objects of C's that were there before, in segments: each call changes them, in its turn."""

from __future__ import annotations

import decimal
import hashlib
import io
import pickle
import sqlite3
import threading
import zlib
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

import pytest
import torch

from tests.unit.bytecode.segmented import CALLS, Record, X, agrees, reasons, to_partial


def connection() -> Any:
    made = sqlite3.connect(":memory:")
    made.execute("create table seen (value real)")
    return made


def insert(made: Any, x: Any) -> Any:
    made.execute("insert into seen values (?)", (x.sum().item(),))
    return made.execute("select count(*), sum(value) from seen").fetchone()


def update(made: Any, x: Any) -> Any:
    made.update(str(x.tolist()).encode())
    return made.hexdigest()


def dump(made: Any, x: Any) -> Any:
    made[1].dump(1)
    return len(made[0].getvalue())


def pickler() -> Any:
    file = io.BytesIO()
    return file, pickle.Pickler(file)


USES: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "a connection": (connection, insert),
    "a lock": (threading.Lock, lambda made, x: made.acquire(blocking=False)),
    "a checksum": (hashlib.md5, update),
    "a compressor": (zlib.compressobj, lambda made, x: made.compress(b"a" * 100) + made.flush(zlib.Z_SYNC_FLUSH)),
    "a pickler": (pickler, dump),
    "a context of decimals": (decimal.Context, lambda made, x: (made.divide(1, 3), str(made.clear_flags()))),
}


@pytest.mark.parametrize("what", USES)
def test_what_was_there_is_changed_in_each_call(what: str) -> None:
    make, use = USES[what]
    outcomes = []
    for wrap in (lambda f: f, to_partial):
        made = make()

        def f(x: Any, made: Any = made) -> Any:
            y = x + 1
            return use(made, y), y

        function = wrap(f)
        outcomes.append([function(X * number)[0] for number in (1, 1, 2, 3)])
    assert outcomes[1] == outcomes[0]


A, B = "A", "B"


def two_names(x: Any) -> Any:
    print(A)
    print(B)
    return x + 1


def test_functions_of_one_code_with_other_globals(capsys: pytest.CaptureFixture[str]) -> None:
    other = FunctionType(two_names.__code__, {**globals(), "A": "A2", "B": "B2"})

    def calls(x: Any, function: Any) -> Any:
        return function(x) * 2

    static = to_partial(calls)
    for function in (two_names, two_names, two_names, other, two_names):
        torch.testing.assert_close(static(X, function), (X + 1) * 2)
    assert capsys.readouterr().out.split() == ["A", "B"] * 3 + ["A2", "B2"] + ["A", "B"]


def test_a_class_that_stores_by_pythons_own_way_is_followed() -> None:
    def make(record: Record) -> Any:
        class Config:
            names: ClassVar = {"kind": "kind_of_problem"}  # as those of Hugging Face are

            def __init__(self) -> None:
                self.kind_of_problem, self.unused, self.calls = None, 1, 0

            def __setattr__(self, key: str, value: Any) -> None:
                record(("set", key))
                super().__setattr__(self.names.get(key, key), value)

            def __getattribute__(self, key: str) -> Any:
                names = super().__getattribute__("names")
                return super().__getattribute__(names.get(key, key))

            def __delattr__(self, key: str) -> None:
                super().__delattr__(self.names.get(key, key))

        config: Any = Config()

        def function(x: Any) -> Any:
            if config.kind is None:
                config.kind = "regression"
            if hasattr(config, "unused"):
                del config.unused
            config.calls += 1
            config.last = x * 2
            if x.sum() > 0:
                x = x + config.calls
            return x, config.kind, config.last, dict(vars(config))

        return function

    assert not reasons(agrees(make, *CALLS))


def test_what_a_class_of_cs_stores_is_left_to_python() -> None:
    def make(record: Record) -> Any:
        class Stream(io.StringIO):
            def __setattr__(self, key: str, value: Any) -> None:
                super().__setattr__(key, value)

        stream: Any = Stream()

        def function(x: Any) -> Any:
            stream.last = x.sum().item()
            return x * 2, stream.last

        return function

    agrees(make, *CALLS)
