"""The native library that computes, as far as we use it."""

import os
import secrets
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from agent_core.kernel import JsonObject
from agent_core.providers.adapters.local.facts import RUNTIME

HERE = "127.0.0.1"
BATCH_TOKENS = 4
"""Between two batches it can be stopped, and tells that it lives: it rests within 100 ms. With 512 it is a third
faster, and deaf and silent for three seconds at a time."""
STOP_S = 5.0

Tell = Callable[[JsonObject], bool]
"""Takes a piece of an answer; true: stop."""


class Runtime(Protocol):
    """Answers one request at a time, on the caller's thread; runs for as long as it is held."""

    def handle_chat_completions(self, body: JsonObject, tell: Tell, /) -> None:
        """Answer; tells the pieces as they come, and an error as a piece."""
        ...


class Stop:
    """Ends an answer from another thread; a runtime that does not obey takes the whole process with it."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._last = threading.Timer(STOP_S, os._exit, (1,))
        self._last.daemon = True

    @property
    def is_asked(self) -> bool:
        """Tell whether the answer is to end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """End the answer."""
        self._asked.set()
        self._last.start()

    def obeyed(self) -> None:
        """Let the process live: the answer has ended."""
        self._last.cancel()


class _Weights(Protocol):
    path: str


class _Threads(Protocol):
    n_threads: int


class _Params(Protocol):
    model: _Weights
    cpuparams: _Threads
    cpuparams_batch: _Threads
    n_ctx: int
    n_batch: int
    n_ubatch: int
    n_parallel: int
    cache_ram_mib: int
    hostnames: list[str]
    port: int
    api_keys: list[str]
    verbosity: int
    ui: bool


class _Library(Protocol):
    def CommonParams(self) -> _Params: ...  # noqa: N802 - its name
    def Server(self, params: _Params, /) -> Runtime: ...  # noqa: N802 - its name


def start_runtime(weights: str, *, context: int) -> Runtime:
    """Load the model; takes half a second of work.

    Raises:
        Exception: Of the library, whatever it likes: the file is damaged, or there is no memory.
    """
    # 100 MB without types, for this process alone.
    library = cast("_Library", import_module(RUNTIME))  # pyright: ignore[reportInvalidCast] - a module as a Protocol
    params = library.CommonParams()
    params.model.path = weights
    # Its threads wait for one another by spinning: on a busy machine two are a hundred times slower than one.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_ctx = context
    params.n_batch = BATCH_TOKENS
    params.n_ubatch = BATCH_TOKENS
    params.n_parallel = 1
    # It would keep up to 8 GB of earlier prompts; the last one is kept in any case.
    params.cache_ram_mib = 0
    # It opens a port of its own, which nobody is to use.
    params.hostnames = [HERE]
    params.port = 0
    params.api_keys = [secrets.token_hex()]
    params.verbosity = -1
    params.ui = False
    return library.Server(params)
