"""The connection of Socket Mode: the SDK's client, whose refusals are reported and whose attempts never end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, cast

from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient
from typing_extensions import override

from agent_core.channels.messaging.port import ConnectionState
from agent_core.kernel.json import as_object, as_text
from tiller_server.channels.slack.api import body_of

PING_S: Final = 10.0
"""A connection that is silent for four times as long is opened anew."""
REFUSED_S: Final = 300.0
"""Time between two attempts while Slack refuses the app."""
REFUSALS: Final = frozenset(
    {
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "not_allowed_token_type",
        "forbidden",
    }
)

OnState = Callable[[ConnectionState, str], None]


class SlackSocket(SocketModeClient):
    """A connection that reports its state. Each envelope goes to one connection of an app: two processes need two apps."""

    def __init__(
        self, app_token: str, *, web: AsyncWebClient, on_state: OnState, ping_s: float = PING_S
    ) -> None:
        """Create it; `connect` opens it, `close` ends it.

        Args:
            app_token: App-level token, `xapp-…`.
            web: The Web API.
            on_state: Called with each state and its reason.
            ping_s: Time between two pings.
        """
        # The SDK logs messages of people at its level DEBUG, and its refusals as exceptions; ours are one line.
        quiet = logging.getLogger("slack_sdk.quiet")
        quiet.setLevel(logging.CRITICAL)
        super().__init__(app_token=app_token, web_client=web, ping_interval=ping_s, logger=quiet)
        self._on_state = on_state
        self._retry_s = ping_s
        listeners = cast("list[object]", self.message_listeners)  # typed with bare dictionaries
        listeners.append(self._see)

    @override
    async def issue_new_wss_url(self) -> str:
        while True:
            try:
                opened = cast(
                    "Callable[..., Awaitable[object]]", self.web_client.apps_connections_open
                )
                answer = await opened(app_token=self.app_token)
            except SlackApiError as error:
                code = as_text(body_of(error).get("error"))
                self._on_state("degraded", f"Slack refused the connection: {code}")
                await asyncio.sleep(REFUSED_S if code in REFUSALS else self._retry_s)
            except Exception as error:  # noqa: BLE001 - aiohttp, time-outs and bodies that are no JSON; all mean another try
                self._on_state("degraded", f"Slack cannot be used: {error or type(error).__name__}")
                await asyncio.sleep(self._retry_s)
            else:
                return as_text(as_object(getattr(answer, "data", {})).get("url"))

    async def _see(self, _client: object, message: dict[str, object], _raw: str | None) -> None:
        match message.get("type"):
            case "hello":
                self._on_state("connected", "")
            case "disconnect":
                self._on_state("connecting", str(message.get("reason", "")))
            case _:
                pass
