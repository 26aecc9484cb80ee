"""Programs of the zoo: graphs, memories, trees of Python objects, and rollouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.zoo.entries import Entry, Made


def _drawn() -> torch.Generator:
    return torch.Generator().manual_seed(0)


class _Graphs(nn.Module):
    """A convolution of a graph, a pooling, and a classification."""

    def __init__(self, kind: str, pooled: str) -> None:
        super().__init__()
        import torch_geometric.nn as gnn

        self.convolution = getattr(gnn, kind)(4, 8)
        self.pool = getattr(gnn, pooled)
        self.out = nn.Linear(8, 2)

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        found: Tensor = self.out(self.pool(self.convolution(x, edges).relu(), batch))
        return found


def _graph(seed: int) -> tuple[Any, ...]:
    drawn = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, 6, (2, 10), generator=drawn)
    return torch.randn(6, 4, generator=drawn), edges, torch.tensor([0, 0, 0, 1, 1, seed % 2 + 1])


def _graphs(kind: str, pooled: str) -> Callable[[], Made]:
    return lambda: Made(_Graphs(kind, pooled), lambda: [_graph(n) for n in range(3)], trains=True)


def _topk_pooling() -> Made:
    from torch_geometric.nn import TopKPooling

    graphs = [_graph(n) for n in range(3)]
    return Made(TopKPooling(4, ratio=0.5), lambda: [(x, edges, None, batch) for x, edges, batch in graphs])


def _tacotron() -> Made:
    from torchaudio.models import Tacotron2

    small = dict.fromkeys(("attention_rnn_dim", "decoder_rnn_dim", "prenet_dim", "attention_hidden_dim"), 16)
    model = Tacotron2(n_mels=4, symbol_embedding_dim=16, encoder_embedding_dim=16, decoder_max_step=8, **small).eval()
    model.decoder.gate_threshold = 0.497
    drawn = [torch.randint(1, 90, (1, 5), generator=torch.Generator().manual_seed(n)) for n in range(4)]
    return Made(model.infer, lambda: [(tokens,) for tokens in drawn])


class _TuringMachine(nn.Module):
    """A neural Turing machine with one head, as in the article: a new controller state for each symbol."""

    def __init__(self, cells: int = 5, width: int = 3) -> None:
        super().__init__()
        self.controller = nn.LSTMCell(2 + width, 8)
        self.head = nn.Linear(8, width * 3 + 6)
        self.out = nn.Linear(8 + width, 2)
        self.register_buffer("start", torch.full((cells, width), 1e-6))
        self.width = width

    def addressed(self, memory: Tensor, weight: Tensor, given: list[Tensor]) -> Tensor:
        key, strength, gate, shift, sharpness = given
        content = functional.cosine_similarity(memory + 1e-16, key + 1e-16, dim=-1)
        content = torch.softmax(functional.softplus(strength) * content, dim=0)
        mixed = gate.sigmoid() * content + (1 - gate.sigmoid()) * weight
        padded = torch.cat([mixed[-1:], mixed, mixed[:1]])
        moved = functional.conv1d(padded[None, None], torch.softmax(shift, 0)[None, None])[0, 0]
        powered = moved ** (1 + functional.softplus(sharpness))
        return powered / (powered.sum() + 1e-16)

    def forward(self, symbols: Tensor, length: Tensor) -> Tensor:
        memory: Tensor = self.start  # type: ignore[assignment]  # a buffer
        weight, read = torch.softmax(memory[:, 0], 0), memory[0]
        state = None
        outputs = []
        for step in range(int(length)):
            state = self.controller(torch.cat([symbols[step], read])[None], state)
            sizes = [self.width, 1, 1, 3, 1, self.width, self.width]
            *given, erased, added = self.head(state[0][0]).split(sizes)
            weight = self.addressed(memory, weight, given)
            memory = memory * (1 - weight[:, None] * erased.sigmoid()) + weight[:, None] * added
            read = weight @ memory
            outputs.append(self.out(torch.cat([state[0][0], read])))
        return torch.stack(outputs)


def _turing_machine() -> Made:
    symbols = torch.randn(6, 2, generator=_drawn())
    return Made(_TuringMachine(), lambda: [(symbols.clone(), torch.tensor(n)) for n in (4, 6, 1)], trains=True)


class _Pointer(nn.Module):
    """A pointer network that decodes until it is unsure, and points to no element twice."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.LSTM(2, width, batch_first=True), nn.LSTMCell(width, width)
        self.keys, self.query, self.score = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)
        nn.init.normal_(self.score.weight, std=4.0)

    def forward(self, points: Tensor) -> tuple[list[int], Tensor]:
        memory, (hidden, cell) = self.encoder(points[None])
        memory, state = memory[0], (hidden[0], cell[0])
        given, chosen, total = memory[-1:], [], points.new_zeros(())
        used = torch.zeros(len(points), dtype=torch.bool)
        while not used.all():
            state = self.decoder(given, state)
            scores = self.score(torch.tanh(self.keys(memory) + self.query(state[0])))[:, 0]
            log_p = scores.masked_fill(used, float("-inf")).log_softmax(0)
            place = int(log_p.argmax())
            total = total + log_p[place]
            if float(log_p[place]) < -1.2:  # unsure
                break
            chosen.append(place)
            used[place] = True
            given = memory[place : place + 1]
        return chosen, total


def _pointer() -> Made:
    drawn = [9 * torch.randn(5, 2, generator=torch.Generator().manual_seed(n)) for n in range(4)]
    return Made(_Pointer(), lambda: [(points,) for points in drawn])


