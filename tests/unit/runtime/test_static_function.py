from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import threading
import types
import warnings
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.effects import SetAttribute
from stillgraph.program.guards import ConstantGuard, Guard, IdentityGuard, LengthGuard, TypeGuard
from stillgraph.program.outputs import Constant, Container, Output, Same
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Slot
from stillgraph.runtime.calls.cache import CacheInfo
from tests.unit.runtime.programs import Switches, X, mode_guard, program_of, static, tensor_guard


def double(x: torch.Tensor) -> torch.Tensor:
    """Twice ``x``."""
    return x * 2


def capture_double(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
    x = args[0]
    return program_of(lambda x: (x * 2,), (X,), (mode_guard(), tensor_guard(X, x)))


def test_a_call_gives_what_the_original_gives() -> None:
    function = static(double, capture_double)
    for size in (2, 3, 2, 3):
        x = torch.randn(size)
        assert torch.equal(function(x), double(x))
    assert function.cache_info() == CacheInfo(hits=2, misses=2, programs=2, evictions=0, size=8)


def test_gradients_reach_parameters_found_through_a_module() -> None:
    layer = nn.Linear(2, 2)
    weight = Slot(X, "_parameters", "weight")

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        sources = (weight, Argument(1))
        guards = [TypeGuard(X, nn.Linear), tensor_guard(weight, layer.weight), tensor_guard(Argument(1), args[1])]
        return program_of(lambda w, x: ((x @ w).sum(),), sources, guards)

    function = static(lambda layer, x: (x @ layer.weight).sum(), capture)
    x = torch.ones(3, 2)
    for _ in range(2):
        layer.weight.grad = None
        function(layer, x).backward()
        assert torch.equal(layer.weight.grad, torch.full((2, 2), 3.0))
    assert function.cache_info().programs == 1


def test_effects_and_results_of_a_call() -> None:
    class Counter:
        steps = 0

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        steps = Attribute(X, "steps")
        effects = [SetAttribute(X, "steps", Output(0))]
        result = Container(dict, ["steps"], (Output(0),))
        return program_of(lambda steps: (steps + 1,), (steps,), (TypeGuard(steps, int),), result, effects)

    counter, function = Counter(), static(lambda counter: None, capture)
    assert [function(counter) for _ in range(3)] == [{"steps": 1}, {"steps": 2}, {"steps": 3}]
    assert counter.steps == 3
    assert function.cache_info().programs == 1


def test_an_exception_of_the_program_passes_through_and_leaves_the_program_in_use() -> None:
    def fail(program: Program, backend: Any) -> Any:
        def run(x: torch.Tensor) -> Any:
            if x[0] < 0:
                raise LookupError("negative")
            return (x,)

        return run

    function = static(double, capture_double, compile_program=fail)
    with pytest.raises(LookupError, match="negative"):
        function(torch.tensor([-1.0]))
    assert torch.equal(function(torch.tensor([1.0])), torch.tensor([1.0]))
    assert function.cache_info().programs == 1


def test_what_the_capture_raises_the_original_must_raise_and_nothing_is_kept() -> None:
    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        raise LookupError("seen during capture")

    def raises(x: Tensor) -> Tensor:
        raise LookupError("the user's own")

    x = torch.ones(2)
    gone = weakref.ref(x)
    function = static(raises, capture)
    with pytest.raises(LookupError, match="the user's own"):
        function(x)
    assert function.programs == ()
    with pytest.warns(RuntimeWarning, match="seen during capture, but eager PyTorch does not"):
        static(double, capture)(x)
    del x
    gc.collect()
    assert gone() is None


# ---- when the original runs
def test_the_original_runs_while_capturing_or_switched_off() -> None:
    switches = Switches()
    calls: list[int] = []
    function = static(lambda n, *, self=0: calls.append(n + self), capture_double, switches)
    switches.capturing = True
    function(1, self=1)
    switches.capturing, switches.enabled = False, False
    function(2)
    assert calls == [2, 2]
    assert function.cache_info().misses == 0


def test_rolling_back() -> None:
    captured: list[Any] = []

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        captured.append(1)
        return capture_double(args, kwargs)

    function = static(double, capture)
    function(torch.ones(2))
    assert function.rollback() is double
    assert function.programs == ()
    assert torch.equal(function(torch.ones(2)), torch.full((2,), 2.0))
    assert len(captured) == 1


# ---- capturing
def test_a_program_can_be_had_without_running_it() -> None:
    def never(program: Program, backend: Any) -> Any:
        def run(*inputs: Any) -> Any:
            raise AssertionError("ran")

        return run

    function = static(double, capture_double, compile_program=never)
    program = function.get_program(torch.ones(2))
    assert isinstance(program, Program)
    assert function.get_program(torch.zeros(2)) is program
    assert function.programs == (program,)


def test_concurrent_first_calls_capture_once() -> None:
    captured: list[Any] = []
    inside, go_on = threading.Event(), threading.Event()

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        captured.append(1)
        inside.set()
        assert go_on.wait(10)
        return capture_double(args, kwargs)

    function = static(double, capture)
    results: list[torch.Tensor] = []
    threads = [threading.Thread(target=lambda: results.append(function(torch.ones(2)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert inside.wait(10)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert len(captured) == 1
    assert len(results) == 4
    assert function.cache_info()[:3] == (3, 1, 1)


def test_calls_from_many_threads() -> None:
    function = static(double, capture_double, cache_size=3)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for i in range(200):
            x = torch.full(((seed + i) % 5 + 1,), float(i))
            if not torch.equal(function(x), x * 2):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not wrong
    info = function.cache_info()
    assert info.hits + info.misses == 800
    assert info.programs == 3
    assert info.misses == info.programs + info.evictions


def test_a_capture_may_call_the_function_again() -> None:
    switches = Switches()

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        switches.capturing = True
        try:
            assert torch.equal(function(torch.ones(2)), torch.full((2,), 2.0))
        finally:
            switches.capturing = False
        return capture_double(args, kwargs)

    function = static(double, capture, switches)
    assert torch.equal(function(torch.ones(2)), torch.full((2,), 2.0))
    assert function.cache_info().misses == 1


def test_what_differs_at_every_reading_is_right_for_its_call_and_warned_of_once() -> None:
    class Clock:
        ticks = 0

        @property
        def now(self) -> int:
            self.ticks += 1
            return self.ticks

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        now = args[0].now
        return program_of(lambda: (), (), (ConstantGuard(Attribute(X, "now"), now),), Constant(now))

    clock, function = Clock(), static(lambda clock: clock.now, capture)
    with pytest.warns(RuntimeWarning, match=r"differs each time: args\[0\]\.now should be 1, but is") as caught:
        first, second = function(clock), function(clock)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert first == 1
    assert second > first


def test_the_warning_of_a_full_cache_points_at_the_caller() -> None:
    function = static(double, capture_double, cache_size=1)
    function(torch.ones(1))
    with pytest.warns(RuntimeWarning, match=r"double already has 1 programs .* x.shape\[0\] should be 1") as caught:
        function(torch.ones(2))
    assert caught[0].filename == __file__


# ---- lifetime
@pytest.mark.parametrize("make", [lambda: nn.Linear(2, 2), lambda: nn.Sequential(nn.Linear(2, 2))])
def test_neither_arguments_nor_what_guards_compare_are_kept_alive(make: Any) -> None:
    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        guards: list[Guard] = [IdentityGuard(X, args[0]), IdentityGuard(Argument("f"), kwargs["f"])]
        guards += [LengthGuard(Argument(1), 1), tensor_guard(Argument("x"), kwargs["x"])]
        return program_of(lambda x: (x + 1,), (Argument("x"),), guards)

    function = static(lambda module, items, *, x, f: x + 1, capture)
    module, tensor, items, inner = make(), torch.ones(2), [nn.Linear(1, 1)], lambda: None
    gone = [weakref.ref(value) for value in (module, tensor, items[0], inner)]
    for _ in range(3):
        function(module, items, x=tensor, f=inner)
    assert function.cache_info().programs == 1
    del module, tensor, items, inner
    gc.collect()
    assert [reference() for reference in gone] == [None] * 4
    assert len(function.programs) == 1


# ---- looking like the original
def test_names_and_signature() -> None:
    double.tag = "mine"  # type: ignore[attr-defined]
    function: Any = static(double, capture_double)
    assert (function.__name__, function.__doc__, function.__module__) == ("double", "Twice ``x``.", __name__)
    assert function.__wrapped__ is double
    assert function.original is double
    assert function.tag == "mine"
    assert inspect.signature(function) == inspect.signature(double)
    assert repr(function) == "<StaticFunction double>"


def test_a_module_as_the_original_lends_none_of_its_attributes() -> None:
    module = nn.Linear(2, 2)
    function = static(module, capture_double)
    assert "_parameters" not in vars(function)
    assert repr(function) == "<StaticFunction Linear>"


@pytest.mark.parametrize("original", [3, staticmethod(3), None])
def test_what_cannot_be_called(original: Any) -> None:
    with pytest.raises(TypeError, match="not callable"):
        static(original, capture_double)


def test_a_bad_backend_or_size_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="backend"):
        static(double, capture_double, backend=3)
    with pytest.raises(ValueError, match="at least one"):
        static(double, capture_double, cache_size=0)


# ---- methods
class Scaler:
    """Every kind of method; each returns its receiver and doubles its argument."""

    def __init__(self, factor: int = 2) -> None:
        self.factor = factor

    def scale(self, x: torch.Tensor) -> Any:
        """Scale."""

    @staticmethod
    def static_inside(x: torch.Tensor) -> Any: ...

    @classmethod
    def class_inside(cls, x: torch.Tensor) -> Any: ...


def capture_method(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
    receivers = [Argument(i) for i in range(len(args) - 1)]
    tensor = Argument(len(args) - 1)
    result = Container(tuple, None, (*(Same(source) for source in receivers), Output(0)))
    return program_of(lambda x: (x * 2,), (tensor,), (tensor_guard(tensor, args[-1]),), result)


def make_class() -> Any:
    members = {
        "method": static(Scaler.scale, capture_method),
        "static_out": staticmethod(static(Scaler.static_inside, capture_method)),
        "static_in": static(vars(Scaler)["static_inside"], capture_method),
        "class_out": classmethod(static(vars(Scaler)["class_inside"].__func__, capture_method)),
        "class_in": static(vars(Scaler)["class_inside"], capture_method),
    }
    return type("Made", (Scaler,), members)


@pytest.mark.parametrize(
    ("name", "receiver"),
    [("method", "instance"), ("static_out", None), ("static_in", None), ("class_out", "class"), ("class_in", "class")],
)
def test_methods_of_every_kind(name: str, receiver: str | None) -> None:
    made = make_class()
    instance, x = made(), torch.ones(2)
    expected: list[Any] = {"instance": [instance], "class": [made], None: []}[receiver]
    *got, doubled = getattr(instance, name)(x)
    assert got == expected
    assert torch.equal(doubled, x * 2)
    if receiver != "instance":
        assert list(getattr(made, name)(x)[:-1]) == expected
    else:
        assert made.method(instance, x)[0] is instance
    if isinstance(getattr(instance, name), types.MethodType):
        return  # of a classmethod around a static function, since Python 3.13: it has no programs of its own
    program = getattr(instance, name).get_program(x)
    assert getattr(instance, name).programs == (program,)


def test_one_set_of_programs_serves_every_instance() -> None:
    made = make_class()
    first, second = made(), made()
    assert first.method(torch.ones(2))[0] is first
    assert second.method(torch.ones(2))[0] is second
    assert first.method.cache_info() == second.method.cache_info() == made.method.cache_info()
    assert made.method.cache_info()[:3] == (1, 1, 1)


def test_a_bound_method_looks_like_one() -> None:
    made = make_class()
    instance = made()
    method = instance.method
    assert (method.__self__, method.__func__) == (instance, made.method)
    assert (method.__name__, method.__doc__) == ("scale", "Scale.")
    assert inspect.signature(method) == inspect.signature(instance.scale)
    assert method == instance.method
    assert hash(method) == hash(instance.method)
    assert method != made().method
    assert method != 3
    with pytest.raises(AttributeError):
        _ = method.no_such_attribute


def test_methods_that_take_a_call_are_given_the_receiver_others_are_not() -> None:
    from stillgraph.runtime.calls.static_function import StaticFunction

    class Explaining(StaticFunction[Any, Any]):
        code = "the code"

        def get_program(self, *args: Any) -> Any:
            return args

        def other(self, *args: Any) -> Any:
            return args

    function = Explaining(
        Scaler.scale, capture_method, compile_program=lambda program, backend: program.graph.forward,
        is_capturing=lambda: False, is_enabled=lambda: True,
    )  # fmt: skip
    instance = Scaler()
    bound = function.__get__(instance, Scaler)
    assert bound.get_program(1) == (instance, 1)
    assert bound.other(1) == (1,)
    assert bound.code == "the code"


# ---- copies
def test_a_copied_object_has_methods_of_its_own() -> None:
    original = Scaler()
    original.method = static(Scaler.scale, capture_method).__get__(original)  # type: ignore[attr-defined]
    for copied in (copy.deepcopy(original), copy.copy(original)):
        assert copied is not original
        assert copied.method.__func__ is original.method.__func__  # type: ignore[attr-defined]
    deep = copy.deepcopy(original)
    assert deep.method(torch.ones(1))[0] is deep  # type: ignore[attr-defined]


def test_functions_are_copied_by_sharing_them() -> None:
    function = static(double, capture_double)
    assert copy.copy(function) is function
    assert copy.deepcopy({"f": function})["f"] is function


def test_a_function_bound_to_one_object_is_not_copied() -> None:
    with pytest.raises(TypeError, match="belongs to one object"):
        copy.deepcopy(static(Scaler().scale, capture_double))
    with pytest.raises(TypeError, match="belongs to one object"):
        copy.deepcopy(static(nn.Linear(1, 1), capture_double))


def decorated(x: torch.Tensor) -> torch.Tensor:
    return x


decorated = static(decorated, capture_double)


def test_functions_are_pickled_by_name() -> None:
    assert decorated.__module__ == __name__
    with pytest.MonkeyPatch.context() as patch:  # pytest's import mode leaves test modules out of sys.modules
        module = types.ModuleType(__name__)
        module.decorated = decorated  # type: ignore[attr-defined]
        patch.setitem(sys.modules, __name__, module)
        assert pickle.loads(pickle.dumps(decorated)) is decorated


# ---- a capture that fails where eager does not
def test_a_call_whose_capture_fails_is_made_once_and_tells_so() -> None:
    calls: list[torch.Tensor] = []

    def original(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x * 2

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        raise ZeroDivisionError("inside")

    function = static(original, capture)
    x = torch.ones(2)
    with pytest.warns(RuntimeWarning, match=r"(?s)ZeroDivisionError: inside.*reason SG307.*in plain PyTorch") as told:
        assert torch.equal(function(x), x * 2)
    assert len(calls) == 1
    assert told[0].filename == __file__


def test_a_call_that_raises_in_eager_too_raises_that_and_has_its_effects() -> None:
    calls: list[torch.Tensor] = []

    def original(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        raise KeyError("own")

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        raise ZeroDivisionError("inside")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError, match="own"):
            static(original, capture)(torch.ones(2))
    assert len(calls) == 1


class Halves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) / 2  # type: ignore[no-any-return]


def test_torch_compile_is_shown_the_original() -> None:
    x = torch.randn(2, 3)
    module = sg.to_static(Halves(), backend="eager")
    whole = torch.__version__ >= (2, 12)  # before, Dynamo binds a function anew that an object's slot holds
    compiled = torch.compile(module, backend="eager", fullgraph=whole)
    torch.testing.assert_close(compiled(x), module(x))
    torch.testing.assert_close(compiled(-x), module(-x))
    function = sg.to_static(lambda x: x * 2 if x.sum() > 0 else x, backend="eager")
    torch.testing.assert_close(torch.compile(lambda x: function(x) + 1, backend="eager")(x), function(x) + 1)


def test_torch_export_is_shown_the_original() -> None:
    x = torch.randn(2, 3)
    module = sg.to_static(Halves(), backend="eager")
    exported = torch.export.export(module, (x,))
    torch.testing.assert_close(exported.module()(x), module(x))


def test_a_miss_is_explained_by_the_nearest_program() -> None:
    function = sg.to_static(lambda x: x * 2, backend="eager")
    x = torch.ones(2)
    function(x)
    with torch.no_grad():
        function(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert function.explain_miss(x) == "autocast should be off, but is autocast(cpu, bfloat16)"
