r"""Serves SavedModels: TensorFlow Serving's REST API without Docker, and a page to try it.

    python -m electra_tf.apps.serving.serve --model_dir=served/cola
    curl http://127.0.0.1:8501/v1/models/cola:predict -d '{"instances": ["A sentence."]}'

--model_dir holds versions: served/cola/1/saved_model.pb, served/cola/2/...; the newest is served,
and a newer one takes over when it is loaded and warm. For several models write
--model_dir=cola=served/cola,mrpc=served/mrpc.
Stop it with Ctrl-C or SIGTERM: requests that are running are answered first.
"""

from absl import flags

from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError

GROUPS = {"Models": ("model_dir", "name", "num_versions", "poll_seconds"),
          "Network": ("host", "port"),
          "What a request may take": ("max_body_mib", "max_request_rows", "header_seconds",
                                      "silence_seconds", "body_seconds"),
          "What all together may take": ("max_connections", "max_waiting_requests",
                                         "max_waiting_rows", "max_buffered_mib"),
          "Joining of concurrent requests": ("max_batch_size", "batch_timeout_ms",
                                             "parallel_calls")}


def main() -> None:
    """Listens, loads, warms, serves."""
    values = flags.FLAGS
    if not values.model_dir:
        raise UserError("--model_dir is needed: the directory that holds the versions 1, 2, ...")
    from electra_tf.apps.serving import catalog, http_server, local_server

    http_server.exit_on_sigterm()
    sources = catalog.sources(values.model_dir, values.name, values.num_versions, _local)
    with http_server.listen(values.host, values.port) as listening:
        address = http_server.address(listening)

        def ready(models: catalog.Catalog) -> None:
            for name, model in models.models.items():
                served = model.find(None).model
                print(f"{name}, version {served.version}: {address} "
                      f"(signatures: {', '.join(served.signatures)}; Ctrl-C stops)", flush=True)

        local_server.serve(sources, listening, _settings(values), ready)


def _local(path: str) -> storage.Path:
    return storage.require_local(storage.path(path), "--model_dir", "copy the model here first")


def _settings(values: flags.FlagValues):
    from electra_tf.apps.serving import local_server, rest_api
    from electra_tf.apps.serving.admission import AdmissionLimits
    from electra_tf.apps.serving.request_body import Limits
    from electra_tf.apps.serving.strict_http import ConnectionLimits
    from electra_tf.apps.serving.waiting import BatchingConfig

    return local_server.Settings(
        poll_seconds=values.poll_seconds,
        connections=ConnectionLimits(max_connections=values.max_connections,
                                     header_seconds=values.header_seconds),
        answers=rest_api.Settings(
            batching=BatchingConfig(max_batch_size=values.max_batch_size,
                                    batch_timeout_ms=values.batch_timeout_ms,
                                    parallel_calls=values.parallel_calls),
            limits=Limits(max_body_bytes=int(values.max_body_mib * 2**20),
                          max_request_rows=values.max_request_rows,
                          body_timeout_seconds=values.body_seconds,
                          silence_seconds=values.silence_seconds),
            admission=AdmissionLimits(max_waiting_requests=values.max_waiting_requests,
                                      max_waiting_rows=values.max_waiting_rows,
                                      max_buffered_bytes=int(values.max_buffered_mib * 2**20))))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of a SavedModel's versions, or several as "
                        "name=directory,name=directory.")
    flags.DEFINE_string("name", None, "The model's name in addresses. Default: model_dir's.")
    flags.DEFINE_integer("num_versions", 1, "The newest so many versions of a model are served, "
                         "each at /v1/models/NAME/versions/N; 0 for all.", lower_bound=0)
    flags.DEFINE_float("poll_seconds", 2, "Between two looks for new versions; 0 never looks.",
                       lower_bound=0)
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen at; 0.0.0.0 for every address of "
                        "this machine. There is no password: keep it where you trust who asks.")
    flags.DEFINE_integer("port", 8501, "Port; 0 for any that is free.", 0, 65535)
    flags.DEFINE_float("max_body_mib", 16, "Longer bodies are answered with 413.", lower_bound=0)
    flags.DEFINE_integer("max_request_rows", 1024, "Requests of more rows are answered with 400.",
                         lower_bound=1)
    flags.DEFINE_float("header_seconds", 10, "Headers that take longer: 408.", lower_bound=0.001)
    flags.DEFINE_float("silence_seconds", 10, "Bodies of which nothing comes for so long: 408.",
                       lower_bound=0.001)
    flags.DEFINE_float("body_seconds", 60, "Bodies that take longer: 408.", lower_bound=0.001)
    flags.DEFINE_integer("max_connections", 1024, "More clients are answered with 503.",
                         lower_bound=1)
    flags.DEFINE_integer("max_waiting_requests", 512, "Beyond so many that are read and not yet "
                         "answered: 503.", lower_bound=1)
    flags.DEFINE_integer("max_waiting_rows", 8192, "Beyond so many rows of these: 503.",
                         lower_bound=1)
    flags.DEFINE_float("max_buffered_mib", 256, "Beyond so much of bodies and answers: 503.",
                       lower_bound=0)
    flags.DEFINE_integer("max_batch_size", 32, "Rows of one call: longer requests are cut, shorter "
                         "ones joined; 1 joins and cuts nothing.", lower_bound=1)
    flags.DEFINE_float("batch_timeout_ms", 2, "While the model is busy, a request waits at most "
                       "so long for others to join it.", lower_bound=0)
    flags.DEFINE_integer("parallel_calls", 2, "Calls of the model at the same time.",
                         lower_bound=1)


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)
