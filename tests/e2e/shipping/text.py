"""Text decoders: transformers' own `generate()`, and searches written by hand over GPT-2, T5 and Whisper."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    StaticCache,
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

VOCABULARY, PAD, BOS, EOS = 60, 0, 1, 2


def llama() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=40,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        initializer_range=0.5,
    )
    return LlamaForCausalLM(config).eval()


class Generated(nn.Module):
    """A model's own `generate()`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        made: Tensor = self.model.generate(ids, max_new_tokens=8, do_sample=False)
        return made


def gpt2(attention: str = "eager") -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=40,
        bos_token_id=BOS,
        eos_token_id=EOS,
        initializer_range=0.5,  # so that the tokens vary
        pad_token_id=PAD,
        attn_implementation=attention,
    )
    return GPT2LMHeadModel(config).eval()


class Greedy(nn.Module):
    """Append the likeliest token until every text has ended or is long enough."""

    def __init__(self, model: nn.Module, eos: int, max_length: int) -> None:
        super().__init__()
        self.model, self.eos, self.max_length = model, eos, max_length

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Tensor:
        finished = torch.zeros(ids.shape[0], dtype=torch.bool)
        while ids.shape[1] < self.max_length:
            logits = self.model(ids, use_cache=False).logits[:, -1]
            token = logits.argmax(dim=-1)
            token = torch.where(finished, PAD, token)
            ids = torch.cat([ids, token[:, None]], dim=1)
            finished |= token == self.eos
            if finished.all():
                break
        return ids


class CachedGreedy(nn.Module):
    """The same with keys and values in a cache of one size: each step reads one token."""

    def __init__(self, model: nn.Module, eos: int, max_length: int) -> None:
        super().__init__()
        self.model, self.eos, self.max_length = model, eos, max_length

    @torch.no_grad()
    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        batch, length = ids.shape
        cache = StaticCache(config=self.model.config, max_cache_len=self.max_length)
        text = torch.full((batch, self.max_length), PAD)
        text[:, :length] = ids
        finished = torch.zeros(batch, dtype=torch.bool)
        lengths = torch.full((batch,), length)
        logits = self.model(ids, past_key_values=cache, use_cache=True).logits[:, -1]
        while length < self.max_length:
            token = logits.argmax(dim=-1).masked_fill(finished, PAD)
            text[:, length] = token
            lengths = lengths + (~finished)
            finished = finished | (token == self.eos)
            if finished.all():
                break
            logits = self.model(token[:, None], past_key_values=cache, use_cache=True).logits[:, -1]
            length += 1
        return text, lengths


class Beam(nn.Module):
    """Beam search over one text: the best beams live on until one that has ended cannot be beaten."""

    def __init__(self, model: nn.Module, eos: int, max_length: int, beams: int = 3) -> None:
        super().__init__()
        self.model, self.eos, self.max_length, self.beams = model, eos, max_length, beams

    @torch.no_grad()
    def forward(self, prompt: Tensor) -> tuple[Tensor, Tensor]:
        ids = prompt.expand(self.beams, -1)
        scores = torch.full((self.beams,), float("-inf"))
        scores[0] = 0.0  # all beams begin alike, so one of them counts
        finished = torch.zeros(self.beams, dtype=torch.bool)
        while ids.shape[1] < self.max_length and not finished.all():
            logp = self.model(ids, use_cache=False).logits[:, -1].log_softmax(dim=-1)
            if finished.any():
                ended = torch.full_like(logp, float("-inf"))
                ended[:, PAD] = 0.0
                logp = torch.where(finished[:, None], ended, logp)
            scores, best = (scores[:, None] + logp).flatten().topk(self.beams)
            beam, token = best // logp.shape[1], best % logp.shape[1]
            ids = torch.cat([ids[beam], token[:, None]], dim=1)
            finished = finished[beam] | (token == self.eos)
        return ids[scores.argmax()], scores.max()


