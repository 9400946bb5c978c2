r"""Serves SavedModels for development: TensorFlow Serving's REST API and a page to try models.

    python -m electra_tf.apps.serving.serve --model_dir=served/cola
    curl http://127.0.0.1:8501/v1/models/cola:predict -d '{"instances": ["A sentence."]}'

--model_dir contains versions: served/cola/1/saved_model.pb, served/cola/2/...; the newest at the
start is served. For several models write --model_dir=cola=served/cola,mrpc=served/mrpc.
Ctrl-C or SIGTERM stops the server; it answers running requests first.
"""

import functools
import signal
import sys

from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.core import command_line
from electra_tf.core.setting_flags import define_flags, from_flags


def main() -> None:
    """Loads the models and serves them."""
    from electra_tf.core import http_server

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = from_flags(ServerConfig)
    with http_server.listen(config.host, config.port) as listening:
        from electra_tf.apps.serving import models, rest_api  # TensorFlow takes seconds.

        served = {name: models.load(path) for name, path in models.find(config.model_dir).items()}
        host, port = listening.getsockname()[:2]
        for name, model in served.items():
            print(f"{name}, version {model.version}: "
                  f"http://{f'[{host}]' if ':' in host else host}:{port} "
                  f"(signatures: {', '.join(model.signatures)}; Ctrl-C stops)", flush=True)
        rest_api.server(served, config).run(sockets=[listening])


run = functools.partial(command_line.run, main, lambda: define_flags(ServerConfig), summary=__doc__)

if __name__ == "__main__":
    run()
