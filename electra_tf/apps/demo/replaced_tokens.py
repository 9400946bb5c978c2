"""Masks a sentence, fills it in and detects replaced tokens (ELECTRA, section 3.1).

These are the steps of training on one sentence, with one difference. Here every selected token
becomes [MASK]; in training, the generator reads some of them unchanged.
"""

from typing import Annotated, Any

import numpy as np
import tensorflow as tf
from pydantic import Field

from electra_tf.core import strict_json
from electra_tf.core.errors import UserError
from electra_tf.formats.parts import build_networks, has_energies
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.corruption import at_temperature, distribution, sample
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.rng import Rng
from electra_tf.reporting import samples
from electra_tf.text.rows import RowEncoder, encode_texts

EXAMPLES = (
    "The first part of the book was written in the city, and the second in a small house near the "
    "river.",
    "This method returns a list of all the names in the file, and raises an error if there is no "
    "such file.",
    "He was born in the north of the country and worked for many years as a teacher in the "
    "capital.",
    "She opened the door, looked at the old man for a long time, and said that she had never been "
    "there before.")


class DemoRequest(strict_json.Object):
    """A sentence with its masking rate, sampling temperature and seed."""

    sentence: str
    mask_rate: Annotated[float, Field(ge=0.01, le=0.9)]  # Fraction of the tokens; at least one.
    temperature: Annotated[float, Field(ge=0.01, le=10.0)]  # T of softmax(logits / T).
    seed: Annotated[int, Field(ge=0, lt=2**32)]  # Of masked positions and sampled tokens.


