"""Signing in from inside an editor that has dialogs and pages of the browser, and nothing else."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from anyio import to_thread

from agent_core.providers.auth_store import AuthStore
from agent_core.providers.catalogue import ProviderFacts, builtin_providers
from agent_core.providers.oauth_facts import DeviceFacts
from agent_core.providers.registry import ModelRegistry
from server.lsp.signing_in import SigningIn
from tests.providers.auth_server import AuthServer, auth_server
from tests.support.clock import FakeClock
from tests.support.lsp_answers import Chooses
from tests.support.lsp_profiles import EGLOT, HELIX
from tests.support.office import soon
from tests.support.plain_windows import command, messages
from tests.support.server import Ground
from tests.support.windows import Windows, serving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
TOKENS = {"access_token": "sk-access-0123456789", "refresh_token": "sk-refresh", "expires_in": 3600}
DEVICE = {
    "device_code": "sk-device", "user_code": "AB-CD", "verification_uri": "https://x/device",
    "interval": 2, "expires_in": 600,
}  # fmt: skip


async def with_site(ground: Ground, windows: Windows, server: AuthServer) -> None:
    """Let there be a provider that one logs in to with a code, and one that takes a key."""
    facts = DeviceFacts(
        device_url=f"{server.url}/device", token_url=f"{server.url}/token", client_id="tiller"
    )
    site = ProviderFacts(
        id="site", name="Site", api="openai-completions", base_url=server.url, oauth=facts
    )
    host = await windows.runtime.host()
    path = ground.dirs.config / "auth.json"

    async def registry(env: Mapping[str, str]) -> ModelRegistry:
        auth = AuthStore(path, clock=FakeClock(1_000_000))
        await auth.load()
        _ = await to_thread.run_sync(builtin_providers)
        return ModelRegistry(openers={}, environment=env, auth=auth, extra=(site,))

    host.signing_in = SigningIn(
        path, clock=FakeClock(1_000_000), redactor=host.redactor, registry=registry
    )


async def test_a_login_shows_the_page_and_the_code_and_is_kept(ground: Ground) -> None:
    answers = {"/device": [(200, DEVICE)], "/token": [(200, TOKENS)]}
    async with (
        auth_server(answers) as server,
        serving(ground) as windows,
        windows.window(HELIX) as client,
    ):
        await with_site(ground, windows, server)
        pages: list[Json] = []
        client.handlers["window/showDocument"] = lambda params, reply: (
            pages.append(params), reply({"success": True}),
        )[0]  # fmt: skip
        await command(client, "signIn", "site")
        await soon(lambda: "Tiller: signed in to Site" in str(messages(client)))
        assert messages(client)[0] == (
            "Tiller: to log in open https://x/device and type in the code AB-CD"
        )
        assert pages == [{"uri": "https://x/device", "external": True, "takeFocus": True}]
        kept = json.loads((ground.dirs.config / "auth.json").read_text("utf-8"))
        assert "site" in kept
        told = json.dumps([*client.received])
        assert not any(secret in told for secret in ("sk-access", "sk-refresh", "sk-device"))


async def test_providers_are_listed_those_with_a_login_first(ground: Ground) -> None:
    async with (
        auth_server({}) as server,
        serving(ground) as windows,
        windows.window(EGLOT) as client,
    ):
        await with_site(ground, windows, server)
        asked = client.handlers["window/showMessageRequest"] = Chooses()
        await command(client, "signIn")
        await soon(lambda: asked.asked)
        shown = [one["title"] for one in asked.asked[0]["actions"]]
        assert all(one.endswith("(log in)") or one == "More …" for one in shown)


async def test_a_login_that_fails_is_said(ground: Ground) -> None:
    refused = {"/device": [(200, DEVICE)], "/token": [(400, {"error": "access_denied"})]}
    async with (
        auth_server(refused) as server,
        serving(ground) as windows,
        windows.window(EGLOT) as client,
    ):
        await with_site(ground, windows, server)
        await command(client, "signIn", "site")
        await soon(lambda: any("not signed in to Site" in one for one in messages(client)))
        assert not (ground.dirs.config / "auth.json").exists()
        assert client.undeclared == []
