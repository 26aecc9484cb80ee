"""Detectors with what comes after them: non-maximum suppression in plain torch, and DETR's threshold."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig


def overlaps(box: Tensor, others: Tensor) -> Tensor:
    """The intersection over union of a box and each of the others, as x0, y0, x1, y1."""
    low = torch.maximum(box[:2], others[:, :2])
    high = torch.minimum(box[2:], others[:, 2:])
    common = (high - low).clamp(min=0).prod(dim=1)
    areas = (others[:, 2:] - others[:, :2]).prod(dim=1)
    return common / ((box[2:] - box[:2]).prod() + areas - common)


def suppress(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """The boxes that no better one overlaps by more than the threshold, best first."""
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        best = order[0]
        keep.append(best)
        if order.numel() == 1:
            break
        rest = order[1:]
        order = rest[overlaps(boxes[best], boxes[rest]) <= threshold]
    return torch.stack(keep) if keep else torch.zeros(0, dtype=torch.long)


class Detector(nn.Module):
    """A box for each cell of a small convolutional network, for images of any size."""

    def __init__(self, classes: int = 3, sure: float = 0.4, overlap: float = 0.3) -> None:
        super().__init__()
        self.sure, self.overlap = sure, overlap
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1))
        self.classes = nn.Conv2d(8, classes, 1)
        self.boxes = nn.Conv2d(8, 4, 1)

    @torch.no_grad()
    def forward(self, image: Tensor) -> dict[str, Tensor]:
        cells = self.body(image[None])
        probability, label = self.classes(cells)[0].flatten(1).softmax(dim=0).max(dim=0)
        height, width = cells.shape[2:]
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        centre = torch.stack([x, y], dim=-1).reshape(-1, 2) * 4.0 + 2.0
        extent = self.boxes(cells)[0].flatten(1).T.exp() * 4.0
        boxes = torch.cat([centre - extent[:, :2], centre + extent[:, 2:]], dim=1)
        sure = probability > self.sure
        boxes, label, probability = boxes[sure], label[sure], probability[sure]
        if len(boxes) == 0:
            return {"boxes": boxes, "labels": label, "scores": probability}
        apart = label.to(boxes) * (boxes.max() + 1)  # so that boxes of two classes never overlap
        keep = suppress(boxes + apart[:, None], probability, self.overlap)
        return {"boxes": boxes[keep], "labels": label[keep], "scores": probability[keep]}


class Detr(nn.Module):
    """DETR with its post-processing: per image the queries that are sure, as boxes in pixels."""

    def __init__(self, sure: float) -> None:
        super().__init__()
        config = DetrConfig(
            backbone_config=ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
            use_timm_backbone=False,
            backbone=None,
            use_pretrained_backbone=False,
            num_queries=12,
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            num_labels=5,
            init_std=0.5,
        )
        self.sure = sure
        self.model = DetrForObjectDetection(config).eval()

    @torch.no_grad()
    def forward(self, pixels: Tensor, mask: Tensor, sizes: Tensor) -> list[dict[str, Tensor]]:
        found = self.model(pixel_values=pixels, pixel_mask=mask)
        scores, labels = found.logits.softmax(dim=-1)[..., :-1].max(dim=-1)
        centre, extent = found.pred_boxes[..., :2], found.pred_boxes[..., 2:]
        boxes = torch.cat([centre - extent / 2, centre + extent / 2], dim=-1)
        height, width = sizes.unbind(1)
        boxes = boxes * torch.stack([width, height, width, height], dim=1)[:, None, :]
        results = []
        for score, label, box in zip(scores, labels, boxes):
            keep = score > self.sure
            if keep.any():
                results.append({"scores": score[keep], "labels": label[keep], "boxes": box[keep]})
            else:  # the best one is better than nothing
                best = score.argmax()
                results.append({"scores": score[best, None], "labels": label[best, None], "boxes": box[best, None]})
        return results
