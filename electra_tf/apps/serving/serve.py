r"""Serves SavedModels for development: TensorFlow Serving's REST API and a page to try models.

    python -m electra_tf.apps.serving.serve --model_dir=served/cola
    curl http://127.0.0.1:8501/v1/models/cola:predict -d '{"instances": ["A sentence."]}'

--model_dir contains versions: served/cola/1/saved_model.pb, served/cola/2/...; the newest is
served, and a newer one takes over when it is loaded. For several models write
--model_dir=cola=served/cola,mrpc=served/mrpc.
Ctrl-C or SIGTERM stops the server; it answers running requests first.
"""

import asyncio
import signal
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn

from electra_tf.apps.serving import settings
from electra_tf.platform import command_line
from electra_tf.platform.section_flags import define_flags, from_flags

if TYPE_CHECKING:
    from electra_tf.apps.serving.model_versions import ModelVersions


class Server(uvicorn.Server):
    """Serves loaded models; prints their address when it starts to answer.

    A reverse proxy limits slow clients and the rate of requests; see docs/deploy/nginx.conf.
    """

    def __init__(self, models: "dict[str, ModelVersions]", config: settings.ServerConfig):
        """Takes started models by name; `run()` serves them until a signal."""
        from electra_tf.apps.serving import rest_api  # TensorFlow takes seconds.

        self._models = models
        super().__init__(uvicorn.Config(
            rest_api.application(models, config), host=config.host, port=config.port, http="h11",
            ws="none", lifespan="off", log_level="error", access_log=False, timeout_keep_alive=5,
            timeout_graceful_shutdown=60, limit_concurrency=config.max_connections,
            h11_max_incomplete_event_size=16 * 1024))
        self._poll_seconds = config.poll_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to listen; uvicorn calls it."""
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        for name, model in self._models.items():
            served = model.find(None)
            print(f"{name}, version {served.version}: {self.address} "
                  f"(signatures: {', '.join(served.signatures)}; Ctrl-C stops)", flush=True)
        self._refreshing = asyncio.create_task(self._keep_refreshing())

    async def _keep_refreshing(self) -> None:
        while self._poll_seconds:
            await asyncio.sleep(self._poll_seconds)
            for model in self._models.values():
                await asyncio.to_thread(model.refresh)


def main() -> None:
    """Loads the models and serves them."""
    from electra_tf.apps.serving import model_versions

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = from_flags(settings.ServerConfig)
    models = model_versions.of_config(config)
    for model in models.values():
        model.start()
    Server(models, config).run()


if __name__ == "__main__":
    define_flags(settings.ServerConfig)
    command_line.run(main, summary=__doc__, groups=settings.GROUPS)
