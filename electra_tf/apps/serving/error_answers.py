"""What a client is told of every error that a request can end with: {"error": "..."}."""

import tensorflow as tf
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from electra_tf.apps.serving import answers, errors
from electra_tf.apps.serving.errors import RequestError


async def refused(_request: Request, error: RequestError) -> Response:
    """Answers a request that is wrong."""
    return answers.error(str(error), error.status)


async def _refused_by_graph(request: Request, error: tf.errors.OpError) -> Response:
    return await refused(request, errors.from_graph(error))


async def _no_route(request: Request, error: HTTPException) -> Response:
    where = f"{request.method} {request.url.path}"
    return answers.error(f"{error.detail}: {where}", error.status_code, error.headers)


async def _failed(_request: Request, error: Exception) -> Response:
    return answers.error(f"the server failed: {type(error).__name__}; its log says more", 500)


HANDLERS = {RequestError: refused, tf.errors.OpError: _refused_by_graph,
            HTTPException: _no_route, 500: _failed}
"""For Starlette's `exception_handlers`."""
