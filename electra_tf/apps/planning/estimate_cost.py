"""Says what a pre-training run costs: FLOPs, time, money, electricity; beside other models.

    python -m electra_tf.apps.planning.estimate_cost --model_size=small
    python -m electra_tf.apps.planning.estimate_cost --model_size=base --devices=a100 --count=8 \
        --region=eu
    python -m electra_tf.apps.planning.estimate_cost --plot=scores.png --glue_dir=runs/glue

Nothing is trained. docs/cost.md says how it counts and where prices, powers and scores are from;
--prices=FILE puts your own in their place. --max_seq_length is the published run's if it isn't
given: 128 tokens, 512 for base and large.
"""

import pathlib
from collections.abc import Iterator, Sequence

from absl import flags

from electra_tf.apps.planning import prices, scores
from electra_tf.apps.planning.literature import INFERENCE_LENGTH, PUBLISHED
from electra_tf.apps.planning.prices import Bill, Prices, Quantity, bill
from electra_tf.apps.planning.workload import PUBLISHED_LENGTHS, Workload
from electra_tf.config import pretraining_flags, recipes, setting_flags
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.setting_flags import ANY_SETTING, of_fields
from electra_tf.config.sizes import SIZES
from electra_tf.modeling import weight_table
from electra_tf.modeling.weight_table import Network
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.reporting.scores import draw_scores

SETTINGS = (*of_fields("training", "num_train_steps", "train_batch_size"),
            *of_fields("data", "max_seq_length"))
LITERATURE = pathlib.Path(__file__).parents[3] / "docs" / "literature.csv"
_DEVICES = ("v100", "a100", "h100", "tpu v3")
_MOST_DEVICES = 20
"""Kinds of devices in one table."""
_LONG = 512
"""Tokens of the second answer that is counted."""
_WIDE = 768
"""Units: BERT-Base's width, at which devices are about as busy as the table assumes."""
_PUBLISHED_RUNS = {"small": "ELECTRA-Small", "base": "ELECTRA-Base", "large": "ELECTRA-400K"}
_GLUE = "glue_dev"


def main() -> None:
    """Prints what the run costs, and draws the picture if one is asked for.

    Raises:
        UserError: a flag, a setting or a row of a table that can't be.
    """
    values = flags.FLAGS
    size = values.model_size or "small"
    with setting_flags.naming_flags(SETTINGS):
        config = pretraining_flags.build_config(
            size, values.recipe, setting_flags.given_settings(SETTINGS))
    work = Workload.of(config, config.data.max_seq_length or PUBLISHED_LENGTHS[size])
    table = prices.load(storage.path(values.prices) if values.prices else None)
    grid, bills = table.grid(values.region), _bills(work, table)
    own = [*map(scores.given, values.own),
           *(scores.of_glue(storage.path(name)) for name in values.glue_dir)]
    parts = (_what(work, config, size), _bill_lines(bills, table, grid, values.region),
             _source_lines(bills, work.networks[0].encoder.hidden_size), _comparison(work))
    print("\n\n".join("\n".join(lines) for lines in parts))
    for point in own:
        print(f"your run {point.name}: {scientific(point.flops)} FLOPs, GLUE {point.score:.1f}")
    if values.plot:
        literature = scores.literature(storage.path(values.literature or LITERATURE), _GLUE)
        draw_scores([*literature, *own], storage.path(values.plot),
                    label="GLUE, average of eight development sets")
        print(f"wrote {values.plot}")


def scientific(value: float) -> str:
    """Returns a number of FLOPs as the paper writes it, with a digit more.

    >>> scientific(1.294e18), scientific(0.0)
    ('1.29e18', '0')
    """
    return f"{value:.2e}".replace("e+", "e") if value else "0"


