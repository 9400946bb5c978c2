"""Estimates a pre-training run: parameters, FLOPs, time and dollars, next to published models.

    python -m electra_tf.apps.planning.estimate_cost --model_size=small
    python -m electra_tf.apps.planning.estimate_cost --model_size=base --devices=a100 --count=8

The command does not train. docs/how_to/size_and_recipe.md explains the two counts of FLOPs.
"""

import csv
import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from absl import flags

from electra_tf.config import overrides
from electra_tf.config.overrides import ANY_SETTING
from electra_tf.config.pretraining import PAPER, SIZES, PretrainingConfig, resolve
from electra_tf.core import command_line, storage
from electra_tf.core.errors import UserError, shown
from electra_tf.modeling import flops, parameter_shapes, specs
from electra_tf.modeling.specs import NetworkSpec
from electra_tf.reporting.tables import text_table

SETTINGS = {name: overrides.flags_of(PretrainingConfig(), "pretraining")[name] for name in (
    "num_train_steps", "train_batch_size", "max_seq_length")}
PUBLISHED_LENGTHS = {"tiny": 128, "small": 128, "base": 512, "large": 512,
                     "modern-tiny": 128, "modern-mini": 128, "modern-small": 128,
                     "modern-base": 1024}
"""Model size -> tokens of an example; the papers' and the longest of tiny."""
INFERENCE_LENGTH = 128  # Tokens of the paper's inference FLOPs (table 1).
LITERATURE = pathlib.Path(__file__).with_name("literature.csv")

# Operations per element by the paper's count.
_DROPOUT = 4  # draw, compare, multiply by the mask, multiply by the correction
_LAYER_NORM = 5  # mean, square, sum, bias, scale
_GELU = 8
_SOFTMAX = 5  # maximum, subtract, exponential, sum, divide
_SELECTED = 0.15625  # Predicted positions per token: 20 of 128 for every masking rate.


class Device(NamedTuple):
    """A kind of accelerator; `flops.PEAKS` has its peak."""

    dollars_per_hour: float  # One device with its share of the machine, on demand, rounded.
    price: str  # Source and date of the price.
    utilization: float = 0.3  # Fraction of the peak that a step's matmuls reach; 0.3 is assumed.


