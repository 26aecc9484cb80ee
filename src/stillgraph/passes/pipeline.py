"""The passes of the whole-graph lowering, in order. Each takes a valid program and leaves one of the same meaning."""

from __future__ import annotations

from collections.abc import Callable

from stillgraph.passes.exceptions.catching import hand_out_failures
from stillgraph.passes.exceptions.printing import drop_printing
from stillgraph.passes.exceptions.python_alone import refuse_python_alone
from stillgraph.passes.exceptions.raising import lower_raising
from stillgraph.passes.exceptions.texts import leave_out_texts
from stillgraph.passes.kernels.constants import hoist_constants
from stillgraph.passes.kernels.gradients import drop_gradients
from stillgraph.passes.kernels.kernels import choose_kernels
from stillgraph.passes.kernels.layout import contiguous_branch_results, refuse_asked_layouts
from stillgraph.passes.kernels.modes import settle_modes
from stillgraph.passes.kernels.open_sizes import write_out_for_open_sizes
from stillgraph.passes.kernels.sorting import order_to_tensors
from stillgraph.passes.lists.dead_lists import drop_dead_lists
from stillgraph.passes.lists.lists import lists_to_tensors
from stillgraph.passes.lists.optionals import split_optionals
from stillgraph.passes.lists.ragged import flatten_ragged_lists
from stillgraph.passes.loops.bounding import bound_loops
from stillgraph.passes.loops.loop_tests import check_before_tests
from stillgraph.passes.numbers.arithmetic import check_arithmetic
from stillgraph.passes.numbers.augmenting import replace_augmenting
from stillgraph.passes.numbers.complexes import split_complex
from stillgraph.passes.numbers.kind_codes import tell_kinds
from stillgraph.passes.numbers.mixed_numbers import check_mixed_numbers
from stillgraph.passes.numbers.numbers import lower_numbers
from stillgraph.passes.numbers.part_by_part import compare_part_by_part
from stillgraph.passes.optimise.optimise import optimise, optimise_for_a_compiler
from stillgraph.passes.regions.dead_code import drop_dead_code
from stillgraph.passes.regions.operands import tidy_operands
from stillgraph.passes.state.aliases import separate_aliases
from stillgraph.passes.state.joined_writes import write_to_both
from stillgraph.passes.state.mutation import lift_mutation
from stillgraph.program.program import Program

Pass = Callable[[Program], Program]

WHOLE_GRAPH: tuple[Pass, ...] = (
    refuse_python_alone,
    split_complex,
    compare_part_by_part,
    check_arithmetic,
    hand_out_failures,
    drop_gradients,
    drop_printing,
    choose_kernels,
    replace_augmenting,
    drop_dead_lists,
    leave_out_texts,
    flatten_ragged_lists,
    lists_to_tensors,
    order_to_tensors,
    split_optionals,
    check_mixed_numbers,
    check_before_tests,
    tell_kinds,
    lower_raising,
    drop_dead_code,
    hoist_constants,
    write_to_both,
    lift_mutation,
    drop_dead_code,
    lower_numbers,
    drop_dead_code,
    optimise,
    bound_loops,
    tidy_operands,
    refuse_asked_layouts,
    contiguous_branch_results,
    write_out_for_open_sizes,
    separate_aliases,
    settle_modes,
)


def for_a_compiler(passes: tuple[Pass, ...] = WHOLE_GRAPH) -> tuple[Pass, ...]:
    """Passes for a program that is compiled as a whole."""
    return tuple(optimise_for_a_compiler if each is optimise else each for each in passes)


def run(program: Program, passes: tuple[Pass, ...] = WHOLE_GRAPH) -> Program:
    """Apply passes one after another.

    Raises:
        ExportError: a pass has no form for something in the program.
    """
    for pass_ in passes:
        program = pass_(program)
    return program
