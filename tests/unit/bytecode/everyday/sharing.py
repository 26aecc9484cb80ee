"""Everyday functions: tensors that share memory, in objects and numpy's arrays, written before and behind a print."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import struct
import weakref

import numpy as np
import torch

from tests.unit.bytecode.everyday.program import everyday, random_tensor


@everyday((random_tensor(0, 2, 3),), (random_tensor(1, 2, 3),))
def views(x):
    x = x.clone()
    flat, row, column = x.view(-1), x[0], x[:, 1]
    print(flat.sum().item())
    flat.add_(1)
    row[0] = 7
    print(x.tolist())
    column.mul_(-1)
    x.t_()
    print(row.tolist(), x.shape)
    return x, flat, row, column, flat.data_ptr() == row.data_ptr()


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def same_tensor(x):
    a = b = x
    holder = {"a": a, "list": [b, b]}
    print(holder["a"] is holder["list"][1])
    b += 1
    holder["list"][0].mul_(2)
    print(a.sum().item())
    a = a + 1
    return a, b, x, holder, holder["a"] is x


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def numpy_memory(x):
    a = x.numpy()
    a[0] = 5
    y = x * 2
    print(y[0].item())
    x[1] = 3
    a += 1
    b = torch.from_numpy(a)
    print(a.tolist())
    b.zero_()
    c = np.array([1.0, 2.0], dtype=np.float32)
    d = torch.as_tensor(c)
    c[0] = 9
    return x, y, a.sum(), d, torch.tensor(c)


class Box:
    def __init__(s, value):
        s.value = value
        s.history = []

    def put(s, value):
        s.history.append(s.value)
        s.value = value
        return s


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def boxes(x):
    box = Box(x)
    alias = box
    boxes = [box, alias, Box(box.value)]
    print(len({id(b) for b in boxes}))
    boxes[0].put(x + 1)
    alias.value.add_(1)
    print(box.value.tolist(), boxes[2].value is x)
    boxes[2].value[0] = 0
    return x, boxes[1].value, box.history, boxes[0] is alias


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def copies(x):
    shared = [x]
    tree = {"x": x, "shared": shared, "again": shared}
    shallow, deep = copy.copy(tree), copy.deepcopy(tree)
    print(shallow["shared"] is shared, deep["shared"] is deep["again"], deep["x"] is deep["shared"][0])
    x.add_(1)
    shared.append("new")
    deep["shared"].append("deep")
    clone = pickle.loads(pickle.dumps(deep))
    print(len(clone["again"]), clone["x"].tolist())
    return shallow, deep, clone["x"] * 2


STATE = {"buffer": torch.zeros(3), "count": 0}


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),), (random_tensor(2, 3),))
def buffers(x):
    old = STATE["buffer"]
    STATE["buffer"] = old * 0.5 + x
    STATE["count"] += 1
    print(STATE["count"], STATE["buffer"].sum().item())
    old.fill_(STATE["count"])
    if STATE["count"] % 2 == 0:
        STATE["buffer"].clamp_(min=0)
    return STATE["buffer"].clone(), old, old is STATE["buffer"]


RING = torch.zeros(3, 2)


class Ring:
    def __init__(s):
        s.at = 0
        s.full = False


RING_STATE = Ring()


@everyday(*((random_tensor(seed, 2),) for seed in range(4)))
def ring(x):
    RING[RING_STATE.at] = x
    RING_STATE.at = (RING_STATE.at + 1) % len(RING)
    RING_STATE.full = RING_STATE.full or RING_STATE.at == 0
    filled = RING if RING_STATE.full else RING[: RING_STATE.at]
    print(len(filled), f"{filled.mean():.3f}")
    return filled.clone(), RING_STATE.at


@everyday((random_tensor(0, 3, 3),), (random_tensor(1, 3, 3),))
def masked(x):
    y = x.clone()
    y[y < 0] = 0
    y[torch.arange(3), torch.arange(3)] += 1
    print(int((y == 0).sum()))
    y[1:, ::2] = -1
    y[..., -1].copy_(torch.arange(3.0))
    first, *rest = y
    first.neg_()
    print([r.tolist() for r in rest])
    index = torch.nonzero(y > 0)
    y.index_put_((index[:, 0], index[:, 1]), torch.tensor(9.0))
    return y, index, first


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def swapped(x):
    a, b = x[:2].clone(), x[2:].clone()
    a, b = b, a
    print(a.tolist())
    a[0], a[1] = a[1].clone(), a[0].clone()
    b.data = torch.ones(3)
    print(b.shape)
    b.set_(a)
    a.add_(1)
    return a, b, x


@dataclasses.dataclass
class Node:
    value: torch.Tensor
    left: Node | None = None
    right: Node | None = None

    def __iter__(s):
        if s.left:
            yield from s.left
        yield s
        if s.right:
            yield from s.right


def inserted(node, value):
    if node is None:
        return Node(value)
    if value.item() < node.value.item():
        node.left = inserted(node.left, value)
    else:
        node.right = inserted(node.right, value)
    return node


def depth(node):
    return 0 if node is None else 1 + max(depth(node.left), depth(node.right))


@everyday((random_tensor(0, 5),), (random_tensor(1, 5),))
def search_tree(x):
    root = None
    for value in x:
        root = inserted(root, value)
    print("depth", depth(root))
    for i, node in enumerate(root):
        node.value.mul_(i)
    return x, torch.stack([n.value for n in root]), depth(root)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def cycles(x):
    a = {"x": x}
    a["self"] = a
    b = [1, a]
    b.append(b)
    print(a["self"]["self"]["x"] is x, b[2][1] is a)
    a["self"]["x"] = x + 1
    held = Box(x)
    reference = weakref.ref(held)
    return a["x"], b[2][0], reference() is held


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def bytes_of(x):
    packed = struct.pack("<3f", *x.tolist())
    array = bytearray(packed)
    array[0:4] = struct.pack("<f", 1.5)
    back = torch.tensor(struct.unpack("<3f", bytes(array)))
    print(packed.hex()[:8], len(array))
    view = memoryview(array)
    view[4:8] = struct.pack("<f", x.sum().item())
    return back, torch.frombuffer(array, dtype=torch.float32).clone(), packed == bytes(array)


@everyday(([random_tensor(0, 2), random_tensor(1, 2)],), ([random_tensor(2, 2)],))
def arguments_written(xs):
    total = sum(xs)
    xs.append(total)
    print(len(xs))
    for i, x in enumerate(xs):
        x += i
    xs[0] = xs[0] * 10
    xs.insert(0, xs.pop())
    print([round(x.sum().item(), 3) for x in xs])
    return xs[::-1], xs[0] is total


@everyday((random_tensor(0, 4, 2),), (random_tensor(1, 4, 2),))
def detached(x):
    w = torch.ones(2, requires_grad=True)
    y = x @ w
    z = y.detach()
    z[0] = 100
    print(y[0].item())
    with torch.no_grad():
        w[0] = 3
        v = w.view(1, 2)
    v.add_(1) if not v.requires_grad else print("view requires grad")
    print(w.tolist())
    w.data.mul_(2)
    return y.detach(), z, w.detach().clone(), w.requires_grad


def reset() -> None:
    """Make the state as it was in the beginning."""
    STATE.update(buffer=torch.zeros(3), count=0)
    RING.zero_()
    RING_STATE.__init__()