class ReplacedTokenDetection:
    """The generator and the discriminator of a pre-training run, and the steps between them."""

    def __init__(self, checkpoint: Checkpoint):
        """Builds both networks; `UserError` if one of them or its output layer is missing."""
        self.source, self._vocabulary = checkpoint.source, checkpoint.text.vocabulary
        self.max_tokens = checkpoint.config.max_position_embeddings - 2  # Of a sentence.
        self._encoder = RowEncoder(checkpoint.text, max_length=1 << 20)
        if has_energies(checkpoint) or not checkpoint.has_both:
            raise UserError(f"{checkpoint.source} hasn't a generator and a discriminator as "
                            "ELECTRA trains them; name a run of objective.name=electra, or a "
                            "conversion of both networks.")
        self._model = build_networks(checkpoint)
        self._steps = tf.function(self._compute, autograph=False)

    def answer(self, request: DemoRequest) -> dict[str, Any]:
        """Masks a sentence, fills it in and scores it; equal requests have equal answers.

        Another temperature keeps the masked positions; a higher rate adds positions. A sentence
        without tokens or with too many is refused with a `UserError`.

        Returns:
            "summary", the counts as a line, and "tokens" without [CLS] and [SEP]. Each token has
            "original" and "corrupted", WordPieces before and after; "replaced_probability" of the
            discriminator; "outcome", one of `samples.Outcome`; and "filling", None for tokens that
            were not masked. A filling is the generator's distribution at this temperature:
            "candidates", the likeliest first, "original" and "sampled", each a token and its
            probability; "left_out", the probability of likelier tokens that are no candidates.
        """
        # Token ids of the sentence, with [CLS] and [SEP], int32 [n + 2].
        ids, vocabulary = self._ids(request.sentence), self._vocabulary
        originals = [vocabulary.tokens[index] for index in ids[1:-1]]
        if not originals:
            raise UserError("the sentence has no words; write some.")
        if len(originals) > self.max_tokens:
            raise UserError(f"the sentence has {len(originals):,} tokens and the model reads "
                            f"{self.max_tokens:,} at most; shorten it.")

        # Masked positions, and random numbers of the generator's samples.
        length = min(-(-len(ids) // 8) * 8, self.max_tokens + 2)  # A graph for each multiple of 8.
        padded = np.full([1, length], vocabulary.pad_id, np.int32)
        padded[0, :len(ids)] = ids
        selected = np.zeros([1, length], bool)
        tokens = slice(1, 1 + len(originals))
        selected[0, tokens] = masked_positions(
            np.array([token[0].isalpha() for token in originals]), request)
        zero = tf.constant(0, tf.int64)  # A position's number doesn't depend on the length.
        uniforms = Rng(seed=request.seed, step=zero, first_example=zero).uniform(
            "sampling", 1, length)[0]

        # Generator, samples and discriminator: [1, L] by name, of which [n] belong to the sentence.
        with inference_mode():
            outputs = self._steps(tf.constant(padded), tf.constant(selected), uniforms,
                                  tf.constant(request.temperature, tf.float32))
        outputs = {name: value.numpy()[0, tokens] for name, value in outputs.items()}
        corruption = samples.Corruption(
            original=originals,
            corrupted=[vocabulary.tokens[index] for index in outputs["written"]],
            selected=selected[0, tokens].tolist(),
            replaced_probability=outputs["replaced_probability"].tolist())

        # The answer, token by token.
        def filling(index: int, original: str, sampled: str) -> dict[str, Any]:
            likeliest = [vocabulary.tokens[token] for token in outputs["best_ids"][index]]
            return {**_candidates(likeliest, outputs["best"][index]),
                    "original": _candidate(original, outputs["original"][index]),
                    "sampled": _candidate(sampled, outputs["sampled"][index])}

        return {"summary": samples.summary(corruption), "tokens": [
            {"original": before, "corrupted": after, "replaced_probability": probability,
             "outcome": outcome,
             "filling": filling(index, before, after) if corruption.selected[index] else None}
            for index, (before, after, probability, outcome) in enumerate(corruption.tokens())]}

    def tokens(self, sentence: str) -> list[str]:
        """Returns the tokens of a sentence, without [CLS] and [SEP]."""
        return [self._vocabulary.tokens[index] for index in self._ids(sentence)[1:-1]]

    def _ids(self, sentence: str) -> np.ndarray:
        return encode_texts([(sentence,)], self._encoder)[0][0].ids

    def _compute(self, ids: tf.Tensor, selected: tf.Tensor, uniforms: tf.Tensor,
                 temperature: tf.Tensor) -> dict[str, tf.Tensor]:
        """Computes all steps at every position, so that one graph serves all masking rates.

        Takes int32 [1, L], bool [1, L], float32 [L] in [0, 1) and float32 []; returns [1, L] or
        [1, L, 64] by name.
        """
        length = ids.shape[1]
        # The generator reads [MASK] at selected positions; its logits are [L, V], of all positions.
        padding_mask, segments = ids != self._vocabulary.pad_id, tf.zeros_like(ids)
        logits = self._model.generator(
            tf.where(selected, self._vocabulary.mask_id, ids), segments, padding_mask,
            tf.range(length)[tf.newaxis])
        # A sample of softmax(logits / T) for every position.
        softmax = at_temperature(distribution(logits), temperature)
        sampled = sample(softmax, uniforms)
        probabilities = tf.nn.softmax(tf.cast(softmax.logits, tf.float32))
        # The likeliest tokens to choose candidates from, [L, 64].
        best, best_ids = tf.math.top_k(probabilities, min(64, self._vocabulary.size))
        # The discriminator reads the samples at selected positions: corrupted ids, [1, L].
        written = tf.where(selected, sampled, ids)
        replaced_logits = self._model.discriminator(written, segments, padding_mask)
        return {
            "written": written, "replaced_probability": tf.sigmoid(replaced_logits),
            "best_ids": best_ids[tf.newaxis], "best": best[tf.newaxis],
            "original": tf.gather(probabilities, ids[0], batch_dims=1)[tf.newaxis],
            "sampled": tf.gather(probabilities, sampled, batch_dims=1)[tf.newaxis]}


def good_example(detection: ReplacedTokenDetection) -> DemoRequest:
    """Returns the example that fits a run's vocabulary best, with a draw that shows its networks.

    The sentence has the fewest tokens for its words and the fewest [UNK]. The draw has restored
    and detected tokens, and few missed ones and false alarms.
    """
    def cost(sentence: str) -> float:
        tokens = detection.tokens(sentence)
        return (len(tokens) + 9 * tokens.count("[UNK]")) / len(sentence.split())

    def variety(request: DemoRequest) -> float:
        outcomes = [token["outcome"] for token in detection.answer(request)["tokens"]]
        return (min(outcomes.count("restored"), 2) + min(outcomes.count("detected"), 3)
                - 0.5 * (outcomes.count("missed") + outcomes.count("false alarm")))

    # The cheapest sentence that fits, and the seed of twelve with the most varied outcomes.
    fitting = [sentence for sentence in EXAMPLES
               if len(detection.tokens(sentence)) <= detection.max_tokens]
    sentence = min(fitting or [EXAMPLES[0]], key=cost)
    requests = [DemoRequest(sentence=sentence, mask_rate=0.25, temperature=1.0, seed=seed)
                for seed in range(1, 13)]
    return max(requests, key=variety) if fitting else requests[0]


def masked_positions(words: np.ndarray, request: DemoRequest) -> np.ndarray:
    """Returns bool [n], which of n tokens are masked: round(rate n), at least one.

    Words, bool [n], are masked before punctuation, numbers and pieces of words. A higher rate masks
    more tokens beside those of a lower one.
    """
    # A random order with words first; the rate decides how many of its first are masked.
    order = np.random.default_rng(request.seed).permutation(len(words))
    order = order[np.argsort(~words[order], kind="stable")]
    selected = np.zeros(len(words), bool)
    selected[order[:max(1, round(request.mask_rate * len(words)))]] = True
    return selected


def _candidates(tokens: list[str], probabilities: np.ndarray) -> dict[str, Any]:
    """Returns eight "candidates" of the likeliest tokens, and "left_out".

    They are words only, if three or more words have 0.05 of the likeliest token's probability.
    """
    # Words that are likely enough, or all tokens if there are few such words.
    pairs = list(zip(tokens, probabilities, strict=True))
    words = [(token, probability) for token, probability in pairs
             if token[0].isalpha() and probability >= 0.05 * probabilities[0]]
    shown = (words if len(words) >= 3 else pairs)[:8]
    # Probability of tokens that are likelier than the last candidate, but are no words.
    left_out = sum(pair[1] for pair in pairs if pair not in shown and pair[1] > shown[-1][1])
    return {"candidates": [_candidate(*pair) for pair in shown], "left_out": float(left_out)}


def _candidate(token: str, probability: np.floating) -> dict[str, Any]:
    return {"token": token, "probability": float(probability)}