DEVICES = {
    "t4": Device(0.53, "AWS g4dn.xlarge, 2023"),
    "l4": Device(0.80, "AWS g6.xlarge, 2024"),
    # ELECTRA, table 1: ELECTRA-Small took four days of one V100, taken as float32.
    "v100": Device(3.06, "AWS p3.2xlarge, 2023", 0.212),
    "a100": Device(4.10, "an eighth of AWS p4d.24xlarge, 2023"),
    "h100": Device(12.29, "an eighth of AWS p5.48xlarge, 2023, when it was new"),
    "tpu v3": Device(2.00, "a quarter of Cloud TPU v3-8, 2023"),
    "tpu v4": Device(3.22, "Cloud TPU v4, 2023")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunCost:
    """The computation of a whole pre-training run."""

    networks: Sequence[NetworkSpec]  # The network that is kept comes first.
    tokens: float  # Batch x length x steps, padding included.
    paper_flops: float  # The "Train FLOPs" of the paper.
    matmul_flops: float  # FLOPs of all matmuls, which a device's peak refers to.

    def inference(self, length: int) -> tuple[float, float]:
        """Returns the FLOPs of one answer about L tokens: the paper's count, and matmuls.

        The first includes the discriminator's head in place of a task's, the second no head.
        """
        network = specs.discriminator(self.networks[0].encoder)
        encoder = dataclasses.replace(network, heads=(), trained=False)
        return (paper_forward_flops(network, length),
                length * flops.matmul_flops_per_token([encoder], length, 0))


def cost_of(config: PretrainingConfig, length: int) -> RunCost:
    """Returns the computation of a run on examples of `length` tokens; `UserError` if too long."""
    # TensorFlow takes seconds to import, which --help does not need.
    from electra_tf.config.objectives import objective_class
    from electra_tf.formats import pretrained
    from electra_tf.formats.parts import extract
    from electra_tf.objectives.pretraining import ObjectiveContext, TrainedGenerator

    if length > config.model.max_position_embeddings:
        raise UserError(
            f"--max_seq_length={length} is more than the model's "
            f"{config.model.max_position_embeddings} positions; give --set "
            f"model.max_position_embeddings={length} too.")
    # A generator that another run trained: its shape counts, but it isn't trained again.
    generator, directory = None, config.objective.generator_dir(storage.path("."))
    if directory is not None and not config.objective.generator_steps(2):
        generator = TrainedGenerator(*extract(pretrained.read(directory), "generator"))
    # The objective describes its networks without records.
    networks = objective_class(config.objective.name)(config, ObjectiveContext.placeholder(
        config.model.vocab_size, generator=generator)).network_specs()
    # tokens = batch x steps x length; FLOPs are those of a token times the tokens.
    training = config.training
    tokens = float(training.train_batch_size * training.num_train_steps * length)
    return RunCost(
        networks=networks, tokens=tokens,
        paper_flops=paper_training_flops(networks, length) * tokens,
        matmul_flops=tokens * flops.matmul_flops_per_token(
            networks, length, config.masking.max_predictions(length)))


def paper_training_flops(networks: Iterable[NetworkSpec], length: int) -> float:
    """Returns the training FLOPs per token of an objective's networks as the paper counts them.

    Times tokens per batch and steps, this is the "Train FLOPs" column of its tables. The appendix
    "Compute" counts every operation as one, a matmul as 2*m*n*k, look-ups as matmuls with one-hot
    vectors, and the backward pass as one forward pass.
    """
    return sum(network.share * (2 if network.trained else 1) * paper_forward_flops(network, length)
               for network in networks) / length


def paper_forward_flops(network: NetworkSpec, length: int) -> float:
    """Returns the FLOPs of one forward pass over one sequence of L tokens by the paper's count.

    For a discriminator, whose head stands for a task's, and L = 128 it is table 1's "Infer FLOPs".
    """
    config = network.encoder
    size, hidden, inner = config.embedding_size, config.hidden_size, config.intermediate_size
    # The embeddings of a token: words, positions and segments, regularization, projection.
    embedding = (2 * size * config.vocab_size + 2 * size * (length + 2) + 2 * size
                 + (_LAYER_NORM + _DROPOUT) * size + (2 * size + 1) * hidden * (size != hidden))
    # A Transformer block for a token. The layer norm after attention counts 5 and not 5 H, as in
    # the published numbers.
    query_key_value = 3 * (2 * hidden + 1) * hidden
    # Scores and weighted sum are matmuls; the rest is scale, softmax and dropout of the scores.
    attended = config.attended_tokens(length) / config.num_layers
    attention = 4 * hidden * attended + (1 + _SOFTMAX + _DROPOUT) * attended * config.num_heads
    attention_output = (2 * hidden + 1) * hidden + (_DROPOUT + 1) * hidden + _LAYER_NORM
    gate = (2 * hidden + 1) * inner * config.is_modern
    intermediate = (2 * hidden + 1 + _GELU) * inner + gate
    output = (2 * inner + 1) * hidden + (_DROPOUT + 1 + _LAYER_NORM) * hidden
    block = query_key_value + attention + attention_output + intermediate + output
    # The encoder: every token passes the embeddings and all blocks.
    operations = network.towers * length * (config.num_layers * block + embedding)
    # The heads, at the fraction of positions that they predict.
    for head in network.heads:
        *hidden_layers, (inputs, outputs) = (
            shape for path, shape in head.weights.items() if path.endswith("/kernel"))
        # A dense layer with GELU and layer norm, then the vocabulary: logits and softmax.
        if head.scores_vocabulary:
            per_position = ((2 * inputs + 1 + _GELU + _LAYER_NORM) * outputs
                            + (2 * outputs + _SOFTMAX + 2) * config.vocab_size)
        else:  # The last layer has no bias.
            per_position = 2 * inputs * outputs + sum(
                (2 * rows + 1 + _GELU) * columns for rows, columns in hidden_layers)
        operations += length * head.positions(_SELECTED) * per_position
    return operations


def main() -> None:
    """Prints the estimate."""
    # The run and its devices.
    values = flags.FLAGS
    size = values.model_size or "small"
    config = resolve(size, values.recipe, overrides.given_settings(SETTINGS))

    # Its parameters and FLOPs.
    cost = cost_of(config, config.data.max_seq_length or PUBLISHED_LENGTHS[size])
    networks, training = cost.networks, config.training
    trained = specs.trained(networks)
    parameters = f"{trained:,}"
    if len(networks) > 1:  # The weights of every network, biases and layer norms included.
        sizes = {network.name: parameter_shapes.size(network.weights) for network in networks}
        shared = sum(sizes[network.name] for network in networks if network.trained) - trained
        counts = [f"{name} {size:,}" for name, size in sizes.items()]
        counts += [f"{shared:,} of them shared"] if shared else []
        parameters = f"{', '.join(counts)}; trained {trained:,}"
    # The tables of the run, and of both counts of FLOPs.
    run_table = text_table(f"{size}, objective {config.objective.name}", (
        ("training", f"{training.num_train_steps:,} steps of {training.train_batch_size:,} "
         f"examples, {brief(cost.tokens / 1e6)} million tokens"),
        ("parameters", parameters)))
    whole_run = cost.paper_flops, cost.matmul_flops
    counts = {"training, per token": [count / cost.tokens for count in whole_run],
              "training, whole run": whole_run,
              **{f"inference, {length} tokens": cost.inference(length)
                 for length in (INFERENCE_LENGTH, 512)}}
    flops_table = text_table("FLOPs", ((name, *map(brief, pair)) for name, pair in counts.items()),
                             ("", "the paper's count", "matmuls"))

    # Published models with FLOPs and scores.
    with LITERATURE.open(encoding="utf-8", newline="") as file:
        published = [row for row in csv.DictReader(file) if row["train_flops"] and row["glue_dev"]]
    published_table = text_table(
        "Published models",
        ((row["model"], brief(float(row["train_flops"])),
          brief(float(row["train_flops"]) / cost.paper_flops), row["glue_dev"])
         for row in published), ("", "training", "x this run", "GLUE dev"),
        ["FLOPs as the paper's tables print them. GLUE: average of eight development sets."])
    print(run_table, flops_table, _devices(cost), published_table, sep="\n\n")


def brief(value: float) -> str:
    """Returns a number with three digits, or all before the point; above a million as the paper.

    >>> brief(1234.5), brief(12.345), brief(0.01234), brief(1.294e18), brief(3.1e21)
    ('1,234', '12.3', '0.0123', '1.29e18', '3.1e21')
    """
    return f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:.3g}".replace("e+", "e")


