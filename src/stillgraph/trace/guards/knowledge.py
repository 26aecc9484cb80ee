"""What a capture knows before it begins: what earlier attempts found out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, MappingProxyType
from typing import Any

from stillgraph.program.sources import Held, Source
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.fakes.distributions import property_names
from stillgraph.trace.values.lists import Element


@dataclass
class Knowledge:
    """What earlier attempts at a capture found out; a `Restart` adds to it."""

    convert: set[CodeType] = field(default_factory=set)  # library functions that have to be converted
    watch: set[str] = field(default_factory=set)  # names of properties whose getters have to be converted
    follow_methods: bool = False  # of users' objects, which Python calls for operators: they do something
    convert_libraries: bool = False  # all of them: one writes to modules on its own
    watch_modules: bool = False  # code that is never converted, torch's, writes to them
    watch_memory: bool = False  # arrays or the like are written in place: find out where
    arrays: bool | None = None  # those of numpy's that the function makes are made by each run; False: they cannot be
    aliases_matter: bool = False  # which arguments are one and the same object
    also_elsewhere: frozenset[int] = frozenset()  # ids of arguments that the code reaches by other paths too
    hashed: bool = False  # the code uses arguments that are tensors as keys, or as elements of sets
    distributions: bool = False  # those of torch's are used: their code is converted
    tries: bool = False  # something inside a ``try`` raises in the run: these statements are to be operators
    transforms: bool = False  # what is inside torch.func.grad decides: that is followed, and no transform
    managers: bool = False  # functions of context managers see what their blocks raise: they are run around these
    acts: bool = False  # it does more than compute: without a full graph, blocks are told of what the run raises
    recursive: set[CodeType] = field(default_factory=set)  # functions that call themselves on what only the run knows
    not_tail: set[CodeType] = field(default_factory=set)  # ... and use what those calls give
    first_by_loop: set[Any] = field(default_factory=set)  # where only the run knows what ``next`` of a generator gives
    positions: bool = False  # iterators over known lists are advanced on some paths only
    iterators: set[CodeType] = field(default_factory=set)  # methods ``__next__`` of which only the run knows the end
    cached: set[Any] = field(default_factory=set)  # functions with a cache (``lru_cache``) that do something outside
    quiet: set[Any] = field(default_factory=set)  # ... others, which may be called as they are
    asking: dict[Any, Any] = field(default_factory=dict)  # calls of functions with a cache, each one object
    lists: dict[Source, Element] = field(default_factory=dict)  # lists that grow with each call
    promote: set[Source] = field(default_factory=set)  # where numbers are that are read and written
    written: set[Source] = field(default_factory=set)  # such numbers that the attempt which goes on has found
    keep: set[Source] = field(default_factory=set)  # ... that turned out to be needed as constants
    written_elsewhere: dict[int, Any] = field(default_factory=dict)  # objects on ways that are not followed, by id
    changing: set[Source] = field(default_factory=set)  # of `promote`: numbers that only differed from call to call
    open_sizes: dict[Source, frozenset[int]] = field(default_factory=dict)  # dimensions that differed, by tensor

    def of_code(self) -> dict[str, Any]:
        """What holds of the code, whatever the call: the next capture of it begins with that."""
        return {name: copy.copy(getattr(self, name)) for name in _OF_CODE}

    def learn(self, restart: Restart) -> None:
        """Add what ended an attempt."""
        lesson = _LESSONS.get(restart.kind)
        assert lesson is not None, f"nobody says {restart.kind!r}"
        lesson(self, restart.what)

    def find_written(self, source: Source) -> None:
        """Told of a number that is read and written, and is no input yet: the capture begins anew.

        For the first one it does so at once. Where there is another, there may be many: one in each layer, say. The
        attempt goes on to find all of them.
        """
        if not self.promote - self.changing:
            raise Restart("promote", source)
        self.written.add(source)

    def promote_written(self) -> bool:
        """To be called behind an attempt: whether it has found numbers that are to be inputs of the next one."""
        found = bool(self.written)
        for source in self.written:
            _promote(self, source)
        self.written.clear()
        return found

    def stage_handling(self) -> None:
        """Begin anew with what handles exceptions staged: statements first, then the functions of context managers."""
        if not self.tries:
            raise Restart("tries", None)
        if not self.managers:
            raise Restart("managers", None)

    def may_be_input(self, source: Source) -> bool:
        """Whether what is at a source may become an input, and is none yet."""
        return not (isinstance(source, Held) or source in self.promote or source in self.keep)

    def may_stage_arrays(self) -> bool:
        """Whether the arrays that the function makes may be made by each run, and are not yet."""
        return self.arrays is None

    def assume_less(self) -> bool:
        """Let what differed from call to call be constant again; whether there was any: sizes, then numbers.

        Something structural depends on it: an index into a list of modules, say.
        """
        if self.open_sizes:
            self.open_sizes = {}
            return True
        found = bool(self.promote & self.changing)
        self.promote -= self.changing
        return found

    def give_up(self) -> bool:
        """Let what the code writes be constant again; whether there was any: new arrays, then lists, then the rest."""
        if self.arrays:
            self.arrays = False
            return True
        made = set(self.lists) or self.promote
        self.keep |= made
        found = bool(made)
        (self.lists if self.lists else self.promote).clear()
        return found


_OF_CODE = (
    "convert",
    "watch",
    "follow_methods",
    "convert_libraries",
    "watch_modules",
    "distributions",
    "tries",
    "managers",
    "transforms",
    "acts",
    "recursive",
    "not_tail",
    "iterators",
    "positions",
)


def _is_so(name: str) -> Callable[[Knowledge, Any], None]:
    """A lesson that something is the case."""
    return lambda knowledge, _: setattr(knowledge, name, True)


def _is_one(name: str) -> Callable[[Knowledge, Any], None]:
    """A lesson that something is one of those of a kind."""

    def add(knowledge: Knowledge, what: Any) -> None:
        known: set[Any] = getattr(knowledge, name)
        known.add(what)

    return add


def _convert(knowledge: Knowledge, what: tuple[set[CodeType], set[str]]) -> None:
    codes, names = what
    if codes and knowledge.convert:  # one more function after another would be an attempt for each
        _convert_libraries(knowledge, None)
    knowledge.convert |= {each for code in codes for each in _with_inner(code)}
    knowledge.watch |= names


def _convert_libraries(knowledge: Knowledge, _: None) -> None:
    knowledge.convert_libraries = True
    knowledge.tries = True  # of their many ``try`` statements, one is met in the end: it would be another attempt


def _use_distributions(knowledge: Knowledge, _: None) -> None:
    knowledge.distributions = True
    knowledge.watch |= property_names()


def _list_grows(knowledge: Knowledge, what: tuple[Source, Element]) -> None:
    source, element = what
    knowledge.lists[source] = element


def _keep_list(knowledge: Knowledge, source: Source) -> None:
    del knowledge.lists[source]
    knowledge.keep.add(source)


def _promote(knowledge: Knowledge, source: Source) -> None:
    knowledge.promote.add(source)
    knowledge.changing.discard(source)  # it is written: no number that only differs from call to call


def _keep_number(knowledge: Knowledge, source: Source) -> None:
    knowledge.promote.discard(source)
    knowledge.keep.add(source)


def _are_constant(knowledge: Knowledge, sources: set[Source]) -> None:
    knowledge.promote -= sources


def _is_one_size(knowledge: Knowledge, place: tuple[Source, int]) -> None:
    source, dim = place
    knowledge.open_sizes[source] -= {dim}


def _reach_elsewhere(knowledge: Knowledge, ids: frozenset[int]) -> None:
    knowledge.also_elsewhere |= ids


def _write_elsewhere(knowledge: Knowledge, objects: dict[int, Any]) -> None:
    knowledge.written_elsewhere |= objects


_LESSONS: Mapping[str, Callable[[Knowledge, Any], None]] = MappingProxyType(
    {
        "convert": _convert,
        "convert_libraries": _convert_libraries,
        "follow_methods": _is_so("follow_methods"),
        "list": _list_grows,
        "keep": _keep_list,
        "watch": _is_so("watch_modules"),
        "memory": _is_so("watch_memory"),
        "distributions": _use_distributions,
        "tries": _is_so("tries"),
        "managers": _is_so("managers"),
        "transforms": _is_so("transforms"),
        "acts": _is_so("acts"),
        "recursive": _is_one("recursive"),
        "first_by_loop": _is_one("first_by_loop"),
        "positions": _is_so("positions"),
        "iterators": _is_one("iterators"),
        "cached": _is_one("cached"),
        "quiet": _is_one("quiet"),
        "not_tail": _is_one("not_tail"),
        "object": _keep_number,
        "constant": _are_constant,
        "size": _is_one_size,
        "aliases": _is_so("aliases_matter"),
        "arrays": _is_so("arrays"),
        "hashed": _is_so("hashed"),
        "elsewhere": _reach_elsewhere,
        "written_elsewhere": _write_elsewhere,
        "promote": _promote,
    }
)
"""By the kind of a `Restart`: what is known from then on."""


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """Code and that of the functions that it defines: they are followed with it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _with_inner(each)
