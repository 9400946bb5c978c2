"""Estimates a pre-training run: FLOPs, time, money, electricity; next to published models.

    python -m electra_tf.apps.planning.estimate_cost --model_size=small
    python -m electra_tf.apps.planning.estimate_cost --model_size=base --devices=a100 --count=8 \
        --region=eu
    python -m electra_tf.apps.planning.estimate_cost --plot=scores.png --glue_dir=runs/glue

It trains nothing. docs/how_to/cost.md explains the counts and the sources of prices, powers
and scores; --prices=FILE replaces them. The default of --max_seq_length is that of the published
run: 128 tokens, 512 for base and large.
"""

from collections.abc import Iterator, Sequence

from absl import flags

from electra_tf.apps.planning import prices, scores
from electra_tf.apps.planning.prices import Device, Prices
from electra_tf.apps.planning.workload import INFERENCE_LENGTH, PUBLISHED_LENGTHS, Workload
from electra_tf.config import overrides, pretraining, pretraining_flags
from electra_tf.config.overrides import ANY_SETTING
from electra_tf.config.pretraining import SIZES, PretrainingConfig
from electra_tf.modeling import weight_table
from electra_tf.modeling.weight_table import Network
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.reporting.scores import draw_scores
from electra_tf.reporting.tables import Table, table_text

SETTINGS = {flag: pretraining_flags.SETTINGS[flag] for flag in (
    "num_train_steps", "train_batch_size", "max_seq_length")}
_DEVICES = ("v100", "a100", "h100", "tpu v3")
_MOST_DEVICES = 1_000_000
_LONG = 512
"""Tokens of the second answer that is counted."""
_WIDE = 768
"""BERT-Base's hidden size; the assumed utilizations are of such networks."""
_PUBLISHED_RUNS = {"small": "ELECTRA-Small", "base": "ELECTRA-Base", "large": "ELECTRA-400K"}


def main() -> None:
    """Prints the estimate, and draws the plot if --plot is given.

    Raises:
        UserError: a flag, a setting or a number of the prices is not acceptable.
    """
    values = flags.FLAGS
    size = values.model_size or "small"
    with overrides.naming_flags(SETTINGS):
        config = pretraining_flags.build_config(
            size, values.recipe, overrides.given_settings(SETTINGS))
    work = Workload.of(config, config.data.max_seq_length or PUBLISHED_LENGTHS[size])
    table = prices.load(storage.path(values.prices) if values.prices else None)
    devices = list(map(table.device, values.devices))
    if not 1 <= values.count <= _MOST_DEVICES:
        raise UserError(f"--count must be from 1 to {_MOST_DEVICES:,}. Received: {values.count}")
    if values.utilization is not None and not 0.0 < values.utilization <= 1.0:
        raise UserError("--utilization must be in (0, 1], a fraction of the peak. "
                        f"Received: {values.utilization}")
    own = [*map(scores.given, values.own),
           *(scores.of_glue(storage.path(name)) for name in values.glue_dir)]
    tables = (_run(work, config, size), _flops(work), _bills(work, devices, table),
              _sources(devices, work.networks[0].encoder.hidden_size), _published(work))
    print("\n\n".join(map(table_text, tables)))
    for point in own:
        print(f"your run {point.name}: {scientific(point.flops)} FLOPs, GLUE {point.score:.1f}")
    if values.plot:
        draw_scores([*scores.literature(), *own], storage.path(values.plot),
                    label="GLUE, average of eight development sets")
        print(f"wrote {values.plot}")


def scientific(value: float | None, digits: int = 2) -> str:
    """Returns a number of FLOPs in the paper's notation; "-" for an unknown one.

    >>> scientific(1.294e18), scientific(3.1e21, 1), scientific(None)
    ('1.29e18', '3.1e21', '-')
    """
    return "-" if value is None else f"{value:.{digits}e}".replace("e+", "e")


def brief(value: float | None) -> str:
    """Returns a number with three digits, or all before the point; "-" for an unknown one.

    >>> brief(1234.5), brief(12.345), brief(0.01234), brief(None)
    ('1,234', '12.3', '0.0123', '-')
    """
    if value is None or value >= 1e9:
        return scientific(value)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def duration(hours: float) -> str:
    """Returns hours in a readable unit.

    >>> duration(96.0), duration(6.0), duration(0.25), duration(20000.0), duration(1e-4)
    ('4.0 days', '6.0 h', '15 min', '2.3 years', '0.36 s')
    """
    for seconds, unit, digits in ((365 * 86400, "years", 1), (86400, "days", 1), (3600, "h", 1),
                                  (60, "min", 0)):
        if hours * 3600 >= seconds * (2 if unit in ("years", "days") else 1):
            return f"{hours * 3600 / seconds:,.{digits}f} {unit}"
    return f"{hours * 3600:.2g} s"


def _run(work: Workload, config: PretrainingConfig, size: str) -> Table:
    training = config.training
    rows = [("training", f"{training.num_train_steps:,} steps of {training.train_batch_size:,} "
             f"examples, {brief(work.tokens / 1e6)} million tokens"),
            ("parameters", _parameters(work.networks))]
    if size in _PUBLISHED_RUNS:
        published = Workload.of(SIZES[size], PUBLISHED_LENGTHS[size]).paper_flops
        rows.append((f"part of the published {_PUBLISHED_RUNS[size]}",
                     f"{100 * work.paper_flops / published:.4g} % of {scientific(published)}, by "
                     "the paper's count"))
    return Table(title=f"{size}, objective {config.objective.name}", rows=tuple(rows))


