"""Runs pygls's kinds of handlers inside the task of their message."""

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeAlias

from pygls.constants import ATTR_EXECUTE_IN_THREAD

FeatureHandler: TypeAlias = Callable[..., Any]
HandlerStep: TypeAlias = tuple[FeatureHandler, tuple[Any, ...], Mapping[str, Any] | None]


class Invoker:
    """Runs handlers: coroutines, plain functions, thread functions and pygls's own generators.

    All in one task, so that cancelling a request reaches its handler however deep it stands,
    the coroutine of a command included.
    """

    def __init__(self, pool: Callable[[], Executor]) -> None:
        """Keep the way to the pool for thread functions; it is made on first use."""
        self._pool = pool

    async def run(
        self,
        handler: FeatureHandler,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what the handler returns. A thread cannot be cancelled, only no longer waited for."""
        call = partial(handler, *args, **(kwargs or {}))
        if inspect.isgeneratorfunction(handler):
            return await self._drive(call())
        if getattr(handler, ATTR_EXECUTE_IN_THREAD, False):
            return await asyncio.get_running_loop().run_in_executor(self._pool(), call)
        result = call()
        return await result if inspect.isawaitable(result) else result

    async def _drive(self, steps: Generator[HandlerStep, Any, Any]) -> Any:
        try:
            step = next(steps)
            while True:
                step = steps.send(await self.run(*step))
        except StopIteration as end:
            return end.value
        finally:
            steps.close()
