"""Runs Hugging Face's ELECTRA or ModernBERT in PyTorch, with a joint step, which the library lacks.

Runs in the environment of `make peers`.
"""

import itertools
import types
from collections.abc import Mapping
from typing import Any

import torch
import transformers
from torch.nn import functional

from benchmarks.pretraining import system
from benchmarks.pretraining.system import Workload


class JointModel(torch.nn.Module):
    """Generator and discriminator with tied embeddings."""

    def __init__(self, work: Workload):
        super().__init__()
        if work.discriminator.architecture == "modernbert":
            self.generator = transformers.ModernBertForMaskedLM(_config(work.generator))
            self.generator_encoder, head, decoder = (
                self.generator.model, self.generator.head, self.generator.decoder)
            self.encoder = transformers.ModernBertModel(_config(work.discriminator))
            # The class has no head that detects replaced tokens.
            size = work.discriminator.hidden_size
            self.detect = torch.nn.Sequential(
                torch.nn.Linear(size, size), torch.nn.GELU(), torch.nn.Linear(size, 1))
            decoder.weight = self.encoder.embeddings.tok_embeddings.weight
        else:
            self.generator = transformers.ElectraForMaskedLM(_config(work.generator))
            self.generator_encoder, head, decoder = (
                self.generator.electra, self.generator.generator_predictions,
                self.generator.generator_lm_head)
            discriminator = transformers.ElectraForPreTraining(_config(work.discriminator))
            self.encoder, self.detect = (
                discriminator.electra, discriminator.discriminator_predictions)
            decoder.weight = self.encoder.embeddings.word_embeddings.weight
        # All tables of embeddings and their layer norm are shared, as the paper ties them.
        self.generator_encoder.embeddings = self.encoder.embeddings
        self.predict = torch.nn.Sequential(head, decoder)
        self.predictions = work.predictions
        self.register_buffer("special_ids", torch.tensor(system.SPECIAL_IDS))

    def forward(self, ids: torch.Tensor, padding_mask: torch.Tensor) -> torch.Tensor:
        """Maps int64 [B, L] and bool [B, L] without padding to the loss []."""
        # Mask N positions of every example.
        chances = torch.rand(ids.shape).masked_fill(torch.isin(ids, self.special_ids), -1.0)
        positions = chances.topk(self.predictions, dim=1).indices
        labels = ids.gather(1, positions)
        hidden = torch.rand(positions.shape) < system.MASK_TOKEN_FRACTION
        masked = ids.scatter(1, positions, torch.where(hidden, system.MASK_ID, labels))
        # Generator: the head reads the masked positions alone.
        states = self.generator_encoder(masked, attention_mask=padding_mask).last_hidden_state
        size = states.shape[-1]
        chosen = states.gather(1, positions[..., None].expand(-1, -1, size)).reshape(-1, size)
        logits = self.predict(chosen).float()
        generator_loss = functional.cross_entropy(logits, labels.reshape(-1))
        # Sampling by inverse CDF, 30 ms for [608, 30522] on two cores; `torch.multinomial` and
        # Gumbel noise draw V numbers per position, in 410 ms.
        with torch.no_grad():
            cumulative = logits.softmax(-1).cumsum(-1)
            uniforms = torch.rand(len(logits), 1) * cumulative[:, -1:]
            samples = torch.searchsorted(cumulative, uniforms, right=True).clamp_(
                max=logits.shape[1] - 1)
            corrupted = ids.scatter(1, positions, samples.reshape(labels.shape))
        # Discriminator: every position counts.
        states = self.encoder(corrupted, attention_mask=padding_mask).last_hidden_state
        scores = self.detect(states).reshape(ids.shape).float()
        losses = functional.binary_cross_entropy_with_logits(
            scores, (corrupted != ids).float(), reduction="none")
        return (system.GENERATOR_WEIGHT * generator_loss
                + system.DISCRIMINATOR_WEIGHT * (losses * padding_mask).sum()
                / padding_mask.sum())


def prepare(work: Workload, precision: str, compiled: bool) -> system.Step:
    """Returns the step in a precision, eager or compiled."""
    torch.set_num_threads(work.threads)
    torch.manual_seed(1)
    # Model, optimizer and synthetic batches.
    model = JointModel(work).train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([
        {"params": [value for value in parameters if value.ndim > 1],
         "weight_decay": system.WEIGHT_DECAY},
        {"params": [value for value in parameters if value.ndim <= 1], "weight_decay": 0.0},
    ], lr=system.LEARNING_RATE, eps=system.ADAM_EPSILON, fused=True)
    batches = itertools.cycle(torch.randint(
        system.FIRST_WORD_ID, work.discriminator.vocab_size,
        (system.BATCHES, work.batch, work.length)))
    padding_mask = torch.ones(work.batch, work.length, dtype=torch.bool)
    forward = torch.compile(model) if compiled else model
    label = (f"Hugging Face {precision}{' autocast' * (precision == 'bfloat16')}, "
             f"{'torch.compile' if compiled else 'eager'}")

    def step() -> Mapping[str, Any]:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = forward(next(batches), padding_mask)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, system.CLIP_NORM, foreach=True)
        optimizer.step()
        return {"loss": float(loss), "label": label, "versions": {
            "PyTorch": torch.__version__, "transformers": transformers.__version__}}

    return step


def _config(encoder: types.SimpleNamespace) -> transformers.PreTrainedConfig:
    """Returns the architecture of one of a workload's two encoders."""
    shared = {
        "vocab_size": encoder.vocab_size, "hidden_size": encoder.hidden_size,
        "num_hidden_layers": encoder.num_layers, "num_attention_heads": encoder.num_heads,
        "intermediate_size": encoder.intermediate_size, "attn_implementation": "sdpa",
        "max_position_embeddings": encoder.max_position_embeddings}
    if encoder.architecture == "modernbert":
        return transformers.ModernBertConfig(
            **shared, local_attention=encoder.attention_window, pad_token_id=system.PAD_ID,
            mlp_dropout=encoder.hidden_dropout, attention_dropout=encoder.attention_dropout,
            layer_types=["sliding_attention" if index % encoder.global_every else "full_attention"
                         for index in range(encoder.num_layers)])
    return transformers.ElectraConfig(
        **shared, embedding_size=encoder.embedding_size, type_vocab_size=encoder.type_vocab_size,
        hidden_act="gelu", hidden_dropout_prob=encoder.hidden_dropout,
        attention_probs_dropout_prob=encoder.attention_dropout)


if __name__ == "__main__":
    system.run(prepare)