def brief(value: float | None) -> str:
    """Returns a number with three digits, or all before the point; "-" for what isn't known.

    >>> brief(1234.5), brief(12.345), brief(0.01234), brief(None)
    ('1,234', '12.3', '0.0123', '-')
    """
    if value is None:
        return "-"
    if value >= 1e9:
        return scientific(value)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def duration(hours: float) -> str:
    """Returns hours as a person says them.

    >>> duration(96.0), duration(6.0), duration(0.25), duration(20000.0), duration(1e-4)
    ('4.0 days', '6.0 h', '15 min', '2.3 years', '0.36 s')
    """
    for seconds, unit, digits in ((365 * 86400, "years", 1), (86400, "days", 1), (3600, "h", 1),
                                  (60, "min", 0)):
        if hours * 3600 >= seconds * (2 if unit in ("years", "days") else 1):
            return f"{hours * 3600 / seconds:,.{digits}f} {unit}"
    return f"{hours * 3600:.2g} s"


def _what(work: Workload, config: PretrainingConfig, size: str) -> Iterator[str]:
    """Yields what is trained and what it computes."""
    training = config.training
    yield (f"{size}, objective {config.objective.name}: {training.num_train_steps:,} steps of "
           f"{training.train_batch_size:,} examples of {work.sequence_length} tokens, "
           f"{brief(work.tokens / 1e6)} million tokens")
    yield _parameters(work.networks)
    yield ""
    yield f"{'FLOPs':<32}{'the paper counts':>18}{'matrix products':>18}"
    rows = {"training, a token": (work.paper_per_token, work.products_per_token),
            "training, all of it": (work.paper_flops, work.products_flops)}
    for length in (INFERENCE_LENGTH, _LONG):
        rows[f"an answer about {length} tokens"] = work.inference(length)
    for name, counts in rows.items():
        yield f"{name:<32}" + "".join(f"{scientific(count):>18}" for count in counts)
    yield from _share_lines(work, size)


def _parameters(networks: Sequence[Network]) -> str:
    """Returns the weights of every network, biases and layer norms included."""
    trained = weight_table.trained(networks)
    if len(networks) == 1:
        return f"parameters: {trained:,}"
    own = [weight_table.size(network.weights) for network in networks]
    listed = ", ".join(f"{network.name} {size:,}" for network, size in zip(
        networks, own, strict=True))
    shared = sum(size for network, size in zip(networks, own, strict=True)
                 if network.trained) - trained
    return (f"parameters: {listed}" + (f", {shared:,} of them shared" if shared else "")
            + f"; trained {trained:,}")


def _share_lines(work: Workload, size: str) -> Iterator[str]:
    """Yields which part of the published run this one is."""
    name = _PUBLISHED_RUNS.get(size)
    for model in PUBLISHED:
        if model.name == name:
            yield (f"{100 * work.paper_flops / model.train_flops:.4g} % of the published {name}, "
                   f"which has {scientific(model.train_flops)} by this count and "
                   f"{model.printed_train_flops:.1e} in the paper's tables".replace("e+", "e"))


def _bills(work: Workload, table: Prices) -> list[Bill]:
    values = flags.FLAGS
    if not 1 <= len(values.devices) <= _MOST_DEVICES:
        raise UserError(f"--devices must name 1 to {_MOST_DEVICES} of {', '.join(table.devices)}.")
    return [bill(work.products_flops, table.device(name), count=values.count,
                 utilization=values.utilization, pue=table.pue.value,
                 grams_co2_per_kwh=table.grid(values.region).value) for name in values.devices]


def _bill_lines(bills: Sequence[Bill], table: Prices, grid: Quantity,
                region: str) -> Iterator[str]:
    """Yields a row for every kind of device, and what the electricity rests on."""
    yield (f"{'device':<14}{'peak, TFLOP/s':>14}{'utilization':>13}{'time':>12}{'device-h':>11}"
           f"{'dollars':>11}{'kWh':>10}{'kg CO2':>10}")
    for one in bills:
        yield (f"{f'{one.count:,} x {one.device.name}':<14}{one.device.peak / 1e12:>14,.4g}"
               f"{one.utilization:>13.3g}{duration(one.hours):>12}"
               f"{brief(one.hours * one.count):>11}{brief(one.dollars):>11}"
               f"{brief(one.kilowatt_hours):>10}{brief(one.kilograms_co2):>10}")
    yield ("Time: matrix products over peak times utilization; several devices are taken to share "
           "the work without loss.")
    yield (f"Electricity: devices at full load, times {table.pue.value:g} for the data centre "
           f"({_origin(table.pue)}); {region}: {grid.value:g} g CO2/kWh ({_origin(grid)}).")


