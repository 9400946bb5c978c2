"""The server's process: it loads new versions of models while it answers."""

import asyncio
import socket

import uvicorn

from electra_tf.apps.serving import rest_api, settings
from electra_tf.apps.serving.model_versions import ModelVersions
from electra_tf.platform import http_server


class Server(uvicorn.Server):
    """Serves loaded models; prints their address when it starts to answer.

    A reverse proxy limits slow clients and the rate of requests; see docs/deploy/nginx.conf.
    """

    def __init__(self, models: dict[str, ModelVersions], config: settings.ServerConfig):
        """Takes started models by name; `run()` serves them until a signal."""
        self._models = models
        super().__init__(http_server.config(
            rest_api.application(models, config), config.host, host=config.host, port=config.port,
            timeout_keep_alive=5, timeout_graceful_shutdown=60,
            limit_concurrency=config.max_connections))
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
