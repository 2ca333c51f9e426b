"""The bus on which the extensions of a session tell one another things."""

import inspect
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from agent_core.extensions.lifetime import Lifetime
from agent_core.kernel.values import Value

BusListener = Callable[[object], object]
"""Receives the data of an event; may return an awaitable."""
ListenerErrorHandler = Callable[[str, str, BaseException], None]
"""Told of a listener that failed: extension, channel, error."""


class _BusSubscription(Value, frozen=True, eq=False):
    extension: str
    life: Lifetime
    channel: str
    listener: BusListener


class EventBus(Struct, kw_only=True):
    """Hands on what is told; a listener that fails costs only itself."""

    failed: ListenerErrorHandler
    later: Callable[[Awaitable[object], str, str], None]
    """Awaits what a listener gave, in a task that belongs to the session."""
    _heard: list[_BusSubscription] = msgspec.field(default_factory=list[_BusSubscription])

    def on(
        self, channel: str, listener: BusListener, *, extension: str, life: Lifetime
    ) -> Callable[[], None]:
        """Listen for as long as a life lasts; gives what ends it before."""
        heard = _BusSubscription(extension, life, channel, listener)
        self._heard.append(heard)

        def stop() -> None:
            self._heard = [one for one in self._heard if one is not heard]

        return stop

    def emit(self, channel: str, data: object = None) -> None:
        """Publish data to all listeners of a channel, in subscription order, the publisher's own included."""
        self._heard = [one for one in self._heard if not one.life.is_over]
        for heard in tuple(self._heard):
            if heard.channel != channel:
                continue
            try:
                given = heard.listener(data)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the fence around foreign code: reported, never swallowed
                self.failed(heard.extension, channel, error)
                continue
            if inspect.isawaitable(given):
                self.later(given, heard.extension, channel)


class OwnBus(Value, frozen=True):
    """The bus as one extension sees it."""

    _bus: EventBus
    _extension: str
    _life: Lifetime

    def on(self, channel: str, listener: BusListener) -> Callable[[], None]:
        """Listen on a channel; gives what ends it. It ends by itself when the extension is loaded anew."""
        self._life.check()
        return self._bus.on(channel, listener, extension=self._extension, life=self._life)

    def emit(self, channel: str, data: object = None) -> None:
        """Publish data to all listeners of a channel."""
        self._life.check()
        self._bus.emit(channel, data)
