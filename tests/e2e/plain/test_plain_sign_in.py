"""Signing in from inside an editor that has dialogs and pages of the browser, and nothing else."""

import json
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_core.kernel import rfc3339
from tests.providers.auth.auth_server import AuthServer, auth_server
from tests.support.clients.office import soon
from tests.support.clients.plain_windows import command, messages
from tests.support.clients.server import Ground, prompt, says
from tests.support.clients.windows import serving
from tests.support.lsp.lsp_answers import Chooses
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, PANEL, Profile
from tiller_server.lsp.wire.accounts import AuthLoginResult, AuthStatusResult
from tiller_server.lsp.wire.parsing import parse

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
TOKENS = {"access_token": "sk-access-0123456789", "refresh_token": "sk-refresh", "expires_in": 3600}
DEVICE = {
    "device_code": "sk-device", "user_code": "AB-CD", "verification_uri": "https://x/device",
    "interval": 0, "expires_in": 600,
}  # fmt: skip


GOOD: dict[str, list[Any]] = {"/device": [(200, DEVICE)], "/token": [(200, TOKENS)]}
REFUSED: dict[str, list[Any]] = {
    "/device": [(200, DEVICE)],
    "/token": [(400, {"error": "access_denied"})],
}
EXTENSION = """
from agent_core.extensions import DeviceFacts

def extension(api):
    api.provider(
        "site",
        {{
            "name": "Site", "baseUrl": {model!r}, "api": "openai-completions",
            "models": [{{"id": "m", "contextWindow": 32000, "maxTokens": 4096}}],
        }},
        oauth=DeviceFacts(
            device_url="{login}/device", token_url="{login}/token", client_id="tiller"
        ),
    )
"""


def bring_site(ground: Ground, server: AuthServer, *, model: str = "http://127.0.0.1:1/v1") -> None:
    """Let an extension of the user bring a provider that one logs in to with a code."""
    folder = ground.dirs.config / "extensions"
    folder.mkdir(parents=True)
    (folder / "site.py").write_text(EXTENSION.format(login=server.url, model=model), "utf-8")


@asynccontextmanager
async def at_site(
    ground: Ground, profile: Profile, answers: dict[str, list[Any]], **more: Any
) -> AsyncGenerator[tuple[RawClient, AuthServer]]:
    """Open a window of a user whose extension brings the provider."""
    async with auth_server(answers) as server:
        bring_site(ground, server, **more)
        async with serving(ground) as windows, windows.window(profile) as client:
            yield client, server


def kept(ground: Ground) -> Json:
    return json.loads((ground.dirs.config / "auth.json").read_text("utf-8"))


async def test_a_login_shows_the_page_and_the_code_and_is_kept(ground: Ground) -> None:
    async with at_site(ground, HELIX, GOOD) as (client, _):
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
        assert "site" in kept(ground)
        told = json.dumps([*client.received])
        assert not any(secret in told for secret in ("sk-access", "sk-refresh", "sk-device"))


async def test_providers_are_listed_those_with_a_login_first(ground: Ground) -> None:
    async with at_site(ground, EGLOT, {}) as (client, _):
        asked = client.handlers["window/showMessageRequest"] = Chooses()
        await command(client, "signIn")
        await soon(lambda: asked.asked)
        shown = [one["title"] for one in asked.asked[0]["actions"]]
        assert all(one.endswith("(log in)") or one == "More …" for one in shown)


async def test_a_login_that_fails_is_said(ground: Ground) -> None:
    async with at_site(ground, EGLOT, REFUSED) as (client, _):
        await command(client, "signIn", "site")
        await soon(lambda: any("not signed in to Site" in one for one in messages(client)))
        assert not (ground.dirs.config / "auth.json").exists()
        assert client.undeclared == []