class CachedBeam(nn.Module):
    """Beam search with a static cache, whose rows are put in the order of the beams after each step."""

    def __init__(self, model: nn.Module, eos: int, max_length: int, beams: int = 3) -> None:
        super().__init__()
        self.model, self.eos, self.max_length, self.beams = model, eos, max_length, beams

    @torch.no_grad()
    def forward(self, prompt: Tensor) -> tuple[Tensor, Tensor]:
        length = prompt.shape[1]
        cache = StaticCache(config=self.model.config, max_cache_len=self.max_length)
        ids = torch.full((self.beams, self.max_length), PAD)
        ids[:, :length] = prompt
        scores = torch.full((self.beams,), float("-inf"))
        scores[0] = 0.0
        finished = torch.zeros(self.beams, dtype=torch.bool)
        step = prompt.repeat(self.beams, 1)
        logits = self.model(step, past_key_values=cache, use_cache=True).logits[:, -1]
        while True:
            logp = logits.log_softmax(dim=-1)
            ended = torch.full_like(logp, float("-inf"))
            ended[:, PAD] = 0.0
            logp = torch.where(finished[:, None], ended, logp)
            scores, best = (scores[:, None] + logp).flatten().topk(self.beams)
            beam, token = best // logp.shape[1], best % logp.shape[1]
            ids = ids[beam]
            ids[:, length] = token
            finished = finished[beam] | (token == self.eos)
            length += 1
            if finished.all() or length == self.max_length:
                break
            cache.reorder_cache(beam)
            logits = self.model(token[:, None], past_key_values=cache, use_cache=True).logits[:, -1]
        return ids[0, :length], scores[0]


class Translator(nn.Module):
    """T5: the text is encoded once, the answer grows token by token."""

    def __init__(self, model: nn.Module, eos: int, max_length: int) -> None:
        super().__init__()
        self.model, self.eos, self.max_length = model, eos, max_length

    @torch.no_grad()
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        encoded = self.model.encoder(input_ids=input_ids, attention_mask=attention_mask)
        answer = torch.zeros(input_ids.shape[0], 1, dtype=torch.long)
        finished = torch.zeros(input_ids.shape[0], dtype=torch.bool)
        for _ in range(self.max_length):
            logits = self.model(
                encoder_outputs=encoded,
                attention_mask=attention_mask,
                decoder_input_ids=answer,
                use_cache=False,
            ).logits
            token = logits[:, -1].argmax(dim=-1).masked_fill(finished, PAD)
            answer = torch.cat([answer, token[:, None]], dim=1)
            finished = finished | (token == self.eos)
            if finished.all():
                break
        return answer


class Transcriber(nn.Module):
    """Whisper: a spectrogram in, the tokens of a list put together at the end."""

    def __init__(self, model: nn.Module, eos: int, max_length: int) -> None:
        super().__init__()
        self.model, self.eos, self.max_length = model, eos, max_length

    @torch.no_grad()
    def forward(self, features: Tensor, suppressed: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.model.model.encoder(features).last_hidden_state
        text = torch.full((1, 1), BOS)
        surprise = []
        while text.shape[1] < self.max_length:
            decoded = self.model.model.decoder(input_ids=text, encoder_hidden_states=hidden, use_cache=False)
            logits = self.model.proj_out(decoded.last_hidden_state[:, -1])
            logits[:, suppressed] = float("-inf")
            logp = logits.log_softmax(dim=-1)
            token = logp.argmax(dim=-1, keepdim=True)
            surprise.append(-logp.max())
            text = torch.cat([text, token], dim=1)
            if token.item() == self.eos:
                break
        return text, torch.stack(surprise).mean()


def t5() -> T5ForConditionalGeneration:
    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=PAD,
        pad_token_id=PAD,
        initializer_factor=3.0,
    )
    return T5ForConditionalGeneration(config).eval()


def whisper() -> WhisperForConditionalGeneration:
    config = WhisperConfig(
        vocab_size=VOCABULARY,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        num_mel_bins=8,
        max_source_positions=20,
        max_target_positions=32,
        init_std=0.5,
    )
    return WhisperForConditionalGeneration(config).eval()
