"""Static functions: captured by `captures`, run by the runtime, told of by the reports."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar

from stillgraph.api import later
from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.location import Location
from stillgraph.core.lookup import stated, stated_signature
from stillgraph.program.guards import Guard
from stillgraph.program.input_spec import Specs
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument
from stillgraph.report.coverage import Coverage
from stillgraph.report.coverage import coverage as summed_up
from stillgraph.runtime.calls.static_function import StaticFunction
from stillgraph.runtime.guards.explaining import failing
from stillgraph.runtime.native.backends import is_inductor
from stillgraph.runtime.native.native import lower
from stillgraph.runtime.native.tracebacks import presenting
from stillgraph.settings import SETTINGS, enable_to_static
from stillgraph.trace.code.compiled import original_of
from stillgraph.trace.code.front_end import FrontEnd
from stillgraph.trace.code.options import Options
from stillgraph.trace.code.watch import Watch


class Static(StaticFunction[Any, Any]):
    """A static function: call it like the original."""

    takes_call: ClassVar[Mapping[str, str]] = {**StaticFunction.takes_call, "explain": "_explain_method"}

    def __init__(
        self, original: Any, input_spec: Specs | None, backend: Any, options: Options, cache_size: int, check: int = 0
    ) -> None:
        self._spec = input_spec
        self._front_end: FrontEnd | None = None  # another than the usual one
        self._options = options
        self._lessons: dict[str, Any] = {}  # what captures have found out about the code
        self._made_with = (original, input_spec, backend, options, cache_size, check)
        SETTINGS.static_functions.add(self)
        super().__init__(
            original,
            self._capture_call,
            compile_program=functools.partial(compile_program, backend=backend),
            backend=backend,
            cache_size=cache_size,
            is_capturing=lambda: later.current() is not None,
            is_enabled=lambda: SETTINGS.enabled,
            check=check,
            originals=functools.partial(enable_to_static, False),
        )
        compiled = original_of(original)
        if compiled is not None:  # by torch.jit.script: it is shown as the function that it was
            functools.update_wrapper(self, compiled, updated=())
            self._name, self.__signature__ = compiled.__qualname__, inspect.signature(compiled)

    def __stillgraph_behind__(self) -> Any:
        """What a capture that meets this function follows into."""
        return self.original

    def __prepare_scriptable__(self) -> Any:
        """What `torch.jit.script` compiles in the place of this function."""
        return self.original

    def __reduce__(self) -> Any:
        """By name where the name leads here, as functions are; otherwise made anew, without its programs."""
        if _found_by_name(self.original) is self:
            return super().__reduce__()
        return Static, self._made_with

    @functools.cached_property
    def _varying(self) -> later.Varying:
        """What differs between calls."""
        return later.Varying(self._options.dynamic)

    def _capture_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], watch: Watch | None = None
    ) -> Program:
        """The program of a call. What differs between calls is an input of it, where it need not be known."""
        self._learn_what_varies(args, kwargs)
        program = later.capture_call(
            *(self.original, args, kwargs, self._spec, self._options),
            changing=self._varying.inputs(),
            watch=watch,
            front_end=self._front_end or later.SOURCE,
            open_sizes=self._varying.sizes,
            lessons=self._lessons,
        )
        self._varying.note(program)
        return program

    def _learn_what_varies(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look for what keeps the programs so far from fitting a call."""
        self._varying.learn(self._cache.alike(args, kwargs), args, kwargs)
        self._varying.look_at(args, kwargs)

    @presenting
    def get_program(self, /, *args: Any, **kwargs: Any) -> Program:
        """The program for a call, captured if need be, without running it.

        Raises:
            CaptureError: the call cannot become one program, or has a size of 0 or 1 where ``input_spec`` leaves a
                dimension open: its program would serve this size alone.
        """
        later.check_open(self.original, args, kwargs, self._spec)
        return super().get_program(*args, **kwargs)

    @presenting
    def explain(self, /, *args: Any, **kwargs: Any) -> later.Explanation:
        """What becomes of a call: its program, what became of each line of its source, and how long a capture takes.

        The call is captured anew for this, and not run; the cache stays as it is. Without arguments, the cached program
        that was used last is explained, and nothing is captured: which lines ran without leaving anything in it is then
        not known. (A function that has no parameters is captured anew.)

        Returns:
            The explanation. Of a call that cannot become a program it has no program, and ``refused`` says why.

        Raises:
            Exception: what the function itself raises whatever its tensors hold.
            TypeError: there are no arguments, and no program yet to be explained.
        """
        return self._explained(args, kwargs, self._receivers())

    @presenting
    def _explain_method(self, /, *args: Any, **kwargs: Any) -> later.Explanation:
        """As `explain`, through an instance."""
        return self._explained(args, kwargs, 1)

    def _explained(self, args: tuple[Any, ...], kwargs: dict[str, Any], receivers: int) -> later.Explanation:
        if self._is_without_call(args, kwargs, receivers):
            return self._explain_last(args)
        function, _ = later.function_of(self.original, args)  # imports what captures need, before the time is taken
        watch = Watch(lines=True)
        begin = time.perf_counter()
        try:
            program = self._capture_call(args, kwargs, watch)
        except CaptureError as error:
            code = stated(function, "__code__")
            where = None if code is None else Location(code.co_filename, code.co_firstlineno, function=code.co_name)
            return later.explain_refusal(error, self._name, where, watch.record(), time.perf_counter() - begin)
        seconds = time.perf_counter() - begin
        why = self.explain_miss(*args, **kwargs)
        cache = later.cache_state(self._cache.info(), self._cache.reasons, why)
        return later.explain(program, seconds, cache=cache, visits=self._visits(program, args, kwargs))

    def _is_without_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], receivers: int) -> bool:
        """Whether nothing of a call is given, but for the receiver, of a function that has parameters."""
        return not kwargs and len(args) <= receivers < self._parameters()

    def _receivers(self) -> int:
        """How many arguments are no call yet, as far as its name tells: the receiver of a method that takes more."""
        is_method = isinstance(self.original, FunctionType) and later.has_receiver(self.original)
        return int(is_method and not isinstance(self._descriptor, staticmethod) and self._parameters() > 1)

    def _parameters(self) -> int:
        signature = stated_signature(self.original)
        return 0 if signature is None else len(signature.parameters)

    def _explain_last(self, receiver: tuple[Any, ...]) -> later.Explanation:
        """Explain the program used last; of a method, that of this receiver."""
        for program, visits in zip(self.programs, self.visits, strict=True):
            about = [guard for guard in program.guards if _is_about_first(guard)] if receiver else []
            if not any(True for _ in failing(about, receiver, {})):
                seconds = sum(phase.seconds for phase in program.record.phases)
                cache = later.cache_state(self._cache.info(), self._cache.reasons, None)
                return later.explain(program, seconds, cache=cache, visits=visits)
        raise TypeError(
            f"{self._name} has no program to explain yet: call it first, or give explain() the arguments of a call"
        )

    def _visits(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[int] | None:
        """How often the calls so far have entered each region of the cached program that is like one made anew."""
        fitting = self._cache.peek(args, kwargs)
        counted = None if fitting is None else fitting.visits
        return counted if counted is not None and len(counted) == len(program.regions) else None

    def coverage(self, *, reset: bool = False) -> Coverage:
        """Which arms and loops of the cached programs the calls so far have gone through.

        Args:
            reset: whether to count from zero again, after this.
        """
        result = summed_up(self._name, zip(self.programs, self.visits, strict=True))
        if reset:
            self.forget_visits()
        return result

    @property
    def code(self) -> str:
        """The rewritten source."""
        function = later.function_of(self.original, ())[0]
        function = original_of(function) or function
        if not isinstance(function, FunctionType):
            function = inspect.getattr_static(type(function), "__call__", function)
        return later.rewritten(function)


def _is_about_first(guard: Guard) -> bool:
    """Whether a guard is about what the first argument leads to, and nothing else."""
    source: Any = getattr(guard, "source", None)
    while hasattr(source, "base"):
        source = source.base
    return bool(source == Argument(0))


def _found_by_name(function: Any) -> Any:
    """What stands at a function's module and qualified name."""
    found: Any = sys.modules.get(stated(function, "__module__") or "")
    for name in stated(function, "__qualname__", "").split("."):
        found = inspect.getattr_static(found, name, None)
    return found


def compile_program(program: Program, compile: Any, backend: Any) -> Callable[..., Sequence[Any]]:
    """A function of a program's inputs: natively, and under Inductor without gradients as one graph."""
    native = lower(program, None if backend == "eager" else compile).run
    return later.compile_whole(program, compile, native) if is_inductor(backend) else native
