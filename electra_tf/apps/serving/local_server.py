"""The local server put together: models, limits, connections."""

import dataclasses
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence

from electra_tf.apps.serving import http_server, rest_api, saved_models, warming
from electra_tf.apps.serving.catalog import Catalog
from electra_tf.apps.serving.connections import Population
from electra_tf.apps.serving.model_versions import Load, ModelSource, ModelVersions
from electra_tf.apps.serving.strict_http import ConnectionLimits
from electra_tf.training import cores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a person chooses."""

    answers: rest_api.Settings = rest_api.Settings()
    connections: ConnectionLimits = ConnectionLimits()
    poll_seconds: float = 2.0
    """Between two looks for new versions; 0 never looks."""


def serve(sources: Sequence[ModelSource], listening: socket.socket, settings: Settings,
          on_start: Callable[[Catalog], None] | None = None) -> None:
    """Loads, warms, serves, until a signal.

    Args:
        sources: the models, with names of their own.
        listening: takes connections already; they wait until everything is warm.
        settings: limits, and how requests are joined.
        on_start: is told when requests are answered.

    Raises:
        UserError: a model's newest version can't be loaded.
    """
    http_server.allow_files(settings.connections.max_connections)
    catalog = Catalog([ModelVersions(source, _load(settings), _say) for source in sources])
    for model in catalog.models.values():
        model.start()
    server(catalog, settings, on_start).run(sockets=[listening])


def server(catalog: Catalog, settings: Settings,
           on_start: Callable[[Catalog], None] | None = None) -> http_server.Server:
    """Returns the server of models that are loaded."""
    population = Population(settings.connections)

    def begin() -> Coroutine[None, None, None] | None:
        if on_start is not None:
            on_start(catalog)
        return catalog.keep_looking(settings.poll_seconds) if settings.poll_seconds else None

    return http_server.Server(
        rest_api.application(catalog, settings.answers, lambda: population.open),
        population, begin)


def _load(settings: Settings) -> Load:
    threads, most_rows = cores.one_core_per_op(), settings.answers.batching.max_batch_size

    def load(version_dir, name):
        model = saved_models.load(version_dir, name, threads)
        warming.warm(model, version_dir, most_rows)
        return model

    return load


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
