r"""Shows in a browser what a pre-trained generator and discriminator do to a sentence.

    python -m electra_tf.apps.demo.demo --model_dir=runs/small

The page masks a sentence, fills it in with the generator, and shows the probability of every token
that it was replaced. Sliders set the masking rate and the temperature. --model_dir is a
pre-training run, or a checkpoint of Google's or Hugging Face's with both networks. Stop it with
Ctrl-C or SIGTERM.
"""

import functools
import signal
import sys

from absl import flags

from electra_tf.checkpoints.run_directory import read_identity
from electra_tf.config.model import ModelConfig
from electra_tf.core import command_line, storage
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.reporting import learning_curves


def main() -> None:
    """Loads the networks and serves the page."""
    values = flags.FLAGS
    if not values.model_dir:
        raise UserError(f"--model_dir is needed: {values['model_dir'].help}")
    from electra_tf.apps.demo import server  # TensorFlow takes seconds.
    from electra_tf.apps.demo.replaced_tokens import ReplacedTokenDetection, good_example
    from electra_tf.core import http_server
    from electra_tf.formats import pretrained

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    model_dir = storage.path(values.model_dir)
    # The port is taken before the networks are read, so that a taken one is reported at once.
    with http_server.listen(values.host, values.port) as listening:
        checkpoint = pretrained.read(model_dir)
        detection = ReplacedTokenDetection(checkpoint)
        comparison = compare(model_dir, checkpoint.config)
        host, port = listening.getsockname()[:2]
        print(f"{detection.source}: http://{f'[{host}]' if ':' in host else host}:{port} (open it "
              "in a browser; Ctrl-C stops)", *filter(None, [comparison]), sep="\n", flush=True)
        server.server(
            detection, example=good_example(detection), comparison=comparison,
            address=values.host).run(sockets=[listening])


def compare(model_dir: Path, model: ModelConfig) -> str:
    """Returns how a run compares with measured runs of as many tokens; "" without scores."""
    from electra_tf.pretraining.evaluation import saved_scores

    # The last fixed-noise evaluation, at this number of tokens: steps x examples x length.
    scores = saved_scores(model_dir)
    if scores.get("unigram_auc") is None:
        return ""
    settings = read_identity(model_dir)
    tokens = (scores["step"] * settings["training.train_batch_size"]
              * settings["data.max_seq_length"])
    return learning_curves.compare_with_measured(scores["unigram_auc"], tokens, model)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of a pre-training run, or a checkpoint "
                        "in Google's or Hugging Face's format with both networks.")
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen on; 0.0.0.0 is all addresses of "
                        "this machine. The demo has no password: use it in trusted networks only.")
    flags.DEFINE_integer("port", 8502, "Port; 0 selects a free port. Default: 8502.", 0, 65535)


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