@dataclass
class _Tree:
    """A node of a sentence's parse."""

    word: int
    children: list[_Tree] = field(default_factory=list)


class _TreeLSTM(nn.Module):
    """A child-sum tree LSTM over Python objects."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, width)
        self.iou, self.hidden_iou = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)
        self.f, self.hidden_f = nn.Linear(width, width), nn.Linear(width, width)

    def node(self, tree: _Tree) -> tuple[Tensor, Tensor]:
        x = self.embedding.weight[tree.word]
        states = [self.node(child) for child in tree.children]
        hidden = torch.stack([h for h, _ in states]).sum(0) if states else torch.zeros_like(x)
        i, o, u = (self.iou(x) + self.hidden_iou(hidden)).chunk(3)
        cell = i.sigmoid() * u.tanh()
        for h, c in states:
            forgets = torch.sigmoid(self.f(x) + self.hidden_f(h))
            cell = cell + (forgets * c if forgets.mean() > 0.5 else torch.zeros_like(c))
        return o.sigmoid() * cell.tanh(), cell

    def forward(self, tree: _Tree) -> Tensor:
        return self.node(tree)[0]


def _trees() -> list[tuple[Any, ...]]:
    leaf = _Tree(1)
    return [(_Tree(3, [leaf, _Tree(2)]),), (_Tree(3, [_Tree(1), _Tree(7)]),), (_Tree(5, [_Tree(4, [_Tree(6)])]),)]


class _Node:
    """A node of a search."""

    def __init__(self, prior: Any, state: Tensor) -> None:
        self.prior, self.state = prior, state
        self.visits, self.total = 0, 0.0
        self.children: list[_Node] = []

    def value(self) -> float:
        return self.total / self.visits if self.visits else 0.0


class _Search(nn.Module):
    """Monte Carlo tree search with a small model of the game, as in AlphaZero."""

    def __init__(self, rounds: int = 6) -> None:
        super().__init__()
        self.policy, self.judge, self.rounds = nn.Linear(3, 2), nn.Linear(3, 1), rounds

    def picked(self, node: _Node) -> _Node:
        def score(child: _Node) -> Any:
            return child.value() + child.prior * node.visits**0.5 / (1 + child.visits)

        return max(node.children, key=score)

    def forward(self, state: Tensor) -> Tensor:
        root = _Node(1.0, state)
        for _ in range(self.rounds):
            node, path = root, [root]
            while node.children:
                node = self.picked(node)
                path.append(node)
            priors = self.policy(node.state).softmax(0)
            node.children = [_Node(priors[k].item(), (node.state + k - 0.5).tanh()) for k in range(2)]
            value = self.judge(node.state).tanh().item()
            for each in reversed(path):
                each.visits += 1
                each.total += value
                value = -value
        return torch.tensor([child.visits for child in root.children])


def _search() -> Made:
    return Made(_Search(), lambda: [(torch.randn(3, generator=torch.Generator().manual_seed(n)),) for n in range(3)])


class _Pole:
    """A pole on a cart, with the interface of gymnasium's environments."""

    def __init__(self, start: Tensor) -> None:
        self.start, self.state, self.steps = start, start, 0

    def reset(self) -> tuple[Tensor, dict[str, Any]]:
        self.state, self.steps = self.start.clone(), 0
        return self.state, {}

    def step(self, action: int) -> tuple[Tensor, float, bool, bool, dict[str, Any]]:
        _, speed, angle, turning = self.state.unbind()
        force = 10.0 if action == 1 else -10.0
        turn = 9.8 * angle.sin() - angle.cos() * force / 1.1
        change = torch.stack([speed, torch.tensor(force) / 1.1, turning, turn])
        self.state = self.state + 0.02 * change
        self.steps += 1
        fallen = bool(self.state[0].abs() > 2.4) or bool(self.state[2].abs() > 0.2)
        return self.state, 1.0, fallen, self.steps >= 40, {"steps": self.steps}


class _Policy(nn.Module):
    """An episode, and REINFORCE's loss of it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, start: Tensor) -> tuple[Tensor, int, float]:
        environment = _Pole(start)
        state, _ = environment.reset()
        rewards: list[float] = []
        logs: list[Tensor] = []
        done = False
        while not done:
            chances = torch.distributions.Categorical(logits=self.net(state))
            action = chances.sample()
            logs.append(chances.log_prob(action))
            state, reward, fallen, late, info = environment.step(int(action.item()))
            rewards.append(reward)
            done = fallen or late
        returns: list[float] = []
        total = 0.0
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.insert(0, total)
        loss = -(torch.stack(logs) * torch.tensor(returns)).sum()
        return loss, info["steps"], total


def _rollout() -> Made:
    return Made(_Policy(), lambda: [(torch.tensor([0.0, 0.0, 0.04 * n, 0.0]),) for n in range(4)])


ENTRIES = (
    Entry("GCNConv", "torch_geometric", _graphs("GCNConv", "global_mean_pool")),
    Entry("GATConv", "torch_geometric", _graphs("GATConv", "global_max_pool")),
    Entry("TopKPooling", "torch_geometric", _topk_pooling),
    Entry("Tacotron2", "torchaudio", _tacotron),
    Entry("neural Turing machine", "torch", _turing_machine),
    Entry("pointer network", "torch", _pointer),
    Entry("tree LSTM", "torch", lambda: Made(_TreeLSTM(), _trees)),
    Entry("tree search", "torch", _search),
    Entry("rollout", "torch", _rollout),
)
