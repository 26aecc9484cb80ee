"""Texts with values of the run in them are made by the program, and returned or stored like any value."""

import collections
import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.importing import loaded
from tests.unit.operators.careful_texts import never_asked_for, of_a_message

P, N = torch.tensor([0.5, 0.25]), torch.tensor([-0.5, -2.25])


def beside_a_tensor(x: Tensor) -> Any:
    return x + 1, f"{x.sum().item():.2f}"


def in_a_loop(x: Tensor) -> Any:
    found = []
    for k in range(3):
        x = torch.tanh(x) * 2
        found.append(f"step {k}: {x.sum().item():.2f}")
    return x, found


def in_a_dict(x: Tensor) -> Any:
    d: dict[str, Any] = {"padded": f"{x.mean().item()!r:>25}"}
    d["added"] = str(x.sum().item()) + "!"
    d["percent"] = "%.3f of %s" % (x.sum().item(), x)  # noqa: UP031 - it is what is tried
    d["named"] = "{:>10} {name}".format(x[0].item(), name=x[1].item())  # noqa: UP032 - as above
    d["joined"] = ", ".join(f"{v:.1f}" for v in x.tolist())
    return d


def twice(x: Tensor) -> Any:
    t = f"{x.sum().item():.1f}"
    return t, [t], {"t": t}


def of_sizes(x: Tensor) -> Any:
    kept = x[x > 0]
    return f"{kept.shape} {len(kept)} {kept.shape[0]:03d}", f"{kept.dtype}", f"{kept}"


def of_an_array(x: Tensor) -> Any:
    a = x.numpy()
    return f"{a}", str(a.sum())


def by_a_function(x: Tensor) -> Any:
    def show(value: Tensor) -> str:
        return f"<{value.item():.1f}>"

    return [show(v) for v in x], "".join(show(v) for v in x)


def beside_a_loop_of_the_runs(x: Tensor) -> Any:
    before = f"{x.sum().item():.1f}"
    while x.sum() < 5:
        x = x + 1
    return before, f"{x.sum().item():.3f}"


def does_not_fit(x: Tensor) -> Any:
    texts = []
    try:
        texts.append(f"{x.sum().item():d}")
    except ValueError as error:
        texts.append(str(error))
    try:
        texts.append(f"{x:.2f}")
    except TypeError as error:
        texts.append(str(error))
    try:
        texts.append("%d %d" % (x[0].item(),))  # type: ignore[str-format]  # noqa: F507, UP031 - it is to fail
    except TypeError as error:
        texts.append(str(error))
    return texts


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Record:
    value: Any


def of_containers(x: Tensor) -> Any:
    number = x.sum().item()
    kept = [number, x]
    before = f"{kept}"
    kept.append(1)
    return before, f"{Pair(number, x)}", str([Pair(x, {'a': number})]), "%s and %s" % Pair(number, 2), kept  # noqa: UP031


def of_texts(x: Tensor) -> Any:
    text = f"{x.sum().item():.1f}"
    return f"{[text, 'b']}", f"{ {'t': text} }", f"{(text,)}", repr(Pair(text, text))


def of_parts(x: Tensor) -> Any:
    whole = "{0.shape} {0[0]} {a[k]}".format(x, a={"k": x.sum().item()})
    return whole, "{:>{w}.{p}f}|{:<8}|".format(x.sum().item(), "a", w=10, p=2)


def of_a_number_of_either_type(x: Tensor) -> Any:
    y = 1 if x.sum() > 0 else 2.5
    return f"{y:.2f}", f"{y}", f"{y:>5}"


def written_since(x: Tensor) -> Any:
    y = x * 1
    texts = [f"{y}"]
    y.add_(1)
    texts.append(f"{y}")
    torch._foreach_add_([y], 1)
    texts.append(str(y))
    y.data.mul_(2)
    with torch.inference_mode():
        z = x * 1
        texts.append(f"{[z]}")
        z.add_(1)
    return texts, y, z


def array_written_since(x: Tensor) -> Any:
    array = (x * 1).numpy()
    texts = [f"{array}"]
    array += 1
    texts.append(f"{[array]}")
    array[0] = 9
    return texts, array


def asked_for_gradients_since(x: Tensor) -> Any:
    y = x * 1
    text = f"{y}"
    y.requires_grad_()
    return text, y


def infinite(x: Tensor) -> Any:
    print("%d and %.1f" % (x.sum().item(), x.sum().item()))  # noqa: UP031 - it is what is tried
    return x


def one_or_another(x: Tensor) -> Any:
    if x.sum() > 0:
        text = f"up {x.sum().item():.2f}"
    else:
        text = f"down {x.sum().item():.2f}"
    return text


def set_of_tensors(x: Tensor) -> Any:
    return f"{ {x} }"


def keyed_by_a_tensor(x: Tensor) -> Any:
    return f"{ {x: 1} }"


def of_a_deque(x: Tensor) -> Any:
    return f"{collections.deque([x.sum().item()], maxlen=2)}", str(collections.OrderedDict(a=x))


def of_a_default_dict(x: Tensor) -> Any:
    return f"{collections.defaultdict(list, {'a': [x.sum().item()]})}"


def of_a_result_of_torchs(x: Tensor) -> Any:
    return f"{x.max(dim=0)}"


def of_a_record(x: Tensor) -> Any:
    return f"{Record(x)}", str([Record(x.sum().item())])


def of_an_exception(x: Tensor) -> Any:
    return repr(ValueError(f"{x.sum().item()}"))


