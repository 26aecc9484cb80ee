"""Programs of the zoo: images, geometry, and detection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bench.zoo.entries import Entry, Made


def _drawn() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _canny() -> Made:
    from kornia.filters import canny

    image = torch.rand(1, 1, 12, 12, generator=_drawn())
    ramp = torch.linspace(0, 1, 144).view(1, 1, 12, 12)
    return Made(canny, lambda: [(image,), (image * ramp,), (torch.zeros(1, 1, 12, 12),), ((image > 0.8).float(),)])


def _matches(wrong: int, size: int = 16) -> tuple[Tensor, Tensor]:
    """Points of two images with a homography between them, all but `wrong` of them."""
    points = torch.rand(size, 2, generator=_drawn()) * 100
    moved = points @ torch.tensor([[0.9, 0.1], [-0.1, 1.1]]) + 5
    moved[:wrong] += 40 * torch.rand(wrong, 2, generator=_drawn())
    return points, moved


def _ransac(**options: Any) -> Callable[[], Made]:
    def make() -> Made:
        from kornia.geometry import RANSAC

        ransac = RANSAC("homography", inl_th=1.0, batch_size=8, max_iter=4, **options)
        return Made(ransac, lambda: [_matches(n) for n in (2, 8, 0)])

    return make


def _polynomial() -> Made:
    from kornia.geometry.solvers import solve_cubic

    roots = torch.tensor([[1.0, -6.0, 11.0, -6.0], [1.0, 0.0, 0.0, 1.0]])
    return Made(solve_cubic, lambda: [(roots,), (torch.tensor([[0.0, 1, -3, 2], [0.0, 0, 2, 1]]),), (roots * 0,)])


def _kmeans() -> Made:
    from kornia.contrib import KMeans

    def clustered(points: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
        found = KMeans(3, points[:3].clone(), tolerance=1e-4, max_iterations=20)
        found.fit(points)
        return found.cluster_centers, found.predict(new)

    points = torch.randn(12, 2, generator=_drawn())
    return Made(clustered, lambda: [(points * n + n * torch.arange(12)[:, None] % 3, points) for n in range(1, 4)])


def _boxes(spread: float) -> tuple[Tensor, Tensor]:
    corners = torch.rand(8, 2, generator=_drawn()) * spread
    return torch.cat([corners, corners + 4], 1), torch.rand(8, generator=_drawn())


def _nms() -> Made:
    from torchvision.ops import batched_nms

    def kept(boxes: Tensor, scores: Tensor, classes: Tensor) -> Tensor:
        found: Tensor = boxes[batched_nms(boxes, scores, classes, 0.3)]
        return found

    return Made(kept, lambda: [(*_boxes(n), torch.arange(8) % 2) for n in (1.0, 10.0, 40.0)])


def _losses() -> Made:
    from torchvision.ops import complete_box_iou_loss

    def loss(found: Tensor, wanted: Tensor) -> Tensor:
        value: Tensor = complete_box_iou_loss(found, wanted, reduction="mean")
        return value

    return Made(loss, lambda: [(_boxes(n)[0], _boxes(9.0)[0]) for n in (1.0, 9.5, 40.0)], trains=True)


class _Backbone(nn.Module):
    """Two small maps of features."""

    out_channels = 8

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, 4, 1), nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        first = self.first(image)
        return {"0": first, "1": self.second(first)}


def _images() -> list[tuple[Any, ...]]:
    return [([torch.rand(3, 32, 32, generator=_drawn()) * n],) for n in range(1, 4)]


def _anchors() -> Any:
    from torchvision.models.detection.anchor_utils import AnchorGenerator

    return AnchorGenerator(((8,), (16,)), ((0.5, 1.0),) * 2)


def _retinanet() -> Made:
    from torchvision.models.detection import RetinaNet

    sizes = {"min_size": 32, "max_size": 32, "topk_candidates": 20}
    return Made(RetinaNet(_Backbone(), 3, anchor_generator=_anchors(), score_thresh=0.01, **sizes).eval(), _images)


def _faster_rcnn() -> Made:
    from torchvision.models.detection import FasterRCNN
    from torchvision.ops import MultiScaleRoIAlign

    pooled = MultiScaleRoIAlign(["0", "1"], 3, 2)
    sizes = {"min_size": 32, "max_size": 32, "rpn_post_nms_top_n_test": 10}
    model = FasterRCNN(_Backbone(), 3, rpn_anchor_generator=_anchors(), box_roi_pool=pooled, **sizes)
    return Made(model.eval(), _images)


def _raft() -> Made:
    from torchvision.models.optical_flow import raft_small

    model = raft_small(weights=None).eval()

    def flow(first: Tensor, second: Tensor) -> Any:
        return model(first, second, num_flow_updates=2)

    first = torch.rand(1, 3, 128, 128, generator=_drawn())
    return Made(flow, lambda: [(first, first.roll(n, -1)) for n in range(2)])


class _Glue(nn.Module):
    """The end of SuperGlue: optimal transport with a bin for points without a partner, and mutual best matches."""

    def __init__(self) -> None:
        super().__init__()
        self.bin = nn.Parameter(torch.tensor(1.0))

    def transported(self, scores: Tensor, steps: int) -> Tensor:
        rows, columns = scores.shape[1:]
        bins = self.bin.expand(1, rows + 1, columns + 1)
        couplings = torch.cat([torch.cat([scores, bins[:, :-1, -1:]], -1), bins[:, -1:]], 1)
        norm = -torch.tensor(rows + columns + 0.0).log()
        log_mu = torch.cat([norm.expand(rows), torch.tensor(columns).log()[None] + norm])[None]
        log_nu = torch.cat([norm.expand(columns), torch.tensor(rows).log()[None] + norm])[None]
        u, v = torch.zeros_like(log_mu), torch.zeros_like(log_nu)
        for _ in range(steps):
            u = log_mu - torch.logsumexp(couplings + v.unsqueeze(1), dim=2)
            v = log_nu - torch.logsumexp(couplings + u.unsqueeze(2), dim=1)
        return couplings + u.unsqueeze(2) + v.unsqueeze(1) - norm

    def forward(self, first: Tensor, second: Tensor) -> dict[str, Tensor]:
        if first.shape[1] == 0 or second.shape[1] == 0:
            return {"matches": first.new_full(first.shape[:-1], -1, dtype=torch.int)}
        scores = self.transported(torch.einsum("bnd,bmd->bnm", first, second), 20)
        best, other = scores[:, :-1, :-1].max(2), scores[:, :-1, :-1].max(1)
        places = torch.arange(first.shape[1])[None]
        mutual = places == other.indices.gather(1, best.indices)
        found = torch.where(mutual, best.values.exp(), scores.new_tensor(0))
        valid = mutual & (found > 0.2)
        if not valid.any():
            return {"matches": best.indices.new_full(first.shape[:-1], -1), "pairs": best.indices.new_zeros(0, 2)}
        matches = torch.where(valid, best.indices, best.indices.new_tensor(-1))
        return {"matches": matches, "pairs": torch.stack([torch.where(valid[0])[0], matches[valid]], 1)}


def _superglue() -> Made:
    points = torch.randn(1, 6, 4, generator=_drawn())
    return Made(_Glue(), lambda: [(points * n, points[:, [3, 1, 0, 2, 5]] * n) for n in (2.0, 0.0, 1.0)])


ENTRIES = (
    Entry("canny", "kornia", _canny),
    Entry("RANSAC", "kornia", _ransac(local_optimization="dlt")),
    Entry("RANSAC refined", "kornia", _ransac()),
    Entry("solve_cubic", "kornia", _polynomial),
    Entry("KMeans", "kornia", _kmeans),
    Entry("batched_nms", "torchvision", _nms),
    Entry("complete_box_iou_loss", "torchvision", _losses),
    Entry("RetinaNet", "torchvision", _retinanet),
    Entry("FasterRCNN", "torchvision", _faster_rcnn),
    Entry("RAFT", "torchvision", _raft),
    Entry("SuperGlue's matches", "torch", _superglue),
)
