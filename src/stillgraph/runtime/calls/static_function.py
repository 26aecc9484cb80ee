"""The callable that stands in for a function: finds the program that fits a call, or captures it, and runs it."""
from __future__ import annotations

import functools
import inspect
import types
import warnings
from bdb import BdbQuit
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

from torch._C import _are_functorch_transforms_active as are_transforms_active
from torch.compiler import is_compiling

from stillgraph.core.collector import waiting_collector
from stillgraph.core.diagnostics import CaptureError, InitialisingCall, MisreadError, StillgraphError, refusal
from stillgraph.core.faults import unwinds
from stillgraph.core.logs import is_logged, log
from stillgraph.core.lookup import stated, stated_signature
from stillgraph.core.raised import line_that_raised
from stillgraph.core.shown import brief_error
from stillgraph.program.program import Program
from stillgraph.runtime.calls import later
from stillgraph.runtime.calls.bound_function import BoundStaticFunction
from stillgraph.runtime.calls.cache import CacheInfo, CapturedCall, ProgramCache, call_structure
from stillgraph.runtime.calls.captures import Captures
from stillgraph.runtime.calls.failed_captures import FailedCaptures
from stillgraph.runtime.calls.shadow import ShadowCheck
from stillgraph.runtime.guards.checking import compile_guards
from stillgraph.runtime.guards.explaining import explain_miss
from stillgraph.runtime.guards.kinds.table import weakened
from stillgraph.runtime.native.backends import Backend, resolve_backend
from stillgraph.runtime.native.function_writer import read_source
from stillgraph.runtime.native.repeating import Generators, is_repeatable, is_rewound, regions_that_act
from stillgraph.runtime.native.results import compile_result
from stillgraph.runtime.native.settling import compile_settled, settles
from stillgraph.runtime.native.tracebacks import present, presenting

P = ParamSpec("P")
R = TypeVar("R")

Capture = Callable[[tuple[Any, ...], dict[str, Any]], Program]
CompileProgram = Callable[[Program, Backend], Callable[..., Sequence[Any]]]


