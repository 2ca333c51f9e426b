"""Settings of an editor under `tiller`, requested before a session is opened and again when they change."""

import logging
from collections.abc import Mapping
from typing import Final, Protocol, cast

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import is_object
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.messages import as_array, as_object

SECTION: Final = "tiller"
PULL: Final = "workspace/configuration"
CHANGED: Final = "workspace/didChangeConfiguration"
REGISTER: Final = "client/registerCapability"
ANSWER_S: Final = 2.0
"""Longest wait for an editor's answer, in seconds; without an answer its settings at the start hold."""

_log = logging.getLogger(__name__)


class SettingsClient(Protocol):
    """The connection, as far as its configuration goes."""

    @property
    def client_params(self) -> Mapping[str, object]:
        """The params of `initialize`."""
        ...

    async def request(
        self, method: str, params: object = None, *, timeout_s: float | None
    ) -> object:
        """Ask the client; raises RpcError, TimeoutError or ConnectionError."""
        ...


class EditorConfiguration:
    """The configuration of one client, as a layer of settings."""

    def __init__(self, client: SettingsClient) -> None:
        self._client = client
        self._said: JsonObject = {}
        self._is_asked = False

    async def settings(self, at_start: Mapping[str, JsonValue]) -> JsonObject:
        """Return the present settings; the first call requests them from the client.

        Args:
            at_start: Settings of the client when it connected; newer settings take precedence over them.
        """
        if not self._is_asked:
            self._is_asked = True
            await self._ask()
            await self._listen()
        return _over(at_start, self._said)

    async def changed(self, params: Mapping[str, object]) -> None:
        """Record `workspace/didChangeConfiguration`."""
        settings = as_object(as_object(params.get("settings")) or {}) or {}
        self._is_asked = True
        if SECTION in settings:
            self._said = _cleaned(settings[SECTION])
        else:
            # Most editors tell that something has changed, not what.
            await self._ask()

    async def _ask(self) -> None:
        if self._workspace().get("configuration") is not True:
            return
        given = await self._request(PULL, {"items": [{"section": SECTION}]})
        answers = as_array(given)
        if answers:
            self._said = _cleaned(answers[0])

    async def _listen(self) -> None:
        """Ask to be told of changes, where the editor tells only those that ask."""
        change = as_object(self._workspace().get("didChangeConfiguration")) or {}
        if change.get("dynamicRegistration") is True:
            one = {
                "id": f"{SECTION}-configuration",
                "method": CHANGED,
                "registerOptions": {"section": SECTION},
            }
            _ = await self._request(REGISTER, {"registrations": [one]})

    async def _request(self, method: str, params: object) -> object:
        try:
            return await self._client.request(method, params, timeout_s=ANSWER_S)
        except (RpcError, TimeoutError, ConnectionError) as error:
            _log.info("%s got no answer, so the settings of the start hold: %s", method, error)
            return None

    def _workspace(self) -> Mapping[str, object]:
        capabilities = as_object(self._client.client_params.get("capabilities")) or {}
        return as_object(capabilities.get("workspace")) or {}


def _cleaned(said: object) -> JsonObject:
    """Leave out what is null: editors say so of all that nobody has set."""
    members = as_object(said) or {}
    cleaned: dict[str, JsonValue] = {}
    for name, value in members.items():
        if as_object(value) is not None:
            if inner := _cleaned(value):
                cleaned[name] = inner
        elif value is not None:
            cleaned[name] = cast("JsonValue", value)  # sent as JSON
    return cleaned


def _over(below: Mapping[str, JsonValue], above: JsonObject) -> JsonObject:
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        merged[name] = _over(old, value) if is_object(old) and is_object(value) else value
    return merged
