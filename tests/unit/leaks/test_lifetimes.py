"""What a static function, a program or a capture held is freed with it."""

from __future__ import annotations

import gc
import linecache
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.trace.capture.session import Session
from tests.unit.leaks.objects import alive
from tests.unit.leaks.test_steps import Net


def sessions() -> set[int]:
    """The captures that something still holds."""
    gc.collect()
    return {id(each) for each in gc.get_objects() if type(each) is Session}


def references(*objects: Any) -> list[weakref.ref[Any]]:
    return [weakref.ref(each) for each in objects]


# ---- dropping a static function
def test_a_module_its_programs_and_its_tensors() -> None:
    model = sg.to_static(Net(), backend="eager")
    model(torch.randn(5, 4))[0].sum().backward()
    program = model.forward.programs[0]
    held = references(model, model.forward.__func__, model.first.weight, program, program.graph)
    assert alive(held) != []
    del model, program
    assert alive(held) == []


@pytest.mark.slow
def test_a_module_with_inductor() -> None:
    model = sg.to_static(Net(), backend="inductor")
    for _ in range(3):
        model(torch.randn(5, 4))[0].sum().backward()
    program = model.forward.programs[0]
    held = references(model, model.forward.__func__, model.first.weight, program, program.graph)
    del model, program
    assert alive(held) == []


def test_a_function_and_what_it_closes_over() -> None:
    def call() -> list[weakref.ref[Any]]:
        kept = torch.randn(10, requires_grad=True)

        def function(x: Tensor) -> Tensor:
            return x * kept.sum() if x.sum() > 0 else x

        static = sg.to_static(function, backend="eager")
        static(torch.ones(3)).sum().backward()
        return references(kept, function, static, static.programs[0])

    assert alive(call()) == []


def test_after_explaining_exporting_and_rolling_back() -> None:
    model = sg.to_static(Net(), backend="eager")
    x = torch.randn(5, 4)
    texts = str(model.forward.explain(x)), str(model.forward.get_program(x))
    program = sg.export(model, (x,))
    held = references(model.forward.programs[0], program)
    model.forward.rollback()
    del program
    assert alive(held) == []
    held = references(model, model.first.weight)
    del model
    assert alive(held) == []
    assert all(texts)


def test_the_text_of_a_driver_goes_with_it() -> None:
    def drivers() -> set[str]:
        gc.collect()
        return {name for name in linecache.cache if name.startswith("<stillgraph")}

    before = drivers()
    static = sg.to_static(lambda x: x * 2 if x.sum() > 0 else x, backend="eager")
    static(torch.ones(3))
    assert len(drivers() - before) == 1
    del static
    assert drivers() - before == set()


# ---- what a program does not hold
def test_arguments() -> None:
    class Settings:
        def __init__(self) -> None:
            self.weight, self.factor = torch.randn(3), 2.0
            self.function = lambda x: x * 2

    def function(model: nn.Module, settings: Any, x: Tensor) -> Any:
        y = settings.function(model(x)[0].sum() * x[0, 0]) * settings.factor
        return y + settings.weight if y.sum() > 0 else y

    static = sg.to_static(function, backend="eager")

    def call() -> list[weakref.ref[Any]]:
        model, settings, x = Net(), Settings(), torch.randn(5, 4)
        static(model, settings, x)
        return references(model, model.first.weight, settings, settings.weight, settings.function, x)

    assert alive(call()) == []
    assert static.cache_info().programs == 1


def test_inputs_are_let_go_at_once() -> None:
    static = sg.to_static(lambda x: x * 2 if x.sum() > 0 else x, backend="eager")
    static(torch.ones(3))
    x = torch.ones(3)
    reference = weakref.ref(x)
    static(x)
    gc.disable()
    try:
        del x
        assert reference() is None
    finally:
        gc.enable()


class Held:
    def __init__(self) -> None:
        self.k, self.n, self.h = 2.0, 0, torch.zeros(3)


def _reads(held: Any, x: Tensor) -> Any:
    return x * held.k


def _writes(held: Any, x: Tensor) -> Any:
    held.n += 1
    held.h = held.h + x
    return x * held.n


