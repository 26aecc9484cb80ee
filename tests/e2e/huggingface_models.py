"""Hugging Face model classes with tiny random configurations: what to build and what to call it with.

Nothing is downloaded. Every entry gives a model and a function that makes fresh inputs of fixed shapes from a seed, so
that two calls differ in values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf
from torch import Tensor, nn

VOCABULARY = 96
BATCH, LENGTH = 2, 8
IMAGE = 32

Inputs = Callable[[torch.Generator], dict[str, Tensor]]


@dataclass(frozen=True)
class Model:
    """One model class: how to build it and its inputs.

    Attributes:
        quick: it belongs to the tests that always run.
        pending: why it is not captured yet.
        pending_training: why its training step is not captured yet, where its forward is.
    """

    cls: type[nn.Module]
    config: Callable[[], hf.PretrainedConfig]
    inputs: Inputs
    quick: bool = False
    pending: str | None = None
    pending_training: str | None = None

    def build(self) -> nn.Module:
        """A model with the same random weights each time, in evaluation mode."""
        torch.manual_seed(0)
        return self.cls(self.config()).eval()

    def make_inputs(self, seed: int) -> dict[str, Tensor]:
        """Keyword arguments of one call."""
        return self.inputs(torch.Generator().manual_seed(seed))


# ---- inputs
def ids(generator: torch.Generator, length: int = LENGTH) -> Tensor:
    return torch.randint(5, VOCABULARY, (BATCH, length), generator=generator)


def text(generator: torch.Generator) -> dict[str, Tensor]:
    return {"input_ids": ids(generator)}


def masked_text(generator: torch.Generator) -> dict[str, Tensor]:
    # The first call masks nothing: a program that were specialised on that would be wrong in the second.
    shortest = LENGTH if generator.initial_seed() == 1 else 3
    lengths = torch.randint(shortest, LENGTH + 1, (BATCH, 1), generator=generator)
    return {"input_ids": ids(generator), "attention_mask": (torch.arange(LENGTH) < lengths).long()}


def labelled_text(generator: torch.Generator) -> dict[str, Tensor]:
    tokens = ids(generator)
    return {"input_ids": tokens, "labels": tokens}


def two_texts(generator: torch.Generator) -> dict[str, Tensor]:
    return {"input_ids": ids(generator), "decoder_input_ids": ids(generator, 5)}


def image(generator: torch.Generator) -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(BATCH, 3, IMAGE, IMAGE, generator=generator)}


def image_and_text(generator: torch.Generator) -> dict[str, Tensor]:
    return {**text(generator), **image(generator)}


def spectrogram_and_text(generator: torch.Generator) -> dict[str, Tensor]:
    return {"input_features": torch.randn(BATCH, 8, 40, generator=generator), "decoder_input_ids": ids(generator, 5)}


def waveform(generator: torch.Generator) -> dict[str, Tensor]:
    return {"input_values": torch.randn(BATCH, 400, generator=generator)}


# ---- configurations
def encoder(config: type[hf.PretrainedConfig], **options: Any) -> Callable[[], hf.PretrainedConfig]:
    """A two-layer transformer by the names most configurations use."""
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    }
    return lambda: config(**{**sizes, **options})


def decoder(config: type[hf.PretrainedConfig], **options: Any) -> Callable[[], hf.PretrainedConfig]:
    """The same with the names of token ids that lie inside the vocabulary."""
    return encoder(config, bos_token_id=1, eos_token_id=2, pad_token_id=0, **options)


def vision(config: type[hf.PretrainedConfig], **options: Any) -> Callable[[], hf.PretrainedConfig]:
    """A two-layer vision transformer on 8-pixel patches."""
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "image_size": IMAGE,
        "patch_size": 8,
    }
    return lambda: config(**{**sizes, **options})


def plain(config: type[hf.PretrainedConfig], **options: Any) -> Callable[[], hf.PretrainedConfig]:
    """A configuration from its own names alone."""
    return lambda: config(**options)


_SEQ2SEQ = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_CLIP_TEXT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_CLIP_VISION = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": IMAGE,
    "patch_size": 8,
}
_SPEECH = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "conv_dim": (16, 16),
    "conv_kernel": (8, 3),
    "conv_stride": (4, 2),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "apply_spec_augment": False,  # what it masks and the layers it drops are NumPy's random numbers,
    "layerdrop": 0.0,  # which no seed of torch's governs
}

MODELS: Mapping[str, Model] = {
    # ---- text encoders
    "bert": Model(hf.BertForPreTraining, encoder(hf.BertConfig), masked_text, quick=True),
    "roberta": Model(hf.RobertaForMaskedLM, encoder(hf.RobertaConfig), masked_text),
    "albert": Model(hf.AlbertForMaskedLM, encoder(hf.AlbertConfig, embedding_size=16), masked_text),
    "electra": Model(hf.ElectraForPreTraining, encoder(hf.ElectraConfig, embedding_size=16), masked_text),
    "distilbert": Model(
        hf.DistilBertForMaskedLM,
        plain(hf.DistilBertConfig, vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=64),
        masked_text,
    ),
    "mpnet": Model(hf.MPNetForMaskedLM, encoder(hf.MPNetConfig), masked_text),
    "deberta_v2": Model(
        hf.DebertaV2ForMaskedLM,
        encoder(hf.DebertaV2Config, relative_attention=True, pos_att_type=["p2c", "c2p"], type_vocab_size=0),
        masked_text,
    ),
    "xlnet": Model(
        hf.XLNetLMHeadModel,
        plain(hf.XLNetConfig, vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=64),
        text,
    ),
    "mobilebert": Model(
        hf.MobileBertForMaskedLM,
        encoder(hf.MobileBertConfig, embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16),
        masked_text,
    ),
    # ---- text decoders
    "gpt2": Model(
        hf.GPT2LMHeadModel,
        plain(
            hf.GPT2Config,
            vocab_size=VOCABULARY,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=64,
            bos_token_id=1,
            eos_token_id=2,
        ),
        labelled_text,
        quick=True,
    ),
    "llama": Model(hf.LlamaForCausalLM, decoder(hf.LlamaConfig, num_key_value_heads=2), masked_text, quick=True),
    "mistral": Model(
        hf.MistralForCausalLM, decoder(hf.MistralConfig, num_key_value_heads=2, sliding_window=4), masked_text
    ),
    "mixtral": Model(
        hf.MixtralForCausalLM,
        decoder(hf.MixtralConfig, num_key_value_heads=2, num_local_experts=4, experts_implementation="eager"),
        text,
    ),
    "qwen2": Model(hf.Qwen2ForCausalLM, decoder(hf.Qwen2Config, num_key_value_heads=2), masked_text),
    "gpt_neox": Model(hf.GPTNeoXForCausalLM, decoder(hf.GPTNeoXConfig), masked_text),
    "opt": Model(
        hf.OPTForCausalLM,
        plain(
            hf.OPTConfig,
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=64,
            max_position_embeddings=64,
            word_embed_proj_dim=32,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        ),
        masked_text,
    ),
    "bloom": Model(
        hf.BloomForCausalLM,
        plain(
            hf.BloomConfig,
            vocab_size=VOCABULARY,
            hidden_size=32,
            n_layer=2,
            n_head=4,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        ),
        masked_text,
    ),
    "phi": Model(hf.PhiForCausalLM, decoder(hf.PhiConfig), masked_text),
    "gemma": Model(hf.GemmaForCausalLM, decoder(hf.GemmaConfig, num_key_value_heads=1, head_dim=8), masked_text),
    "falcon": Model(hf.FalconForCausalLM, decoder(hf.FalconConfig), masked_text),
    "mamba": Model(
        hf.MambaForCausalLM,
        plain(
            hf.MambaConfig,
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_hidden_layers=2,
            state_size=4,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        ),
        text,
    ),
    # ---- encoders with decoders
    "t5": Model(
        hf.T5ForConditionalGeneration,
        plain(
            hf.T5Config,
            vocab_size=VOCABULARY,
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
        ),
        two_texts,
        quick=True,
    ),
    "bart": Model(
        hf.BartForConditionalGeneration, plain(hf.BartConfig, **_SEQ2SEQ, max_position_embeddings=64), two_texts
    ),
    "bart_layerdrop": Model(  # in training, whether a layer runs is a tensor's value
        hf.BartForConditionalGeneration,
        plain(
            hf.BartConfig,
            **_SEQ2SEQ,
            max_position_embeddings=64,
            encoder_layerdrop=0.5,
            decoder_layerdrop=0.5,
            use_cache=False,
        ),
        two_texts,
    ),
    "whisper": Model(
        hf.WhisperForConditionalGeneration,
        plain(hf.WhisperConfig, **_SEQ2SEQ, num_mel_bins=8, max_source_positions=20, max_target_positions=32),
        spectrogram_and_text,
    ),
    # ---- images and sound
    "vit": Model(hf.ViTForImageClassification, vision(hf.ViTConfig), image, quick=True),
    "deit": Model(hf.DeiTForImageClassification, vision(hf.DeiTConfig), image),
    "beit": Model(hf.BeitForImageClassification, vision(hf.BeitConfig), image),
    "dinov2": Model(hf.Dinov2ForImageClassification, vision(hf.Dinov2Config), image),
    "clip": Model(
        hf.CLIPModel,
        plain(hf.CLIPConfig, text_config=_CLIP_TEXT, vision_config=_CLIP_VISION, projection_dim=16),
        image_and_text,
    ),
    "convnext": Model(
        hf.ConvNextForImageClassification,
        plain(hf.ConvNextConfig, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 2, 1]),
        image,
    ),
    "resnet": Model(
        hf.ResNetForImageClassification,
        plain(hf.ResNetConfig, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2]),
        image,
        quick=True,
    ),
    "swin": Model(
        hf.SwinForImageClassification,
        plain(
            hf.SwinConfig, image_size=IMAGE, patch_size=4, embed_dim=16, depths=[1, 2], num_heads=[2, 4], window_size=4
        ),
        image,
    ),
    "segformer": Model(
        hf.SegformerForSemanticSegmentation,
        plain(
            hf.SegformerConfig,
            depths=[1, 1, 1, 1],
            hidden_sizes=[8, 16, 16, 32],
            num_attention_heads=[1, 2, 2, 4],
            decoder_hidden_size=16,
        ),
        image,
        pending="the library puts hooks on the modules at the first call, which a capture undoes",
    ),
    "wav2vec2": Model(hf.Wav2Vec2ForCTC, plain(hf.Wav2Vec2Config, **_SPEECH), waveform),
}
