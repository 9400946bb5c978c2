"""ELECTRA 15 %: replaced token detection that counts the selected tokens alone (section 3.4).

The paper's question: how much of ELECTRA's gain comes from learning of all tokens? Nothing else
differs, the discriminator still reads the whole text.
"""

import tensorflow as tf

from electra_tf.modeling.masking import mark_positions
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.masked_tokens import MaskedBatch


class Electra15Objective(ElectraObjective):
    """min L_MLM(generator) + 50 L_Disc(discriminator), L_Disc over the selected positions."""

    def judged(self, inputs: MaskedBatch) -> tf.Tensor:
        """Marks the selected positions, bool [B, L]."""
        predictions = inputs.masked.predictions
        return mark_positions(
            predictions.positions, predictions.valid, inputs.original.ids.shape[1])