def _source_lines(bills: Sequence[Bill], width: int) -> Iterator[str]:
    """Yields where the numbers of every device are from."""
    for one in bills:
        device, stated = one.device, one.device.utilization
        yield f"{device.name}"
        yield (f"  utilization {one.utilization:g}: " + (
            _origin(stated) if one.utilization == stated.value else "given")
            + f"; of {device.peak / 1e12:,.4g} TFLOP/s")
        if device.dollars_per_hour:
            price = device.dollars_per_hour
            yield f"  ${price.value:,.2f} an hour: {_origin(price)}"
        if device.watts:
            yield f"  {device.watts.value:g} W: {_origin(device.watts)}"
    if width < _WIDE and flags.FLAGS.utilization is None:
        yield (f"What is assumed is of networks {_WIDE} wide or more. This one has {width}: a fast "
               "device will take longer.")
    yield ("The % of peak in run_pretraining.py's progress lines is what yours reaches; give it as "
           "--utilization.")


def _origin(quantity: Quantity) -> str:
    return f"{quantity.source} ({quantity.date})"


def _comparison(work: Workload) -> Iterator[str]:
    """Yields what other models cost beside this run."""
    yield (f"{'':<17}{'parameters':>10}{'training':>11}{'paper':>9}{'x this run':>12}"
           f"{'an answer':>11}{'paper':>9}")
    for model in PUBLISHED:
        cells = [model.train_flops, model.inference_flops]
        printed = [model.printed_train_flops, model.printed_inference_flops]
        counted = ["-" if cell is None else scientific(cell) for cell in cells]
        tables = ["-" if cell is None else f"{cell:.1e}".replace("e+", "e") for cell in printed]
        yield (f"{model.name:<17}{model.parameters:>10}{counted[0]:>11}{tables[0]:>9}"
               f"{brief(model.train_flops / work.paper_flops):>12}{counted[1]:>11}{tables[1]:>9}")
    yield (f"FLOPs by the paper's count, and as its tables print them; an answer is about "
           f"{INFERENCE_LENGTH} tokens.")


def define() -> None:
    """Registers the flags."""
    flags.DEFINE_string("model_size", None, "tiny, small, base or large. Default: small.")
    flags.DEFINE_string("recipe", recipes.PAPER, "paper or short, as for run_pretraining.py.")
    setting_flags.define(SETTINGS, SIZES)
    flags.DEFINE_list("devices", list(_DEVICES), "Kinds of devices, separated by commas.")
    flags.DEFINE_integer("count", 1, "How many of each.")
    flags.DEFINE_float("utilization", None, "Part of the peak rate that matrix products reach, in "
                       "(0, 1]. Default: the table's.")
    flags.DEFINE_string("prices", None, "YAML file of your own prices, powers, utilizations and "
                        "grids, of the form of electra_tf/apps/planning/prices.yaml.")
    flags.DEFINE_string("region", "world", "Whose electricity: a grid of the table.")
    flags.DEFINE_string("plot", None, "PNG of scores against FLOPs to write.")
    flags.DEFINE_list("glue_dir", [], "Runs of run_finetuning.py --task=glue that appear there; "
                      "what their encoders cost is read from the pre-training runs.")
    flags.DEFINE_multi_string("own", [], "name:FLOPs:score of another run that appears there; any "
                              "number of times.")
    flags.DEFINE_string("literature", None, "Table of the models that appear there. Default: "
                        "docs/literature.csv.")


GROUPS = {
    "The run": ["model_size", "recipe", *(flag.name for flag in SETTINGS), *ANY_SETTING],
    "Devices": ["devices", "count", "utilization", "prices", "region"],
    "Scores": ["plot", "glue_dir", "own", "literature"]}

if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)