@pytest.mark.parametrize("use", [_reads, _writes])
def test_an_object_behind_a_weak_reference_is_let_go_at_once(use: Any) -> None:
    held: Any = Held()
    reference = weakref.ref(held)

    def f(x: Tensor) -> Any:
        found = reference()
        return x - 1 if found is None else use(found, x)

    static = sg.to_static(f, backend="eager")
    gc.collect()
    gc.disable()
    try:
        for k in (2.0, 3.0, 4.0):
            held.k = k
            assert torch.equal(static(torch.ones(3)), torch.ones(3) * (k if use is _reads else held.n))
        del held
        assert reference() is None
        assert torch.equal(static(torch.ones(3)), torch.zeros(3))
    finally:
        gc.enable()


class Unpicklable(Exception):
    """An exception that cannot be copied by its arguments."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


@pytest.mark.parametrize("error", [ValueError("no"), Unpicklable(3, "no")])
def test_inputs_of_a_program_that_raises_are_let_go_at_once(error: Exception) -> None:
    def function(x: Tensor) -> Tensor:
        if x.sum() > 0:
            raise error
        return x

    static = sg.to_static(function, backend="eager")
    static(-torch.ones(3))
    x = torch.ones(3)
    reference = weakref.ref(x)
    gc.collect()
    gc.disable()
    try:
        found = None
        try:
            static(x)
        except (ValueError, Unpicklable) as raised:
            found = (raised is error, type(raised), str(raised), vars(raised))
        assert found == (True, type(error), str(error), vars(error))
        error.__traceback__ = None  # which holds the frames that it has passed, as eager's does
        del x
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore:.*already has 2 programs")
def test_a_program_dropped_from_a_full_cache() -> None:
    static = sg.to_static(lambda x, text: x * len(text) if x.sum() > 0 else x, backend="eager", cache_size=2)
    programs = []
    for number in range(5):
        static(torch.ones(3), str(number))
        programs.append(weakref.ref(static.programs[0]))
    assert len(alive(programs)) == 2


class Key:
    """An object that is compared by what it is, not by what it holds."""

    def __init__(self, rate: float) -> None:
        self.rate = rate


class NamedKey:
    """An object that is a key by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedKey) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def test_objects_in_a_set() -> None:
    keys = [Key(2.0), Key(3.0)]
    held = [{*keys}]
    static = sg.to_static(lambda x: x * sum(key.rate for key in held[0]), backend="eager")
    x = torch.ones(2)
    assert static(x).tolist() == static(x).tolist() == [5.0, 5.0]
    assert static.cache_info().programs == 1
    gone = references(*keys)
    keys.clear()
    held[0] = set()
    assert alive(gone) == []
    assert static(x).tolist() == [0.0, 0.0]


def test_keys_that_are_equal_by_what_they_hold() -> None:
    table = {NamedKey("a"): 2.0}
    static = sg.to_static(lambda x: x * sum(table.values()), backend="eager")
    x = torch.ones(2)
    static(x)
    (first,) = table
    table.clear()
    table[NamedKey("a")] = 2.0
    assert static(x).tolist() == [2.0, 2.0]
    assert static.cache_info().programs == 1
    table.clear()
    table[NamedKey("b")] = 2.0
    assert str(static.explain_miss(x)).startswith("the keys of table should be [<NamedKey>]")
    del first


def test_no_session_outlives_its_capture() -> None:
    before = sessions()

    def function(model: nn.Module, x: Tensor) -> Any:
        return model(x)

    static = sg.to_static(function, backend="eager")
    static(Net(), torch.randn(5, 4))
    assert sessions() <= before


# ---- captures that fail
def test_a_refused_capture_keeps_nothing() -> None:
    before = sessions()

    def make() -> list[weakref.ref[Any]]:
        model = Net()

        def function(x: Tensor) -> Tensor:
            y = model(x)[0]
            torch.set_grad_enabled(False)
            return y

        def call() -> list[weakref.ref[Any]]:
            x = torch.randn(5, 4)
            with pytest.raises(sg.CaptureError):
                static(x)
            return references(x)

        static = sg.to_static(function, backend="eager")
        assert alive(call()) == []
        assert sessions() <= before
        assert static.cache_info().programs == 0
        return references(model, function, static)

    assert alive(make()) == []


def test_an_error_that_is_kept_does_not_keep_the_capture() -> None:
    def function(x: Tensor) -> Tensor:
        x = x * 2
        raise ValueError("always")

    others = sessions()  # what other tests have left in kept errors of theirs
    static = sg.to_static(function, backend="eager")
    with pytest.raises(ValueError, match="always") as caught:
        static(torch.ones(3))
    assert caught.value.__context__ is None
    assert sessions() <= others