class StaticFunction(Generic[P, R]):
    """A function that runs as static programs, one for each set of Python facts it was called under.

    Calling it gives what the original gives. It is a descriptor: in a class body it becomes a method.
    """

    #: One capture at a time in the process: it works on the user's own objects.
    captures = Captures()

    #: Methods that take the arguments of a call, and those that stand for them where the receiver is given first.
    takes_call: ClassVar[Mapping[str, str]] = {name: name for name in ("get_program", "explain_miss", "verify")}

    def __init__(
        self,
        original: Callable[P, R],
        capture: Capture,
        *,
        compile_program: CompileProgram,
        backend: str | Callable[..., Any] = "eager",
        cache_size: int = 8,
        is_capturing: Callable[[], bool],
        is_enabled: Callable[[], bool],
        check: int = 0,
        originals: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Wrap a function.

        Args:
            original: the function, or a ``staticmethod`` or ``classmethod`` of one.
            capture: makes the program of a call ``(args, kwargs)``, without lasting effects.
            compile_program: makes a function from a program's inputs to its outputs, given a compiler of regions.
            backend: what compiles regions (see `runtime.backends.resolve_backend`).
            cache_size: how many programs are kept.
            is_capturing: whether this thread is capturing; then the original is called, to be captured with the rest.
            is_enabled: the global switch; when off, the original is called.
            check: how many calls are compared with eager before they are made, and each program's first one if any is.
            originals: a block in which the global switch is off.

        Raises:
            TypeError: ``original`` is not callable.
            ValueError: no backend has this name, or the cache size is less than one.
        """
        self._descriptor = original
        function = original.__func__ if isinstance(original, (staticmethod, classmethod)) else original
        if not callable(function):
            raise TypeError(f"{function!r} is not callable")
        self._look_like(function)
        self._function: Callable[..., R] = function
        self._capture = capture
        self._compile_program = compile_program
        self._backend = resolve_backend(backend)
        self._is_capturing = is_capturing
        self._is_enabled = is_enabled
        self._name: str = stated(function, "__qualname__", type(function).__qualname__)
        self._cache = ProgramCache(self._name, cache_size, _positional(function))
        self._failed = FailedCaptures()
        self._shadow = ShadowCheck(self._name, function, self._backend, self._compiled, self._run, originals)
        self._check = check
        self._checked = 0
        self._rolled_back = False
        self._warned = False

    def _look_like(self, function: Any) -> None:
        """Have the attributes of what is wrapped, as `functools.update_wrapper` gives them."""
        for name in functools.WRAPPER_ASSIGNMENTS:
            value = stated(function, name, _NOTHING)
            if value is not _NOTHING:
                setattr(self, name, value)
        if isinstance(function, types.FunctionType):  # those of a module or another object are not ours to copy
            vars(self).update(vars(function))
        self.__wrapped__ = function
        signature = stated_signature(function)
        if signature is not None:
            self.__signature__ = signature

    # ---- calling
    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the program that fits; the first time, capture it. Torch's own compilers are shown the original."""
        if is_compiling() or self._is_capturing():
            return self._function(*args, **kwargs)
        try:
            if self._rolled_back or not self._is_enabled():
                return self._function(*args, **kwargs)
            if are_transforms_active():
                return cast(R, later.call_transformed(self._name, self, self._run, args, kwargs))
            captures = self.captures
            while True:
                version = captures.version if not captures.version & 1 else captures.settled()
                found = self._cache.find(args, kwargs)
                if found is None:
                    return self._first_call(args, kwargs)
                if captures.version == version:
                    if self._check:
                        self._check_if_due(found[0], args, kwargs)
                    return cast(R, self._run(*found, args, kwargs))
                self._cache.hits -= 1  # what was found was read while another thread captured
        except BaseException as error:
            found = None  # the traceback may hold this frame
            present(error, _CALLING)
            raise  # which adds no frame

    def _first_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """Capture, then run. A call that raises whatever its tensors hold is made in plain PyTorch, effects and all.

        Where plain PyTorch raises nothing, the call has been made: what it gave is given, and the failure told.
        """
        if self._failed.are_certain(args, kwargs):
            return self._function(*args, **kwargs)
        try:
            call, inputs = self._captured(args, kwargs)
        except InitialisingCall:
            return self._function(*args, **kwargs)
        except MisreadError as error:
            failure: BaseException = error
        except (StillgraphError, BdbQuit):  # the latter: the user has left the debugger
            raise
        except BaseException as error:  # of any kind: the function's own
            if unwinds(error):
                raise
            failure = error
        else:
            if self._check:
                self._check_if_due(call, args, kwargs)
            return cast(R, self._run(call, inputs, args, kwargs))
        try:  # outside the handler: what this raises must not hold on to the capture as its context
            result = self._function(*args, **kwargs)
            if self._failed.add(failure, args, kwargs):
                self._tell_of(failure)
            return result
        finally:
            del failure

    def _tell_of(self, failure: BaseException) -> None:
        """Warn that a call which could not be captured has been made in plain PyTorch."""
        if isinstance(failure, MisreadError):
            error: CaptureError = failure
        else:
            message = f"the capture of {self._name} raises {brief_error(failure)}, but eager PyTorch does not"
            error = refusal("SG307", message, location=line_that_raised(failure))
        warnings.warn(f"{error}\n  The call was made in plain PyTorch.", RuntimeWarning, stacklevel=4)

    def _run(
        self, call: CapturedCall, inputs: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any],
        original: Callable[..., R] | None = None,
    ) -> Any:
        """Run a program and carry out its effects; what fails half way is called in plain PyTorch where it may be."""
        if call.settled is not None:
            return call.settled(inputs, args, kwargs)
        generators = Generators() if call.rewound else None
        before = call.entered if call.acting else None
        try:
            outputs = call.run(*inputs)
        except BaseException as error:  # of any kind: an operation's, the user's own, or Ctrl-C
            with self.captures.exclusive():
                is_known = call.fail(error, args, kwargs)
                repeats = not is_known and is_repeatable(call.program, error, call.acting, before, call.entered)
                if not is_known and not repeats:
                    call.stop(error, args, kwargs)
            if not repeats:
                raise
            if generators is not None:
                generators.put_back()
            why = str(error)
        else:
            if not call.program.effects:
                return call.finish(outputs, args, kwargs)
            with self.captures.exclusive():
                return call.finish(outputs, args, kwargs)
        log("runtime", "repeated", f"{self._name} is called in plain PyTorch, for it fails: {why}", function=self._name)
        return (original or self._function)(*args, **kwargs)

    def captured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[CapturedCall, tuple[Any, ...]]:
        """The program of a call with the functions that run it, captured if need be, and its inputs."""
        return self._cache.find(args, kwargs) or self._captured(args, kwargs)

    def _captured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[CapturedCall, tuple[Any, ...]]:
        """Capture a call that no program fits, unless another thread just did."""
        with self.captures.capture():
            found = self._cache.find(args, kwargs)
            if found is not None:
                return found
            if is_logged("cache"):
                why = self._cache.explain_miss(args, kwargs)
                log("cache", "miss", f"no program of {self._name} fits: {why}", function=self._name, why=why)
            call = self._new_call(args, kwargs)
            inputs = call.check(args, kwargs)
            if inputs is None:
                inputs = self._inputs_without_check(call.program, args, kwargs)
            self._cache.add(call, args, kwargs)
        self._failed.succeeded()
        return call, inputs

    def _compiled(self, program: Program) -> Callable[..., Sequence[Any]]:
        return self._compile_program(program, self._backend)

    def _new_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CapturedCall:
        program = self._capture(args, kwargs)
        program = replace(program, guards=tuple(weakened(guard) for guard in program.guards))
        run = self._compiled(program)
        with waiting_collector():
            check = compile_guards(program.inputs, program.guards)
        return CapturedCall(
            program,
            call_structure(args, kwargs),
            check,
            run,
            compile_result(program.result, program.effects),
            compile_settled(program, run, self.captures.exclusive) if settles(program) else None,
            acting := regions_that_act(program),
            is_rewound(program, acting),
        )

    def _inputs_without_check(
        self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The inputs for the very call a program was captured from, though its guards do not hold of it.

        What was read differs at each reading (a property that counts, say). The program is right for this call.
        """
        if not self._warned:
            self._warned = True
            reason = explain_miss(program.guards, args, kwargs, program.inputs)
            warnings.warn(
                f"{self._name} is captured anew at every call, for what it reads differs each time: {reason}",
                RuntimeWarning,
                stacklevel=5,
            )
        return tuple(read_source(item.source, args, kwargs) for item in program.inputs)

    # ---- checking against eager PyTorch
    @presenting
    def verify(self, /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Compare the program for a call with eager PyTorch, each run on a copy of all that the call can reach.

        Nothing of the call happens: arguments, state and random generators stay as they are.

        Raises:
            CheckError: they differ (SG502), or cannot be compared (SG503).
        """
        with self.captures.capture():
            call, _ = self._captured(args, kwargs)
            self._shadow.compare(call, args, kwargs)

    def _check_if_due(self, call: CapturedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._checked >= self._check and call.checked:
            return
        with self.captures.capture():
            self._shadow.compare(call, args, kwargs)
        self._checked += 1
        call.checked = True

    # ---- looking inside
    @property
    def original(self) -> Callable[P, R]:
        """The function that was wrapped."""
        return self._function

    def rollback(self) -> Callable[P, R]:
        """Go back to plain PyTorch: the programs are dropped, and calls from now on run the original.

        Returns:
            What was wrapped, a ``staticmethod`` or ``classmethod`` included.
        """
        self._rolled_back = True
        self._cache.clear()
        return self._descriptor

    @presenting
    def get_program(self, /, *args: P.args, **kwargs: P.kwargs) -> Program:
        """The program for a call, captured if need be, without running it."""
        call, _ = self._captured(args, kwargs)
        return call.program

    def explain_miss(self, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        """Say why a call would be captured anew.

        Args:
            args, kwargs: of the call. Nothing is captured or run; attributes are read, as each call reads them.

        Returns:
            One sentence on the fact that differs from the most similar captured call; None where a program fits.
        """
        with self.captures.exclusive():
            return self._cache.explain_miss(args, kwargs)

    @property
    def programs(self) -> tuple[Program, ...]:
        """The cached programs, the most recently used first."""
        return self._cache.programs

    @property
    def visits(self) -> tuple[tuple[int, ...] | None, ...]:
        """For each of `programs`, how often each of its regions began, by `program.blocks.Block.number`.

        Of a loop's test it is how often the loop was reached. None stands for one that runs as one compiled graph.
        """
        return tuple(None if call.visits is None else tuple(call.visits) for call in self._cache.calls)

    def forget_visits(self) -> None:
        """Have `visits` count from zero again."""
        for call in self._cache.calls:
            if call.visits is not None:
                call.visits[:] = [0] * len(call.visits)

    def cache_info(self) -> CacheInfo:
        """Hits, misses, programs, evictions and the size of the cache."""
        return self._cache.info()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"

    # ---- being a method
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The function itself, or bound to its receiver."""
        if isinstance(self._descriptor, staticmethod):
            return self
        if isinstance(self._descriptor, classmethod):
            return BoundStaticFunction(self, type(instance) if owner is None else owner)
        return self if instance is None else BoundStaticFunction(self, instance)

    # ---- being copied or pickled with the object that holds it
    def __reduce__(self) -> str:
        return self._name  # as functions are: by name

    def __copy__(self) -> StaticFunction[P, R]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction[P, R]:
        """Functions are copied by sharing them.

        Raises:
            TypeError: the original is bound to an object, so the copy would go on calling that one.
        """
        if getattr(self._function, "__self__", None) is not None or not hasattr(self._function, "__code__"):
            raise TypeError(f"{self!r} belongs to one object; copy that object first and make the copy static")
        return self


def _positional(function: Any) -> list[str]:
    """The names of the parameters that positional arguments go to, the receiver's included."""
    if isinstance(function, types.MethodType):
        return []  # its receiver is no parameter here, and counts as an argument there
    signature = stated_signature(function)
    parameters = () if signature is None else signature.parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in kinds]


_NOTHING = object()
_CALLING = frozenset(
    each.__code__ for each in (StaticFunction.__call__, StaticFunction._first_call, StaticFunction._run)
)
