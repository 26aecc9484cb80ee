"""What a capture knows before it begins: what earlier attempts found out, and what the user chose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from stillgraph.program.guards import Source
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
    aliases_matter: bool = False  # which arguments are one and the same object
    also_elsewhere: frozenset[int] = frozenset()  # ids of arguments that the code reaches by other paths too
    hashed: bool = False  # the code uses arguments that are tensors as keys, or as elements of sets
    distributions: bool = False  # those of torch's are used: their code is converted
    tries: bool = False  # something inside a ``try`` raises in the run: these statements are to be operators
    acts: bool = False  # it does more than compute: without a full graph, blocks are told of what the run raises
    recursive: set[CodeType] = field(default_factory=set)  # functions that call themselves on what only the run knows
    not_tail: set[CodeType] = field(default_factory=set)  # ... and use what those calls give
    first_by_loop: set[Any] = field(default_factory=set)  # where only the run knows what ``next`` of a generator gives
    cached: set[Any] = field(default_factory=set)  # functions with a cache (``lru_cache``) that do something outside
    quiet: set[Any] = field(default_factory=set)  # ... others, which may be called as they are
    asking: dict[Any, Any] = field(default_factory=dict)  # calls of functions with a cache, each one object
    lists: dict[Source, Element] = field(default_factory=dict)  # lists that grow with each call
    promote: set[Source] = field(default_factory=set)  # where numbers are that are read and written
    keep: set[Source] = field(default_factory=set)  # ... that turned out to be needed as constants
    written_elsewhere: dict[int, Any] = field(default_factory=dict)  # objects on ways that are not followed, by id
    changing: set[Source] = field(default_factory=set)  # of `promote`: numbers that only differed from call to call

    def learn(self, restart: Restart) -> None:
        """Add what ended an attempt."""
        match restart.kind, restart.what:
            case "convert", (codes, names):
                self.convert |= {each for code in codes for each in _with_inner(code)}
                self.watch |= names
            case "convert_libraries", _:
                self.convert_libraries = True
            case "follow_methods", _:
                self.follow_methods = True
            case "list", (source, element):
                self.lists[source] = element
            case "keep", source:
                del self.lists[source]
                self.keep.add(source)
            case "watch", _:
                self.watch_modules = True
            case "memory", _:
                self.watch_memory = True
            case "distributions", _:
                self.distributions = True
                self.watch |= property_names()
            case "tries", _:
                self.tries = True
            case "acts", _:
                self.acts = True
            case "recursive", code:
                self.recursive.add(code)
            case "first_by_loop", place:
                self.first_by_loop.add(place)
            case "cached", function:
                self.cached.add(function)
            case "quiet", function:
                self.quiet.add(function)
            case "not_tail", code:
                self.not_tail.add(code)
            case "object", source:
                self.promote.discard(source)
                self.keep.add(source)
            case "constant", sources:
                self.promote -= sources
            case "aliases", _:
                self.aliases_matter = True
            case "hashed", _:
                self.hashed = True
            case "elsewhere", ids:
                self.also_elsewhere |= ids
            case "written_elsewhere", objects:
                self.written_elsewhere |= objects
            case "promote", source:
                self.promote.add(source)
                self.changing.discard(source)  # it is written: no number that only differs from call to call
            case kind, _:
                raise AssertionError(f"nobody says {kind!r}")

    def keep_constant(self) -> bool:
        """Let what made the capture fail be constant again, numbers nobody writes first; whether there was any.

        Something structural depends on it: an index into a list of modules, say.
        """
        if self.promote & self.changing:
            self.promote -= self.changing
            return True
        made = set(self.lists) or self.promote
        self.keep |= made
        found = bool(made)
        (self.lists if self.lists else self.promote).clear()
        return found


@dataclass(frozen=True)
class Options:
    """What the user chose."""

    unroll_limit: int = 64
    for_calls: bool = True  # a file has no lists that grow with each call, and no plain floats of the run


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """Code and that of the functions that it defines: they are followed with it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _with_inner(each)
