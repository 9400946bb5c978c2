r"""Shows in a browser what a pre-trained generator and discriminator do to a sentence.

    python -m electra_tf.apps.demo.demo --model_dir=runs/small

A page on which a sentence is masked, filled in by the generator and judged by the discriminator,
with the rate of masks and the temperature as sliders. --model_dir is a pre-training run, or a
checkpoint of Google's or Hugging Face's with both networks. Stop it with Ctrl-C or SIGTERM.
"""

from absl import flags

from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError

GROUPS = {"Model": ("model_dir",), "Network": ("host", "port"),
          "What all together may take": ("max_connections", "max_waiting_requests")}


def main() -> None:
    """Listens, loads, serves.

    Raises:
        UserError: no checkpoint with both networks, or a port that can't be listened at.
    """
    values = flags.FLAGS
    if not values.model_dir:
        raise UserError(f"--model_dir is needed: {values['model_dir'].help}")
    from electra_tf.apps.demo import application, replaced_tokens
    from electra_tf.apps.serving import http_server
    from electra_tf.checkpoints import formats  # TensorFlow takes seconds.

    http_server.exit_on_sigterm()
    with http_server.listen(values.host, values.port) as listening:
        detection = replaced_tokens.ReplacedTokenDetection(
            formats.read(storage.path(values.model_dir)))
        settings = application.Settings(max_connections=values.max_connections,
                                        max_waiting_requests=values.max_waiting_requests)
        address = http_server.address(listening)
        application.serve(detection, listening, settings, lambda: print(
            f"{detection.source}: {address} (open it in a browser; Ctrl-C stops)", flush=True))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "A pre-training run, or a checkpoint of Google's or "
                        "Hugging Face's that holds both networks.")
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen at; 0.0.0.0 for every address of "
                        "this machine. There is no password: keep it where you trust who asks.")
    flags.DEFINE_integer("port", 8502, "Port; 0 for any that is free.", 0, 65535)
    flags.DEFINE_integer("max_connections", 64, "More clients are answered with 503.",
                         lower_bound=1)
    flags.DEFINE_integer("max_waiting_requests", 32, "Beyond so many that are read and not yet "
                         "answered: 503.", lower_bound=1)


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)
