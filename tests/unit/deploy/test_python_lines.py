"""Statements that are too long for a line mean the same on several."""

from __future__ import annotations

import ast
import textwrap

import pytest

from stillgraph.deploy.python.lines import WIDTH, wrapped

LAYER = "self.model.model.decoder.layers[0].encoder_attention_layer_norm.weight"


@pytest.mark.parametrize("indent", [0, 40, 60, 80])
@pytest.mark.parametrize(
    "text",
    [
        f"hidden_states_3 = F.layer_norm(hidden_states_2, (32,), weight={LAYER}, bias=None)",
        f"hidden_states_3 = ({LAYER} + self.model.model.decoder.layers[1].encoder_attention_layer_norm.weight)",
        f"hidden_states_3 = {LAYER}",
        "hidden = table[the_first_of_several_indices_of_rows, the_second_of_several_indices][a_last_index_of_columns]",
        "several = [the_first_of_several_values_in_a_list_of_them, the_second_of_several_values_in_a_list_of_them]",
        "one = [the_only_one_of_several_values_in_a_list_of_them_with_a_long_name_that_does_not_fit_on_a_line]",
        "one = ('the only, one (of several', the_other_of_several_values_in_a_list_of_them_with_a_long_name, )",
    ],
)
def test_a_broken_statement_is_the_same(text: str, indent: int) -> None:
    lines = wrapped(text, " " * indent)
    assert ast.dump(ast.parse(textwrap.dedent("\n".join(lines)))) == ast.dump(ast.parse(text))
    assert len(lines) > 1 or len(lines[0]) <= WIDTH or indent == 80