def rounded_duration(hours: float) -> str:
    """Returns hours in a readable unit.

    >>> [rounded_duration(hours) for hours in (96.0, 6.0, 0.25, 20000.0, 1e-4)]
    ['4.0 days', '6.0 h', '15 min', '2.3 years', '0.36 s']
    """
    for min_hours, unit_hours, unit, digits in ((17520, 8760, "years", 1), (48, 24, "days", 1),
                                                (1, 1, "h", 1), (1 / 60, 1 / 60, "min", 0)):
        if hours >= min_hours:
            return f"{hours / unit_hours:,.{digits}f} {unit}"
    return f"{hours * 3600:.2g} s"


def _devices(cost: RunCost) -> str:
    values, rows, prices = flags.FLAGS, [], []
    for name in values.devices:
        # Names such as "TPU-v3".
        key = " ".join(name.lower().replace("-", " ").replace("_", " ").split())
        if key not in DEVICES:
            raise UserError(f"--devices: no device {shown(name)}; known: {', '.join(DEVICES)}.")
        device = DEVICES[key]
        # hours = FLOPs / (peak x utilization) / 3600, divided by the number of devices.
        peak = flops.peak_flops(key, "bfloat16") or flops.peak_flops(key, "float32")
        utilization = values.utilization or device.utilization
        hours = cost.matmul_flops / (peak * utilization) / 3600
        rows.append((f"{values.count:,} x {key}", f"{peak / 1e12:,.4g}", f"{utilization:.3g}",
                     rounded_duration(hours / values.count), brief(hours),
                     brief(hours * device.dollars_per_hour)))
        prices.append(f"{key} ${device.dollars_per_hour:.2f} an hour: {device.price}.")
    notes = ["Time: FLOPs of matmuls / (peak x utilization); several devices share the work "
             "without loss.", " ".join(["On-demand prices, approximate:", *prices])]
    # The assumed utilization is that of wide networks.
    width = cost.networks[0].encoder.hidden_size
    if values.utilization is None:
        notes.append("Utilization: 0.212 is the paper's V100; 0.3 is assumed"
                     + (f" for a hidden size of 768 or more. This network has {width}: a fast "
                        "device will take longer." if width < 768 else ".")
                     + " Give the % of peak that run_pretraining.py shows as --utilization.")
    return text_table("Devices", rows, (
        "device", "peak, TFLOP/s", "utilization", "time", "device-h", "dollars"), notes)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_size", None, "Size: tiny, small, base, large, modern-tiny, "
                        "modern-mini, modern-small or modern-base. Default: small.")
    flags.DEFINE_string("recipe", PAPER, "Recipe, as for run_pretraining.py: paper or short.")
    overrides.define_setting_flags({name: setting for name, setting in SETTINGS.items()
                                    if name != "max_seq_length"}, SIZES)
    lengths = "; ".join(f"{length} for {size}" for size, length in PUBLISHED_LENGTHS.items())
    flags.DEFINE_string("max_seq_length", None, f"Tokens per example. Default: {lengths}.")
    flags.DEFINE_list("devices", ["v100", "a100", "h100", "tpu v3"],
                      f"Kinds of devices, separated by commas: {', '.join(DEVICES)}. "
                      "Default: v100,a100,h100,tpu v3.")
    flags.DEFINE_integer("count", 1, "Number of devices of each kind.", 1, 1_000_000)
    flags.DEFINE_float("utilization", None, "Fraction of the peak FLOP/s that matmuls reach. "
                       "Default: typical values, which the command prints.", 0.001, 1.0)


run = functools.partial(command_line.run, main, define, summary=__doc__, groups={
    "The run": ["model_size", "recipe", *SETTINGS, *ANY_SETTING],
    "Devices": ["devices", "count", "utilization"]})

if __name__ == "__main__":
    run()