# ---- what is remembered of code and classes
def test_weakly_cached() -> None:
    calls = []

    class Key:
        pass

    @weakly_cached
    def find_out(key: Key) -> int:
        """Its own."""
        calls.append(1)
        return len(calls)

    key = Key()
    assert (find_out(key), find_out(key), find_out(Key())) == (1, 1, 2)
    assert find_out.__doc__ == "Its own."
    held = references(key)
    del key
    assert alive(held) == []


def test_code_and_classes(tmp_path: Any) -> None:
    file = tmp_path / "made.py"
    file.write_text(
        "import torch\n"
        "class Made(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        try:\n"
        "            return x * 2 if x.sum() > 0 else x\n"
        "        except ZeroDivisionError:\n"
        "            return x\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    kind = namespace["Made"]
    sg.to_static(kind(), backend="eager")(torch.ones(3))
    held = references(kind, kind.forward.__code__)
    namespace.clear()
    del kind
    assert alive(held) == []


# ---- without the collector
class Owner:
    """An object of the user's, as captures read and write it."""

    def __init__(self) -> None:
        self.value, self.parts, self.weight = 1, [1], torch.ones(3, requires_grad=True)


def of_attributes(owner: Any, x: Tensor) -> Any:
    owner.value = owner.value + 1
    owner.last = x * 2
    owner.parts.append(2)
    return x * owner.value * owner.weight


def of_a_generator(owner: Any, x: Tensor) -> Any:
    return sum(x * i + owner.value for i in range(3))


def of_an_exception(owner: Any, x: Tensor) -> Any:
    owner.value += 1
    raise ValueError("no")


def of_a_staged_exception(owner: Any, x: Tensor) -> Any:
    if x.sum() > 0:
        raise ValueError("positive")
    return x * owner.value


def of_a_branch(owner: Any, x: Tensor) -> Any:
    if x.sum() > 0:
        owner.value, y = 2, x * owner.value
    else:
        y = x - 1
    return y


def of_a_loop(owner: Any, x: Tensor) -> Any:
    while x.sum() < 100:
        x = x * 2
        owner.last = x
    return x


def of_prints(owner: Any, x: Tensor) -> Any:
    print("a")
    owner.value = 3
    y = x * owner.value
    print("b")
    return y


def of_a_with(owner: Any, x: Tensor) -> Any:
    with torch.no_grad():
        y = x * owner.value
    return y


def of_a_handler(owner: Any, x: Tensor) -> Any:
    try:
        owner.value = owner.value / 0
    except ZeroDivisionError as error:
        print("handled", error)
        owner.failed = True
    return x


def of_a_refusal(owner: Any, x: Tensor) -> Any:
    owner.value = 5
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    return torch.func.vmap(lambda each: each * owner.value)(x)


_HOLDING = [
    *(of_attributes, of_a_generator, of_an_exception, of_a_staged_exception, of_a_branch, of_a_loop, of_prints),
    *(of_a_with, of_a_handler, of_a_refusal),
]


@pytest.mark.parametrize("full_graph", [True, False], ids=["full graph", "segments"])
@pytest.mark.parametrize("function", _HOLDING, ids=lambda each: each.__name__)
def test_what_a_call_is_given_is_gone_with_it(function: Any, full_graph: bool) -> None:
    sg.to_static(lambda x: x, backend="eager")(torch.ones(1))  # torch loads the rest of itself
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for _ in range(2):
        owner, x = Owner(), torch.ones(3)
        held = references(owner, owner.weight, x)
        gc.collect()
        gc.disable()
        try:
            try:
                static(owner, x)
            except (ValueError, sg.CaptureError):
                pass
            del owner, x
            assert [reference() for reference in held] == [None] * 3
        finally:
            gc.enable()


@pytest.mark.parametrize("full_graph", [True, False], ids=["full graph", "segments"])
def test_a_module_that_a_call_is_given_is_gone_with_it(full_graph: bool) -> None:
    def function(model: Any, x: Tensor) -> Any:
        if x.sum() > 0:
            model.steps = 7
        y, _ = model(x)
        print(model.steps)
        if y.sum() > 1e9:
            raise ValueError("large")
        return y

    sg.to_static(lambda x: x, backend="eager")(torch.ones(1))
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for _ in range(2):
        model = Net()
        held = references(model, model.first.weight)
        gc.collect()
        gc.disable()
        try:
            static(model, torch.ones(5, 4))
            del model
            assert [reference() for reference in held] == [None] * 2
        finally:
            gc.enable()
