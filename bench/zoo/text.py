"""Programs of the zoo: text and speech, decoded and generated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.zoo.entries import Entry, Made


class _Called(nn.Module):
    """A method of a module, called by a module of its own."""

    def __init__(self, module: nn.Module, method: str, **options: Any) -> None:
        super().__init__()
        self.module, self.method, self.options = module, method, options

    def forward(self, *args: Any) -> Any:
        return getattr(self.module, self.method)(*args, **self.options)


def _drawn() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _tokens(words: int, *shape: int) -> Callable[[], list[tuple[Any, ...]]]:
    """Three calls with texts of that many words."""

    def calls() -> list[tuple[Any, ...]]:
        drawn = _drawn()
        return [(torch.randint(1, words, shape, generator=drawn),) for _ in range(3)]

    return calls


def _floats(*shape: int, scale: float = 1.0) -> Callable[[], list[tuple[Any, ...]]]:
    """Three calls with random floats."""

    def calls() -> list[tuple[Any, ...]]:
        drawn = _drawn()
        return [(torch.randn(shape, generator=drawn) * scale,) for _ in range(3)]

    return calls


def _sentences(tags: bool) -> list[tuple[Any, ...]]:
    """Emissions of three sentences of other lengths each time, their tags, and their mask."""
    drawn, made = _drawn(), []
    for lengths in ([5, 3, 2], [5, 5, 1], [4, 5, 3]):
        scores, chosen = torch.randn(5, 3, 4, generator=drawn), torch.randint(4, (5, 3), generator=drawn)
        mask = torch.arange(5)[:, None] < torch.tensor(lengths)
        made.append((scores, chosen, mask) if tags else (scores, mask))
    return made


def _crf_loss() -> Made:
    from torchcrf import CRF

    return Made(CRF(4), lambda: _sentences(True), trains=True)


def _crf_decode() -> Made:
    from torchcrf import CRF

    return Made(_Called(CRF(4), "decode"), lambda: _sentences(False))


def _x_transformer(method: str, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

        layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8, rotary_pos_emb=True)
        net = TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers)
        return Made(_Called(AutoregressiveWrapper(net), method, **options), _tokens(20, 2, 4))

    return make


def _performer(**options: Any) -> Callable[[], Made]:
    def make() -> Made:
        from performer_pytorch import AutoregressiveWrapper, PerformerLM

        net = PerformerLM(
            num_tokens=20, max_seq_len=12, dim=16, depth=1, heads=2, dim_head=8, causal=True, nb_features=8
        )
        return Made(_Called(AutoregressiveWrapper(net), "generate", seq_len=4, **options), _tokens(20, 2, 4))

    return make


class _MinGPT(nn.Module):
    """``generate`` as it stands in Andrej Karpathy's minGPT, of a small model."""

    def __init__(self, block_size: int = 6, words: int = 16, width: int = 8) -> None:
        super().__init__()
        self.block_size = block_size
        self.embedding, self.places = nn.Embedding(words, width), nn.Embedding(block_size, width)
        self.block = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, idx: Tensor) -> tuple[Tensor, None]:
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device).unsqueeze(0)
        mask = nn.Transformer.generate_square_subsequent_mask(idx.size(1))
        return self.head(self.block(self.embedding(idx) + self.places(pos), mask)), None

    @torch.no_grad()
    def generate(
        self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, do_sample: bool = False, top_k: Any = None
    ) -> Tensor:
        for _ in range(max_new_tokens):
            idx_cond = idx if idx.size(1) <= self.block_size else idx[:, -self.block_size :]
            logits, _ = self(idx_cond)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, top_k)
                logits[logits < v[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            if do_sample:
                idx_next = torch.multinomial(probs, num_samples=1)
            else:
                _, idx_next = torch.topk(probs, k=1, dim=-1)
            idx = torch.cat((idx, idx_next), dim=1)
        return idx


def _min_gpt(**options: Any) -> Callable[[], Made]:
    return lambda: Made(_Called(_MinGPT(), "generate", max_new_tokens=5, **options), _tokens(16, 2, 4), exact=True)


def _utterances(words: int = 5, steps: int = 8) -> list[tuple[Any, ...]]:
    """Log probabilities of two utterances, and their relative lengths."""
    drawn = _drawn()
    lengths = torch.tensor([1.0, 0.5]), torch.tensor([0.75, 1.0]), torch.tensor([1.0, 1.0])
    scores = [torch.randn(2, steps, words, generator=drawn).mul(3).log_softmax(-1) for _ in lengths]
    return list(zip(scores, lengths))


def _ctc_greedy() -> Made:
    from speechbrain.decoders.ctc import ctc_greedy_decode

    def decode(scores: Tensor, lengths: Tensor) -> Any:
        return ctc_greedy_decode(scores, lengths, blank_id=0)

    return Made(decode, _utterances)


def _ctc_searcher(kind: str) -> Callable[[], Made]:
    def make() -> Made:
        from speechbrain.decoders import ctc

        searcher = getattr(ctc, kind)(blank_index=0, vocab_list=["-", "a", "b", "c", " "], beam_size=3)

        def decode(scores: Tensor, lengths: Tensor) -> Any:
            return [[(each.text, each.score) for each in best] for best in searcher(scores, lengths)]

        return Made(decode, lambda: _utterances(steps=4))

    return make


def _searcher(kind: str, **options: Any) -> Callable[[], Made]:
    """A decoder of speech with attention, and its search."""

    def make() -> Made:
        import speechbrain.decoders
        from speechbrain.nnet.linear import Linear
        from speechbrain.nnet.RNN import AttentionalRNNDecoder

        decoder = AttentionalRNNDecoder("gru", "content", 3, 3, 1, enc_dim=7, input_size=3)
        parts = {"embedding": nn.Embedding(5, 3), "decoder": decoder, "linear": Linear(n_neurons=5, input_size=3)}
        search = getattr(speechbrain.decoders, kind)(
            **parts, bos_index=0, eos_index=1, min_decode_ratio=0, max_decode_ratio=1, **options
        )
        return Made(search, lambda: [(each * 4, torch.ones(2)) for (each,) in _floats(2, 5, 7)()])

    return make


def _transducer() -> Made:
    from speechbrain.decoders import TransducerBeamSearcher
    from speechbrain.nnet.embedding import Embedding
    from speechbrain.nnet.linear import Linear
    from speechbrain.nnet.RNN import GRU
    from speechbrain.nnet.transducer.transducer_joint import Transducer_joint

    embedding = Embedding(num_embeddings=6, embedding_dim=5, consider_as_one_hot=True, blank_id=0)
    search = TransducerBeamSearcher(
        decode_network_lst=[embedding, GRU(hidden_size=4, input_shape=(1, 3, 5))],
        tjoint=Transducer_joint(Linear(input_shape=(1, 1, 3, 4), n_neurons=4), joint="sum"),
        classifier_network=[Linear(input_shape=(1, 3, 4), n_neurons=6)],
        blank_id=0,
        beam_size=1,
        nbest=1,
    )
    return Made(search, _floats(2, 3, 4, scale=3.0))


def _config(name: str, **sizes: Any) -> Any:
    import transformers

    return getattr(transformers, f"{name}Config")(**sizes)


def _switch() -> Made:
    import transformers

    sizes = {"vocab_size": 20, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "num_experts": 3}
    config = _config("SwitchTransformers", **sizes, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1)
    model = transformers.SwitchTransformersForConditionalGeneration(config).eval()

    def forward(inputs: Tensor) -> Any:
        return model(input_ids=inputs, decoder_input_ids=inputs[:, :3], use_cache=False).logits

    return Made(forward, _tokens(20, 2, 5))


def _mixtral(**options: Any) -> Callable[[], Made]:
    def make() -> Made:
        import transformers

        sizes = {"vocab_size": 20, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "head_dim": 8}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "num_local_experts": 3}
        model = transformers.MixtralForCausalLM(_config("Mixtral", **sizes, **heads, **options)).eval()
        return Made(lambda inputs: model(inputs, use_cache=False).logits, _tokens(20, 2, 5))

    return make


def _speecht5() -> Made:
    import transformers

    sizes = {"vocab_size": 20, "hidden_size": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}
    heads = {"decoder_ffn_dim": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_mel_bins": 4}
    speech = {"speech_decoder_prenet_units": 8, "speech_decoder_postnet_units": 8, "speaker_embedding_dim": 4}
    model = transformers.SpeechT5ForTextToSpeech(_config("SpeechT5", **sizes, **heads, **speech)).eval()
    speaker = torch.zeros(1, 4)
    return Made(lambda inputs: model.generate_speech(inputs, speaker, maxlenratio=3.0), _tokens(20, 1, 4))


def _vits() -> Made:
    import transformers

    sizes = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 16}
    flow = {"spectrogram_bins": 5, "prior_encoder_num_flows": 1, "prior_encoder_num_wavenet_layers": 1}
    sizes |= {"flow_size": 8, "num_speakers": 1}
    duration = {"depth_separable_num_layers": 1, "duration_predictor_num_flows": 1, "duration_predictor_flow_bins": 4}
    sound = {"upsample_initial_channel": 8, "upsample_rates": [2, 2], "upsample_kernel_sizes": [4, 4]}
    blocks = {"resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1, 3]]}
    model = transformers.VitsModel(_config("Vits", **sizes, **flow, **duration, **sound, **blocks)).eval()
    return Made(lambda inputs: model(inputs).waveform, _tokens(20, 1, 4))


ENTRIES = (
    Entry("crf loss", "torchcrf", _crf_loss),
    Entry("crf decode", "torchcrf", _crf_decode),
    Entry("x-transformers greedy", "x_transformers", _x_transformer("generate", seq_len=4, temperature=0.0)),
    Entry("x-transformers top-k", "x_transformers", _x_transformer("generate", seq_len=4, eos_token=3)),
    Entry(
        "x-transformers top-p", "x_transformers", _x_transformer("generate", seq_len=4, filter_logits_fn="top_p")
    ),
    Entry("x-transformers beams", "x_transformers", _x_transformer("beam_search", seq_len=4, beams=2)),
    Entry("performer generate", "performer_pytorch", _performer(filter_thres=0.5)),
    Entry("performer penalty", "performer_pytorch", _performer(filter_thres=0.5, repetition_penalty=1.5)),
    Entry("minGPT greedy", "torch", _min_gpt()),
    Entry("minGPT top-k", "torch", _min_gpt(do_sample=True, top_k=4)),
    Entry("ctc greedy", "speechbrain", _ctc_greedy),
    Entry("ctc beams", "speechbrain", _ctc_searcher("CTCBeamSearcher")),
    Entry("ctc prefix beams", "speechbrain", _ctc_searcher("CTCPrefixBeamSearcher")),
    Entry("seq2seq greedy", "speechbrain", _searcher("S2SRNNGreedySearcher")),
    Entry("seq2seq beams", "speechbrain", _searcher("S2SRNNBeamSearcher", beam_size=2)),
    Entry("transducer greedy", "speechbrain", _transducer),
    Entry("switch transformer", "transformers", _switch),
    Entry("mixtral", "transformers", _mixtral()),
    Entry("mixtral eager experts", "transformers", _mixtral(experts_implementation="eager")),
    Entry("speecht5 speech", "transformers", _speecht5),
    Entry("vits", "transformers", _vits),
)