def of_one_value(x: Tensor) -> Any:
    try:
        return "%.2f" % x  # noqa: UP031
    except ValueError as error:
        return str(error)


def of_a_code(x: Tensor) -> Any:
    try:
        return f"{int(x.sum()):c}"
    except OverflowError as error:
        return str(error)


def with_a_precision(x: Tensor) -> Any:
    try:
        return f"{x[0].item():.{int(x.sum())}f}"
    except ValueError as error:
        return str(error)


def of_a_number_or_none(x: Tensor) -> Any:
    y = x.sum().item() if x.sum() > 0 else None
    try:
        return f"{y:.2f}"
    except TypeError as error:
        return str(error)


def fits_one_type(x: Tensor) -> Any:
    y = 1 if x.sum() > 0 else 2.5
    try:
        return f"{y:d}"
    except ValueError as error:
        return str(error)


def computed_with(x: Tensor) -> Any:
    text = f"{x.sum().item():.1f}"
    return text.upper() if len(text) > 3 else text, text == "0.8", {text: 1}


WHOLE = [
    *(beside_a_tensor, in_a_loop, in_a_dict, twice, of_sizes, of_an_array, by_a_function, beside_a_loop_of_the_runs),
    *(does_not_fit, of_containers, of_texts, of_parts, of_a_number_of_either_type),
    *(written_since, array_written_since, asked_for_gradients_since, of_a_message),
    *(one_or_another, of_an_exception),
]
REFUSED = {
    **dict.fromkeys((of_one_value, of_a_code, with_a_precision, of_a_number_or_none, computed_with), "SG302"),
    **dict.fromkeys((fits_one_type, set_of_tensors, keyed_by_a_tensor, of_a_deque), "SG302"),
    **dict.fromkeys((of_a_default_dict, of_a_result_of_torchs, of_a_record), "SG302"),
}


def told(result: Any) -> str:
    return repr(result)


@pytest.mark.parametrize(
    ("function", "backend"), [*((each, "eager") for each in WHOLE), (in_a_loop, "inductor"), (in_a_dict, "inductor")]
)
def test_a_program_makes_texts(function: Any, backend: str) -> None:
    static = sg.to_static(function, backend=backend)
    for x in (P, N, P):
        assert told(static(x.clone())) == told(function(x.clone()))
    assert len(static.programs) == 1


@pytest.mark.parametrize("function", [*WHOLE, *REFUSED])
def test_without_a_full_graph(function: Any) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for x in (P, N, P):
        assert told(static(x.clone())) == told(function(x.clone()))
    assert (static.explain().breaks == ()) == (function in WHOLE)


@pytest.mark.parametrize("function", REFUSED)
def test_what_a_full_graph_refuses(function: Any) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(P)
    assert caught.value.reason.code == REFUSED[function]


@pytest.mark.parametrize("full_graph", [True, False])
def test_numbers_that_are_none(full_graph: bool, capsys: pytest.CaptureFixture[str]) -> None:
    static = sg.to_static(infinite, backend="eager", full_graph=full_graph)
    for value in (2.5, float("nan"), 3.0, float("inf")):
        outcomes = []
        for each in (infinite, static):
            try:
                outcomes.append((told(each(torch.tensor([value]))), capsys.readouterr().out))
            except (ValueError, OverflowError) as error:
                outcomes.append((repr(error), capsys.readouterr().out))
        assert outcomes[0] == outcomes[1]


def test_a_message_that_nobody_asks_for() -> None:
    static = sg.to_static(never_asked_for, full_graph=False, strict=True, backend="eager")
    assert torch.equal(static(P), P)
    with pytest.raises(TypeError, match="unsupported format string"):
        static(P - 1000)


class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last, self.history = "", ["begun"]

    def forward(self, x: Tensor) -> Tensor:
        self.last = f"{x.sum().item():.1f}"
        self.history.append(self.last)
        if x.sum() < -1:
            raise ValueError(f"too low: {self.last}")
        self.history.append("went well")
        return x * 2


@pytest.mark.parametrize("full_graph", [True, False])
def test_texts_that_are_stored(full_graph: bool) -> None:
    eager, original = Keeping(), Keeping()
    options: dict[str, Any] = {} if full_graph else {"full_graph": False, "strict": True}
    static = sg.to_static(original, backend="eager", **options)
    for x in (P, P * 2, N, P):
        outcomes = []
        for module in (eager, static):
            try:
                outcomes.append(repr(module(x)))
            except ValueError as error:
                outcomes.append(repr(error))
        assert outcomes[0] == outcomes[1]
        assert (original.last, original.history) == (eager.last, eager.history)
    assert original.history[1] is not original.last


def test_the_type_of_a_text() -> None:
    assert "-> (f32[2], str)" in str(sg.to_static(beside_a_tensor).get_program(P))


def test_texts_in_files(tmp_path: Path) -> None:
    sg.save(in_a_loop, tmp_path / "texts.py", args=(P,))
    module = loaded(tmp_path / "texts.py")
    assert told(module.in_a_loop(N)) == told(in_a_loop(N))
    for name in ("texts.pt2", "texts.onnx"):
        for target in (in_a_loop, Keeping()):
            with pytest.raises(sg.ExportError, match=r"a text with a value in it .* is returned or stored") as caught:
                sg.save(target, tmp_path / name, args=(P,))
            assert caught.value.reason.code == "SG402"
            assert not (tmp_path / name).exists()
