"""Steps that must not be left half done when everything around them is cancelled."""

from collections.abc import Awaitable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def uncancelled(step: Awaitable[T]) -> T:
    """Finish a short step whatever is cancelled meanwhile; the cancellation then goes on."""
    done: list[T] = []
    with anyio.CancelScope(shield=True):
        done.append(await step)
    return done[0]
