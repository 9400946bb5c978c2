"""Settings of the optimizer."""

from typing import Annotated, Literal

from annotated_types import Interval

from electra_tf.core.settings import LARGEST_COUNT, Flag, Probability, Section, setting

Factor = Annotated[float, Interval(gt=0, le=100)]
TRAINING, PRETRAINING = Flag("Training"), Flag("Training", ("pretraining",))


class OptimizerConfig(Section, prefix="optimizer."):
    """The optimizer with decoupled weight decay, and its schedule."""

    name: Literal["adam", "lamb", "muon"] = setting("adam", """The optimizer: adam; lamb (You et
        al., 2020) for batches of thousands of examples, with another learning rate (see
        docs/how_to/accelerators.md); or muon (Jordan et al., 2024) for the matrices of encoder
        layers and adam for all other weights.""")
    muon_networks: Literal["discriminator", "generator", "both"] = setting(
        "discriminator", """Networks whose layers muon updates. discriminator is the encoder that is
        fine-tuned, with model.tying=everything that of both. In short runs, a generator with muon
        stayed at token frequencies.""")
    muon_rate: Factor = setting(3.0, """Size of muon's updates relative to adam's. 1 is the scale of
        Liu et al., 2025.""")
    muon_orthogonalization: Literal["newton_schulz", "polar_express"] = setting(
        "newton_schulz", """How muon replaces singular values by 1: newton_schulz by the five steps
        of Jordan et al.; polar_express by three better ones (Amsel et al., 2025), which leave
        values below a hundredth of the largest smaller, and are faster in small batches.""")
    learning_rate: Annotated[Factor, TRAINING] = setting(5e-4, "Peak learning rate.")
    warmup_steps: Annotated[int, Interval(ge=-1, le=LARGEST_COUNT), PRETRAINING] = setting(
        -1, """Steps of linear warm-up. -1 is a tenth of the run, in pre-training at most
        10,000.""")
    decay_power: Factor = setting(1.0, """Exponent of the polynomial decay of the learning rate to
        zero. 1 is linear.""")
    decay_fraction: Annotated[float, Interval(ge=0, le=1)] = setting(1.0, """Last fraction of the
        run in which the learning rate decays. Before, it is constant after the warm-up. 0 keeps it
        constant to the end: an extension (a larger --num_train_steps) then continues at that rate
        without a warm-up, and may set another fraction, which decays at its end.""")
    beta_1: Probability = setting(0.9, "Decay rate of the first moments.")
    beta_2: Probability = setting(0.999, "Decay rate of the second moments.")
    epsilon: Factor = setting(1e-6, "Constant added to the square root of the second moments.")
    bias_correction: bool = setting(False, """Divide the moments by 1 - beta^t (Kingma and Ba, 2015,
        algorithm 1). BERT and ELECTRA do not, so their first steps are three times as large as the
        learning rate implies.""")
    weight_decay: Probability = setting(0.01, """Weight decay per step, times the learning rate.
        Biases and layer norms do not decay.""")
    clip_norm: Annotated[float, Interval(gt=0)] = setting(1.0, """Maximum global norm of the
        gradients, after their sum over replicas.""")
    average_decay: Probability = setting(0.0, """Decay per step of a moving average of the weights,
        such as 0.999, updated after every 10th step. 0 keeps no average. Evaluations, fine-tuning,
        exports and conversions use the averages of a run that has them, and print a line about
        it.""")

    def warmup(self, num_train_steps: int) -> float:
        """Returns the number of warm-up steps of a run of `num_train_steps`."""
        return self.warmup_steps if self.warmup_steps >= 0 else min(10_000, num_train_steps // 10)