def _parameters(networks: Sequence[Network]) -> str:
    """Returns the weights of every network, biases and layer norms included."""
    trained = weight_table.trained(networks)
    if len(networks) == 1:
        return f"{trained:,}"
    own = {network.name: weight_table.size(network.weights) for network in networks}
    shared = sum(own[network.name] for network in networks if network.trained) - trained
    listed = [f"{name} {size:,}" for name, size in own.items()]
    if shared:
        listed.append(f"{shared:,} of them shared")
    return f"{', '.join(listed)}; trained {trained:,}"


def _flops(work: Workload) -> Table:
    counts = {"training, per token": (work.paper_per_token, work.matmuls_per_token),
              "training, whole run": (work.paper_flops, work.matmul_flops)}
    for length in (INFERENCE_LENGTH, _LONG):
        counts[f"inference, {length} tokens"] = work.inference(length)
    return Table(title="FLOPs", heading=("", "the paper's count", "matmuls"), rows=tuple(
        (name, *map(scientific, both)) for name, both in counts.items()))


def _bills(work: Workload, devices: Sequence[Device], table: Prices) -> Table:
    values = flags.FLAGS
    grid, rows = table.grid(values.region), []
    for device in devices:
        utilization = values.utilization or device.utilization.value
        bill = prices.bill(work.matmul_flops, device, count=values.count, utilization=utilization,
                           pue=table.pue.value, grams_co2_per_kwh=grid.value)
        rows.append((f"{values.count:,} x {device.name}", f"{device.peak / 1e12:,.4g}",
                     f"{utilization:.3g}", duration(bill.hours),
                     *map(brief, (bill.hours * values.count, *bill[1:]))))
    return Table(
        title="Devices", rows=tuple(rows),
        heading=("device", "peak, TFLOP/s", "utilization", "time", "device-h", "dollars", "kWh",
                 "kg CO2"),
        notes=("Time: FLOPs of matmuls / (peak x utilization); several devices share the work "
               "without loss.",
               f"Electricity: devices at full load, times {table.pue.value:g} for the data centre "
               f"({table.pue.origin}); {values.region}: {grid.value:g} g CO2/kWh ({grid.origin})."))


def _sources(devices: Sequence[Device], width: int) -> Table:
    given, notes = flags.FLAGS.utilization, []
    if width < _WIDE and given is None:
        notes.append(f"Assumed utilizations are of networks with a hidden size of {_WIDE} or more. "
                     f"This one has {width}: a fast device will take longer.")
    notes.append("run_pretraining.py logs the % of peak that your device reaches; give it as "
                 "--utilization.")
    return Table(title="Sources", notes=tuple(notes), rows=tuple(
        (device.name, "; ".join(_origins(device, given))) for device in devices))


def _origins(device: Device, given: float | None) -> Iterator[str]:
    stated, price, watts = device.utilization, device.dollars_per_hour, device.watts
    yield (f"utilization {given:g}: --utilization" if given
           else f"utilization {stated.value:g}: {stated.origin}")
    if price:
        yield f"${price.value:,.2f} an hour: {price.origin}"
    if watts:
        yield f"{watts.value:g} W: {watts.origin}"


def _published(work: Workload) -> Table:
    return Table(
        title="Published models", heading=("", "training", "x this run", "GLUE dev"),
        rows=tuple((point.name, scientific(point.flops, 1), brief(point.flops / work.paper_flops),
                    f"{point.score:.1f}") for point in scores.literature()),
        notes=("FLOPs as the paper's tables print them.",))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_size", None, "tiny, small, base or large. Default: small.")
    flags.DEFINE_string("recipe", pretraining.PAPER, "paper or short, as for run_pretraining.py.")
    overrides.define_setting_flags(SETTINGS, SIZES)
    flags.DEFINE_list("devices", list(_DEVICES), "Kinds of devices, separated by commas.")
    flags.DEFINE_integer("count", 1, "Number of devices of each kind.")
    flags.DEFINE_float("utilization", None, "Fraction of the peak that matmuls reach, in (0, 1]. "
                       "Default: the table's.")
    flags.DEFINE_string("prices", None, "YAML file with your own prices, powers, utilizations and "
                        "grids, in the form of electra_tf/apps/planning/prices.yaml.")
    flags.DEFINE_string("region", "world", "Grid of the table that supplies the electricity.")
    flags.DEFINE_string("plot", None, "PNG file for a plot of scores against FLOPs.")
    flags.DEFINE_list("glue_dir", [], "Runs of run_finetuning.py --task=glue to plot; their cost "
                      "is read from the pre-training runs.")
    flags.DEFINE_multi_string("own", [], "name:FLOPs:score of another run to plot; repeatable.")


GROUPS = {
    "The run": ["model_size", "recipe", *SETTINGS, *ANY_SETTING],
    "Devices": ["devices", "count", "utilization", "prices", "region"],
    "Scores": ["plot", "glue_dir", "own"]}


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)


if __name__ == "__main__":
    run()