async def test_the_first_prompt_after_a_login_reaches_what_an_extension_brought(
    ground: Ground,
) -> None:
    ground.provider.script([says("hello")])
    async with at_site(ground, PANEL, GOOD, model=ground.provider.base_url) as (client, _):
        before = await client.request("agent/auth/status", {"provider": "site"})
        site = {"provider": "site", "name": "Site", "login": "code"}
        assert before == {"providers": [{**site, "state": "missing"}]}
        begun = await client.request("agent/auth/login", {"provider": "site"})
        _ = parse(AuthLoginResult, begun, method="agent/auth/login")
        assert begun.pop("expires") > rfc3339(time.time_ns() // 1_000_000)
        assert begun == {"state": "pending", "url": "https://x/device", "userCode": "AB-CD"}
        await soon(lambda: messages(client) == ["Tiller: signed in to Site."])
        after = await client.request("agent/auth/status", {"provider": "site"})
        _ = parse(AuthStatusResult, after, method="agent/auth/status")
        assert after == {"providers": [{**site, "state": "ok", "source": "auth.json (login)"}]}
        listed = await client.request("agent/model/list", {"scope": "usable"})
        assert "site/m" in [one["model"] for one in listed["models"]]
        _ = await client.request("agent/session/configure", {"set": {"model": "site/m"}})
        _ = await client.request("agent/prompt", prompt("hi", wait=True))
        asked = ground.provider.log()[-1]
        # The log of the provider keeps how long it was.
        length = len(f"Bearer {TOKENS['access_token']}")
        assert asked["headers"]["authorization"] == f"<{length} characters>"
        left = await client.request("agent/auth/logout", {"provider": "site"})
        assert left == before
        assert kept(ground) == {}


async def test_a_login_that_waits_is_not_begun_twice(ground: Ground) -> None:
    pending = {"/device": GOOD["/device"], "/token": [(400, {"error": "authorization_pending"})]}
    async with at_site(ground, PANEL, pending) as (client, server):
        asked = [client.call("agent/auth/login", {"provider": "site"}) for _ in range(2)]
        first, second = [await one.result() for one in asked]
        assert first == second == await client.request("agent/auth/login", {"provider": "site"})
        assert len(server.to("/device")) == 1
        status = await client.request("agent/auth/status", {"provider": "site"})
        assert status["providers"][0]["state"] == "pending"


async def test_a_login_that_ends_badly_is_told(ground: Ground) -> None:
    async with at_site(ground, PANEL, REFUSED) as (client, _):
        assert (await client.request("agent/auth/login", {"provider": "site"}))[
            "state"
        ] == "pending"
        await soon(lambda: messages(client))
        assert messages(client) == [
            "Tiller: not signed in to Site: the login was refused in the browser"
        ]
        status = await client.request("agent/auth/status", {"provider": "site"})
        assert status["providers"][0]["state"] == "missing"


@pytest.mark.parametrize(
    ("method", "params", "why"),
    [
        ("login", {"provider": "site"}, "not signed in to Site: the provider gave no code"),
        ("login", {"provider": "openai"}, "run `tiller auth login openai` in a terminal"),
        ("login", {}, "agent/auth/login: say which provider; there are "),
        ("logout", {"provider": "nobody"}, "no provider is called 'nobody'; there are "),
        ("status", {"provider": "nobody"}, "no provider is called 'nobody'; there are "),
    ],
    ids=["broken", "key", "none", "unknown", "unknown to status"],
)
async def test_what_cannot_be_done_is_one_sentence(
    ground: Ground, method: str, params: Json, why: str
) -> None:
    async with at_site(ground, PANEL, {"/device": [(500, {})]}) as (client, _):
        with pytest.raises(ClientError, match=re.escape(why)):
            _ = await client.request(f"agent/auth/{method}", params)


async def test_accounts_are_there_without_a_folder(ground: Ground) -> None:
    async with (
        serving(ground) as windows,
        windows.window(PANEL, session={"open": "none"}) as client,
    ):
        listed = await client.request("agent/auth/status", {})
    states = {one["provider"]: one["state"] for one in listed["providers"]}
    assert states["openai"] == "missing"
