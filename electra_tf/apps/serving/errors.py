"""Errors that clients receive: an HTTP status and `{"error": "one line"}`."""

import json
import sys

import tensorflow as tf
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from electra_tf.apps.serving.saved_models import reason_of
from electra_tf.platform.errors import one_line


class RequestError(ValueError):
    """A request that receives an error."""

    def __init__(self, message: str, status: int = 400):
        """Takes the message for the client and the HTTP status."""
        super().__init__(message)
        self.status = status


async def respond(request: Request, error: Exception) -> Response:
    """Returns the response to a request that raised an exception, for Starlette."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)  # nginx's code; only the metrics receive it.
    message, status = f"the server failed: {type(error).__name__}; see its log", 500
    if isinstance(error, RequestError):
        message, status = str(error), error.status
    elif isinstance(error, HTTPException):
        message, status = f"{error.detail}: {request.method} {request.url.path}", error.status_code
    elif isinstance(error, tf.errors.OpError):
        status = 400 if isinstance(error, (  # As TensorFlow Serving does.
            tf.errors.InvalidArgumentError, tf.errors.FailedPreconditionError,
            tf.errors.OutOfRangeError)) else 500
        what = "refused the inputs" if status == 400 else "failed"
        message = f"the model {what}: {reason_of(error)}"
        if status == 500:
            print(one_line(f"{request.url.path}: {message}"), file=sys.stderr, flush=True)
    body = json.dumps({"error": one_line(message, 500)}, ensure_ascii=False) + "\n"
    return Response(body, status, {"Retry-After": "1"} if status == 503 else {},
                    "application/json")
