"""How functions are traced: compiled and with gradients of their own, or plain, to answer only."""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

_INFERENCE = contextvars.ContextVar("answers", default=False)
_WHOLE = contextvars.ContextVar("compiled as a whole", default=False)


@contextlib.contextmanager
def inference_mode() -> Iterator[None]:
    """Traces plain ops, for shapes that vary and for runtimes without XLA; nothing is learned."""
    token = _INFERENCE.set(True)
    try:
        yield
    finally:
        _INFERENCE.reset(token)


def is_inference() -> bool:
    """Tells whether `inference_mode` is on."""
    return _INFERENCE.get()


@contextlib.contextmanager
def compiled_as_a_whole() -> Iterator[None]:
    """Traces a step for a compiler elsewhere: nothing depends on what this machine is good at."""
    token = _WHOLE.set(True)
    try:
        yield
    finally:
        _WHOLE.reset(token)


def is_compiled_as_a_whole() -> bool:
    """Tells whether `compiled_as_a_whole` is on."""
    return _WHOLE.get()


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Has XLA compile a function of tensors into as few passes over memory as it can."""
    compiled = tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def run(*tensors):
        return (function if _INFERENCE.get() else compiled)(*tensors)

    return run


def with_gradient(function: Callable[..., tuple[Any, Callable[..., Any]]]) -> Callable[..., Any]:
    """Lets a function of tensors return its result and its gradient: `tf.custom_gradient`.

    A saved graph can't hold such gradients, and its readers are warned that they are missing.
    """
    learning = tf.custom_gradient(function)

    @functools.wraps(function)
    def run(*tensors):
        return function(*tensors)[0] if _INFERENCE.get() else learning(*tensors)

    return run
