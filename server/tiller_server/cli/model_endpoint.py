"""Adds a server that speaks OpenAI's chat wire to the user's models.json, after asking it for its models."""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import anyio.to_thread

from agent_core.kernel import JsonObject, JsonValue, SystemClock, json
from agent_core.kernel.errors import UsageError
from agent_core.providers.auth.oauth import StoredKey
from agent_core.providers.auth.store import AuthStore
from agent_core.providers.catalog.catalogue import MODELS_SHOWN, builtin_providers
from agent_core.providers.http.client import JsonRequest, JsonRequestFailed, request_json
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.file import change_settings_now
from tiller_server.cli.sign_in import literal_key

NO_KEY: Final = "none"
"""Written for a server that takes no key: a provider of models.json has one."""
API: Final = "openai-completions"
IDENTITY: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})
HOST: Final = re.compile(
    r"(localhost|[\w-]+(\.[\w-]+)+|\[[0-9a-f:]+\])(:\d+)?(/\S*)?", re.IGNORECASE
)
"""Address without a scheme."""


async def add_endpoint(
    paths: AppPaths, url: str, *, provider: str | None, key: str | None
) -> tuple[str, list[str]]:
    """Request the models of a server, and write it down as a provider with all of them.

    Args:
        paths: Folders of the user's files.
        url: Base URL; where it answers nothing, the same with `/v1` is tried.
        provider: Id of the provider; None: made from the host and the port.
        key: API key, stored with the others; None: the server takes none.

    Returns:
        The id of the provider and the ids of its models, in the order of the server.

    Raises:
        UsageError: The URL or the id cannot be used, or the server does not list its models.
        ConfigError: models.json cannot be changed.
    """
    base_url = server_address(url)
    identity = provider or _identity(base_url)
    if IDENTITY.fullmatch(identity) is None:
        message = f"{identity!r} cannot be the id of a provider: use lower-case letters, digits, '.', '_' and '-'"
        raise UsageError(message)
    builtin = await anyio.to_thread.run_sync(builtin_providers)
    if identity in {one.id for one in builtin}:
        # A key that is stored for the built-in one would go to this address.
        message = f"{identity!r} is a provider that Tiller knows already; choose another --id"
        raise UsageError(message)
    base_url, models = await _listed(base_url, key)
    entries: list[JsonValue] = [{"id": one} for one in models]
    entry: JsonObject = {"baseUrl": base_url, "api": API, "models": entries}
    if key is None:
        entry = {**entry, "apiKey": NO_KEY}
    changes: JsonObject = {"providers": {identity: entry}}
    await anyio.to_thread.run_sync(change_settings_now, paths.models, changes)
    if key is not None:
        store = AuthStore(paths.auth, clock=SystemClock())
        await store.put(identity, StoredKey(key=literal_key(key)))
    return identity, models


def server_address(url: str) -> str:
    """Return the base URL of a server as it is written down; without a scheme it is http on this machine, else https.

    Raises:
        UsageError: It is no address, or holds more than an address.
    """
    text = url.strip()
    if HOST.fullmatch(text):
        scheme = "http" if urlsplit(f"//{text}").hostname in LOCAL else "https"
        text = f"{scheme}://{text}"
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        message = f"{url!r} is no address of a server; example: http://127.0.0.1:8000/v1"
        raise UsageError(message)
    if parts.username or parts.password or parts.query or parts.fragment:
        message = f"{parts.hostname}: the address must hold no key, query or fragment; enter the key separately"
        raise UsageError(message)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _identity(base_url: str) -> str:
    parts = urlsplit(base_url)
    host = "local" if parts.hostname in LOCAL else parts.hostname or ""
    port = f"-{parts.port}" if parts.port else ""
    return re.sub(r"[^a-z0-9.-]", "-", f"{host}{port}".lower())


async def _listed(base_url: str, key: str | None) -> tuple[str, list[str]]:
    """Return the address that lists models, and their ids."""
    tried = (base_url,) if base_url.endswith("/v1") else (base_url, f"{base_url}/v1")
    problem = ""
    for address in tried:
        try:
            models = await _models_of(address, key)
        except JsonRequestFailed as error:
            problem = problem or f"{error}; check the address"
            continue
        if isinstance(models, list):
            return address, models
        problem = models
    raise UsageError(problem)


async def _models_of(address: str, key: str | None) -> list[str] | str:
    """Return the models, or why there are none."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    reply = await request_json(JsonRequest(url=f"{address}/models", headers=headers))
    host = urlsplit(address).netloc
    if reply.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return f"{host} refused the request for its models ({reply.status}); {'check the key' if key else 'it wants a key'}"
    listed = reply.body.get("data")
    if reply.status != HTTPStatus.OK or not isinstance(listed, list):
        return f"{host} lists no models at {urlsplit(address).path or '/'} (status {reply.status}); check the address"
    found = [json.as_object(one).get("id") for one in listed[:MODELS_SHOWN]]
    # Models that only embed text stand in the same list.
    models = [one for one in found if isinstance(one, str) and one and "embed" not in one.lower()]
    return models or f"{host} has no model; load one, then try again"
