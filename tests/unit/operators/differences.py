"""Where a capture through bytecode differs from one through source: by module, test and parameters, the reason.

Without parameters, it holds for all of a test's.
"""

from __future__ import annotations

_NOT_REFUSED = "a handler is run on the path that raises, so what only staging it refuses is taken"
_DEBUGGERS = "a debugger sees the frames of the interpreter beside those of the user's"
_LOOKED_UP = "a method is looked up before it is called, and methods bound to one value or another have no join"
_CHAINED = "a chained comparison is two jumps, so the loop has no test of its own, and what it carries is joined in it"

_LEADS_ANYWHERE = "a generator that is interpreted leads to all of the capture, and so perhaps to the list it extends"

_BEFORE_THE_BRANCH = "`is None or` is two jumps to one place, where nobody knows which of them was taken"
_DISPLAYED = "the display of a set puts in one element after another, each in the arm of its path"
_NONE_ANSWERS = "test_none_answers_as_in_eager_where_there_may_be_a_tensor"

DIFFERENCES: dict[tuple[str, str, str], str] = {
    ("test_one_of_several_objects", "test_it_is_never_none_behind_the_branch", ""): _BEFORE_THE_BRANCH,
    ("test_consumers", "test_what_only_the_run_decides_is_taken_one_by_one", "unlike"): _LEADS_ANYWHERE,
    ("test_protected", "test_refused", "its_message-SG301"): "the text of an exception is refused as a text",
    ("test_protected", "test_refused", "which_of_the_call-SG301"): _NOT_REFUSED,
    ("test_texts_of_exceptions", "test_what_is_refused", "raised_on_a_path"): _NOT_REFUSED,
    ("test_protected", "test_refused", "equal_to_one_of_the_call-SG301"): _NOT_REFUSED,
    ("test_protected", "test_refused", "for_a_chosen_class-SG203"): _NOT_REFUSED,
    ("test_debugging", "test_a_tracer_sees_every_line", ""): _DEBUGGERS,
    ("test_debugging", "test_breakpoints_at_lines", "continue"): _DEBUGGERS,
    ("test_debugging", "test_a_hook_of_the_users_is_called_from_the_users_frame", ""): _DEBUGGERS,
    ("test_debugging", "test_pdb_is_started_in_the_users_frame", "plain-breakpoint()"): _DEBUGGERS,
    ("test_debugging", "test_a_debugger_of_the_users_stops_at_the_next_line", ""): _DEBUGGERS,
    ("test_debugging", "test_leaving_the_debugger_ends_the_call", ""): _DEBUGGERS,
    ("test_entries_refused", "test_refused", "in_a_display-SG211"): "`update` fills the display, and takes them",
    ("test_lists", "test_as_often_as_the_run_says", "grown_tuple"): _CHAINED,
    ("test_recursion", "test_the_body_is_recorded_once", ""): "a recursion of bounded depth is unrolled",
    ("test_unjoined", "test_refused_on_both_paths", "x0-hashed-SG203"): _DISPLAYED,
    ("test_unjoined", "test_refused_on_both_paths", "x1-hashed-SG203"): _DISPLAYED,
    ("test_unjoined", "test_the_rest_is_done_for_each", "length"): "what is unpacked is joined by its length",
    ("test_uses_of_none", _NONE_ANSWERS, "n.__add__(1)"): _LOOKED_UP,
    ("test_uses_of_none", _NONE_ANSWERS, "n.__getitem__(0)"): _LOOKED_UP,
    ("test_wrappers", "test_programs_say_what_they_leave_to_torch_and_are_not_exported", ""): "other names",
}
