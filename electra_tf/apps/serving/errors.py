"""What a client is told: an HTTP status and one message."""

import re

import tensorflow as tf

# As TensorFlow Serving translates them; every other code is 500.
_STATUS = {
    tf.errors.INVALID_ARGUMENT: 400,
    tf.errors.FAILED_PRECONDITION: 400,
    tf.errors.OUT_OF_RANGE: 400,
    tf.errors.RESOURCE_EXHAUSTED: 429,
    tf.errors.UNIMPLEMENTED: 501,
    tf.errors.UNAVAILABLE: 503,
    tf.errors.DEADLINE_EXCEEDED: 504,
}


class RequestError(ValueError):
    """A request that gets no answer.

    Example:
        raise RequestError("'instances' is empty; send at least one.")
    """

    def __init__(self, message: str, status: int = 400):
        """Takes what the client reads, and the HTTP status."""
        super().__init__(message)
        self.status = status


def from_graph(error: tf.errors.OpError) -> RequestError:
    r"""Returns what a client is told of a graph that refused its inputs.

    TensorFlow puts a heading before the message and node names behind it:

    >>> text = "Graph execution error:\n\nno!\n\t [[{{node A}}]]"
    >>> str(from_graph(tf.errors.InvalidArgumentError(None, None, text)))
    'the model refused the inputs: no!'
    """
    text = error.message.removeprefix("Graph execution error:")
    text = re.split(r"\s*\[\[", text)[0].strip()
    return RequestError(f"the model refused the inputs: {text}",
                        _STATUS.get(error.error_code, 500))
