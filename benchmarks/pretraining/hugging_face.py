"""Runs Hugging Face's ELECTRA in PyTorch, with a joint step because the library has none.

Runs in the environment of `make peers`.
"""

import itertools
from collections.abc import Callable

import torch
import transformers
from torch.nn import functional
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload
from benchmarks.pretraining.matmuls import device_facts
from benchmarks.pretraining.workload import EncoderSizes, Step, StepOptions, Workload


class JointModel(torch.nn.Module):
    """Generator and discriminator with tied embeddings."""

    def __init__(self, work: Workload):
        super().__init__()
        self.generator = ElectraForMaskedLM(config_of(work, work.generator))
        self.discriminator = ElectraForPreTraining(config_of(work, work.discriminator))
        # Word, position and segment tables and their layer norm, as the paper ties them.
        shared = self.discriminator.electra.embeddings
        self.generator.electra.embeddings = shared
        self.generator.generator_lm_head.weight = shared.word_embeddings.weight
        self.predictions = work.predictions
        self.mask_id = work.mask_id
        self.register_buffer("special_ids", torch.tensor(work.special_ids))

    def forward(self, ids: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
        """Maps int64 [B, L] and bool [B, L], or None without padding, to the loss []."""
        generator_loss, corrupted = self.corrupt(ids, valid)
        replaced = (corrupted != ids).float()
        scores = self.discriminator(corrupted, attention_mask=valid).logits.float()
        losses = functional.binary_cross_entropy_with_logits(scores, replaced, reduction="none")
        discriminator_loss = (
            losses.mean() if valid is None else (losses * valid).sum() / valid.sum())
        return (workload.GENERATOR_WEIGHT * generator_loss
                + workload.DISCRIMINATOR_WEIGHT * discriminator_loss)

    def corrupt(self, ids: torch.Tensor,
                valid: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the generator's loss [], and its samples in their places, int64 [B, L]."""
        chances = torch.rand(ids.shape, device=ids.device).masked_fill(
            torch.isin(ids, self.special_ids), -1.0)
        positions = chances.topk(self.predictions, dim=1).indices
        labels = ids.gather(1, positions)
        hidden = torch.rand(positions.shape, device=ids.device) < workload.MASK_TOKEN_FRACTION
        masked = ids.scatter(1, positions, torch.where(hidden, self.mask_id, labels))
        states = self.generator.electra(masked, attention_mask=valid).last_hidden_state
        # The head reads the masked positions alone.
        size = states.shape[-1]
        chosen = states.gather(1, positions[..., None].expand(-1, -1, size)).reshape(-1, size)
        logits = self.generator.generator_lm_head(
            self.generator.generator_predictions(chosen)).float()
        loss = functional.cross_entropy(logits, labels.reshape(-1))
        with torch.no_grad():
            # By inverse CDF, 30 ms for [608, 30522] on two cores; `torch.multinomial` and Gumbel
            # noise draw V numbers per position, in 410 ms.
            cumulative = logits.softmax(-1).cumsum(-1)
            uniforms = torch.rand(len(logits), 1, device=ids.device) * cumulative[:, -1:]
            samples = torch.searchsorted(cumulative, uniforms, right=True).clamp_(
                max=logits.shape[1] - 1)
            return loss, ids.scatter(1, positions, samples.reshape(labels.shape))


@workload.takes_workload
def prepare(work: Workload, options: StepOptions) -> Ready:
    """Returns the step in the setting's precision, eager or compiled."""
    torch.set_num_threads(work.threads)
    torch.manual_seed(1)
    precision = "bfloat16 autocast" if options.precision == "bfloat16" else options.precision
    compiler = {"on": "torch.compile", "graphs": "torch.compile with CUDA graphs", "off": "eager"}
    return Ready(
        label=f"{precision}, {compiler[options.compiler]}",
        versions={"PyTorch": torch.__version__, "transformers": transformers.__version__},
        turn=workload.steps_of(lambda: _build(work, options)), **device_facts(options.device))


def _build(work: Workload, options: StepOptions) -> Step:
    model = JointModel(work).train().to(options.device)
    _, update = training_of(model, workload.LEARNING_RATE, options)
    batches = itertools.cycle(torch.randint(
        workload.FIRST_WORD_ID, work.vocab_size,
        (workload.BATCHES, work.batch, work.length)).to(options.device))
    # A GPU gets no mask: flash attention accepts none, and reading one waits for the GPU.
    valid = (torch.ones(work.batch, work.length, dtype=torch.bool)
             if options.device == "cpu" else None)
    forward = model if options.compiler == "off" else torch.compile(
        model, mode="reduce-overhead" if options.compiler == "graphs" else None)
    return lambda: update(lambda: forward(next(batches), valid))


def training_of(model: torch.nn.Module, learning_rate: float, options: StepOptions) -> tuple[
        torch.optim.Optimizer, Callable[[Callable[[], torch.Tensor]], torch.Tensor]]:
    """Returns AdamW, and a function that computes a loss [] and takes one step on it."""
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([
        {"params": [value for value in parameters if value.ndim > 1],
         "weight_decay": workload.WEIGHT_DECAY},
        {"params": [value for value in parameters if value.ndim <= 1], "weight_decay": 0.0},
    ], lr=learning_rate, eps=workload.ADAM_EPSILON, fused=True)

    def update(compute_loss: Callable[[], torch.Tensor]) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, torch.bfloat16,
                            enabled=options.precision == "bfloat16"):
            loss = compute_loss()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, workload.CLIP_NORM, foreach=True)
        optimizer.step()
        return loss.detach()

    return optimizer, update


def config_of(work: Workload, encoder: EncoderSizes) -> ElectraConfig:
    """Returns the architecture of one of a workload's two encoders."""
    return ElectraConfig(
        vocab_size=work.vocab_size, embedding_size=encoder.embedding_size,
        hidden_size=encoder.hidden_size, num_hidden_layers=encoder.num_layers,
        num_attention_heads=encoder.num_heads, intermediate_size=encoder.intermediate_size,
        max_position_embeddings=workload.MAX_POSITIONS, type_vocab_size=workload.SEGMENTS,
        hidden_act="gelu", hidden_dropout_prob=workload.DROPOUT,
        attention_probs_dropout_prob=workload.DROPOUT, attn_implementation="sdpa")
