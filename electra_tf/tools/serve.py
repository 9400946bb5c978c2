r"""Serves a SavedModel: TensorFlow Serving's REST API without Docker, and a page to try it.

    python -m electra_tf.tools.serve --model_dir=served/cola
    curl http://127.0.0.1:8501/v1/models/cola:predict -d '{"instances": ["A sentence."]}'

--model_dir holds versions: served/cola/1/saved_model.pb, served/cola/2/...; the newest is served.
Stop it with Ctrl-C or SIGTERM: requests that are running are answered first.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # Before TensorFlow is imported.

from absl import flags  # noqa: E402

from electra_tf import command_line, storage  # noqa: E402
from electra_tf.command_line import UserError  # noqa: E402

GROUPS = {"Model": ("model_dir", "name"),
          "Network": ("host", "port", "max_body_mib", "max_request_rows"),
          "Joining of concurrent requests": ("max_batch_size", "batch_timeout_ms",
                                             "parallel_calls")}


def main() -> None:
    """Listens, loads, serves."""
    values = flags.FLAGS
    if not values.model_dir:
        raise UserError("--model_dir is needed: the directory that holds the versions 1, 2, ...")
    model_dir = storage.require_local(
        storage.path(values.model_dir), "--model_dir", "copy the model here first").resolve()
    name = model_dir.name if values.name is None else values.name
    if not name or set(name) & set("/:"):
        raise UserError(f"--name must have at least one character, and no '/' or ':'. "
                        f"Received: {name!r}")
    from electra_tf.distribution import cores  # TensorFlow takes seconds to import.
    from electra_tf.serving import http_server, rest_api, saved_models
    from electra_tf.serving.batching import BatchingConfig
    from electra_tf.serving.request_body import Limits

    http_server.exit_on_sigterm()
    version_dir = saved_models.newest_version(model_dir)
    with http_server.listen(values.host, values.port) as listening:
        model = saved_models.load(version_dir, name, cores.one_core_per_op())
        application = rest_api.application(
            model,
            BatchingConfig(max_batch_size=values.max_batch_size,
                           batch_timeout_ms=values.batch_timeout_ms,
                           parallel_calls=values.parallel_calls),
            Limits(max_body_bytes=int(values.max_body_mib * 2**20),
                   max_request_rows=values.max_request_rows))
        line = (f"{name}, version {model.version}: {http_server.address(listening)} "
                f"(signatures: {', '.join(model.signatures)}; Ctrl-C stops)")
        http_server.Server(application, lambda: print(line, flush=True)).run(sockets=[listening])


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of a SavedModel's versions.")
    flags.DEFINE_string("name", None, "The model's name in addresses. Default: model_dir's.")
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen at; 0.0.0.0 for every address of "
                        "this machine. There is no password: keep it where you trust who asks.")
    flags.DEFINE_integer("port", 8501, "Port; 0 for any that is free.", 0, 65535)
    flags.DEFINE_float("max_body_mib", 16, "Longer bodies are answered with 413.", lower_bound=0)
    flags.DEFINE_integer("max_request_rows", 1024, "Requests of more rows are answered with 400.",
                         lower_bound=1)
    flags.DEFINE_integer("max_batch_size", 32, "Rows of a joined call; 1 joins nothing.",
                         lower_bound=1)
    flags.DEFINE_float("batch_timeout_ms", 2, "While the model is busy, a request waits at most "
                       "so long for others to join it.", lower_bound=0)
    flags.DEFINE_integer("parallel_calls", 2, "Calls of the model at the same time.",
                         lower_bound=1)


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)
