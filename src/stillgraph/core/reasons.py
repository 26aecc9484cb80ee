"""The catalogue of reasons: every refusal, and what `explain` tells, has a code, a title, an explanation and a hint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Why a construct, a value or a target is refused; of SG6xx, why a program is as it is."""

    code: str
    title: str
    explanation: str
    hint: str


_ALL = (
    # ---- SG1xx: the source front end
    Reason(
        "SG101",
        "no source",
        "The function's source text cannot be read, so its rewritten source cannot be shown.",
        "Define the function in a file, or mark it with stillgraph.not_to_static.",
    ),
    Reason(
        "SG102",
        "ambiguous lambda",
        "Several lambdas on one line cannot be told apart.",
        "Put each lambda on a line of its own, or use def.",
    ),
    Reason(
        "SG103",
        "coroutine",
        "Asynchronous functions are not captured.",
        "Call the awaited work outside the static function.",
    ),
    Reason(
        "SG104",
        "frame introspection",
        "What looks at the frames of its callers would see those of the capture.",
        "Pass the values explicitly.",
    ),
    Reason(
        "SG105",
        "compiled by TorchScript",
        "Of what torch.jit made, only the compiled code is left, and not the Python that could be captured.",
        "Use the function or module itself, without torch.jit.",
    ),
    Reason(
        "SG106",
        "unsupported syntax",
        "This statement cannot be part of a captured function.",
        "Move it out of the function.",
    ),
    Reason(
        "SG107",
        "no way out in the midst",
        "Without a full graph Python takes over where a program ends; here other code stands in between, which waits.",
        "Make the inner function static instead, or write what ends the program outside of that code.",
    ),
    # ---- SG2xx: staging
    Reason(
        "SG201",
        "Shape Join Failed",
        "Two paths leave tensors in one place whose shapes cannot be joined.",
        "Make both paths give the same number of dimensions, or return from each path separately.",
    ),
    Reason(
        "SG202",
        "dtypes differ",
        "Two paths leave tensors of different dtype or device in one place.",
        "Convert one of them with .to(dtype) so that both paths agree.",
    ),
    Reason(
        "SG203",
        "values cannot be joined",
        "Two paths leave values of different kinds in one place.",
        "Give the name the same kind of value on both paths, or use two names.",
    ),
    Reason(
        "SG204",
        "possibly unbound",
        "An attribute is made or deleted on one path only, or what one path leaves unassigned is returned or stored.",
        "Assign it before the branch or loop.",
    ),
    Reason(
        "SG205",
        "loop does not settle",
        "What a loop carries keeps changing its kind from one iteration to the next.",
        "Give each carried variable a value of its final kind before the loop.",
    ),
    Reason(
        "SG206",
        "not iterable while staged",
        "The number of iterations depends on a tensor and this iterable cannot be staged.",
        "Loop over range(n) or over a tensor.",
    ),
    Reason(
        "SG207",
        "recursion on a variable condition",
        "A function calls itself under a condition that only the run knows.",
        "Write the recursion as a loop.",
    ),
    Reason(
        "SG208",
        "raise inside try",
        "An exception is raised under a condition that only the run knows, inside a try block.",
        "Compute what the handler would compute in the branch itself.",
    ),
    Reason(
        "SG209",
        "a path fails",
        "A branch or loop body that only the run may take fails while it is captured.",
        "See whether the line is right on that path; if it is never taken for such inputs, decide it by a condition on "
        "constants.",
    ),
    Reason(
        "SG210",
        "list of unknown length",
        "A list that grew or shrank where a tensor decides is used in a way that needs its length before the run.",
        "Index it, loop over it, take len() of it, or make a tensor of it with torch.stack or torch.cat.",
    ),
    Reason(
        "SG211",
        "key that may be missing",
        "A dict or set that has a key on some paths only is used in a way that needs to know whether it is there.",
        "Give the dict its keys before the branch (None, say), or ask for the key with in, get or [].",
    ),
    # ---- SG3xx: values known only at run time
    Reason(
        "SG301",
        "Python needs a value that only the run knows",
        "Python asked for the concrete value of what depends on a tensor's contents, in code that is not converted.",
        "Keep it a tensor and use torch's operations, or compute this outside the static function.",
    ),
    Reason(
        "SG302",
        "text of a staged value",
        "A string was built from a value that only the run knows.",
        "Print it, return it, or use it in an assertion message; strings cannot be computed with.",
    ),
    Reason(
        "SG303",
        "size specialised",
        "The capture relied on the concrete value of a dimension that was declared symbolic.",
        "Declare the dimension with its size, or write the code so that it does not depend on it.",
    ),
    Reason(
        "SG304",
        "value needed inside a torch function",
        "A torch function asked for the value of data during capture.",
        "Use an operator whose result shape does not depend on the data, or call it outside the static function.",
    ),
    Reason(
        "SG305",
        "state outside the program",
        "Python state is changed, or drawn from, in a way that cannot be made part of the program.",
        "Do this outside of the static function, and pass it what comes of it.",
    ),
    Reason(
        "SG306",
        "iterator or closure leaves the program",
        "What is returned would have to run Python on values that only the program has.",
        "Return the values themselves: a list, or the result of the function.",
    ),
    Reason(
        "SG307",
        "the capture fails",
        "The capture raises an error that eager PyTorch does not raise for the same call, which it makes in its place.",
        "Please report this, with the function. Where what it fails in is given nothing that depends on a tensor, "
        "marking that with stillgraph.not_to_static helps.",
    ),
    Reason(
        "SG308",
        "the call makes modules",
        "A module or parameter is made that outlives the call. A static function makes such a call in plain PyTorch.",
        "Call the function once before you export or save it.",
    ),
    Reason(
        "SG309",
        "left to torch.distributed",
        "A call exchanges data with other processes in a way that cannot be a step of the program.",
        "Make the module static first and wrap it then, so that this call stays outside the static function.",
    ),
    Reason(
        "SG310",
        "numpy without a counterpart",
        "numpy on a staged tensor is done by torch's numpy layer, which does not have this or gives another result.",
        "Write it with torch's operations, or call numpy outside the static function.",
    ),
    Reason(
        "SG311",
        "effect for many lanes",
        "A function that is called for many lanes at once has an effect, which would not be what a loop over them has.",
        "Return what is to be kept, and print or write it outside; or loop over the lanes.",
    ),
    Reason(
        "SG312",
        "lanes give different results",
        "The lanes of a batched call return what is no tensor, or tensors that cannot be stacked.",
        "Return tensors of one shape and dtype from every path: pad what differs in length.",
    ),
    # ---- SG4xx: deploy
    Reason(
        "SG401",
        "outputs differ in structure",
        "An export has one output signature, and the paths return different structures.",
        "Return the same structure from every path.",
    ),
    Reason(
        "SG402",
        "not exportable",
        "The format has no way to express an operation of the program.",
        "Save in another format, or rewrite the operation.",
    ),
    Reason(
        "SG403", "export differs", "The saved artefact does not give what the program gives.", "Please report this."
    ),
    Reason(
        "SG404",
        "not loadable",
        "The file is damaged, it is not one that save wrote, or loading it could run code of its author's.",
        "Save the program anew, or fetch the file once more from a source that you trust.",
    ),
    Reason("SG501", "bad argument", "An argument does not fit.", "Pass what the message says is expected."),
    Reason(
        "SG502",
        "differs from eager",
        "A check ran the program and eager PyTorch on copies of the same call, and they did not give the same.",
        "Nothing of the call has happened. Go back to plain PyTorch (rollback), and please report it, unless the fault "
        "is your own backend's.",
    ),
    Reason(
        "SG503",
        "cannot be checked",
        "A check runs the call on copies, and something that it uses cannot be copied, or acts on the world outside.",
        "Leave check out for this function, or check a part of it that does not use this.",
    ),
    # ---- SG6xx: no errors; what `explain` tells of a program
    Reason(
        "SG601",
        "specialised on a value",
        "The program is for one value of a number, flag or text that Python decided by; another value needs another.",
        "Pass what varies from call to call as a tensor.",
    ),
    Reason(
        "SG602",
        "done once per path",
        "Two paths leave values without a join in one place, so what uses it is recorded for each of the two.",
        "Give both paths values of one kind, dtype and number of dimensions.",
    ),
    Reason(
        "SG603",
        "another result on each path",
        "The paths return values without a join: the program gives that of the path taken, and no file can hold it.",
        "Return the same structure of tensors from every path.",
    ),
    Reason(
        "SG604",
        "loop unrolled",
        "How often a loop runs was known during capture, so its body is in the program once for each iteration.",
        "Let a tensor say how often, or lower unroll_limit, and the loop becomes one of the program.",
    ),
    Reason(
        "SG605",
        "left to Python",
        "A function is not rewritten: Python ran it as it is, and the program has the operations that it did.",
        "Take stillgraph.not_to_static away where a tensor should decide something in it.",
    ),
    Reason(
        "SG606",
        "decided during capture",
        "A condition, or what is asked of a tensor besides its contents, has one answer here; no other path is kept.",
        "Write the condition on a tensor's contents, or on a size that an InputSpec leaves open, for a branch.",
    ),
)

REASONS: dict[str, Reason] = {reason.code: reason for reason in _ALL}
