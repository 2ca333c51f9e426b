"""Shared pages: previewed, created, seen by somebody without a login, expired, revoked."""

import logging
import re
import stat

import httpx
import pytest

from agent_core.resources.paths import app_paths
from tests.support.clients.browsers import Json, Site, ask, opened, served
from tests.support.clients.server import Ground, prompt, says
from tests.support.harness.clock import FakeClock
from tiller_server.web.methods import Role

pytestmark = [pytest.mark.timeout(60)]

DAY_S = 24 * 3600
SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> [x](javascript:alert(3))"


async def conversation(ground: Ground, script: httpx.AsyncClient) -> str:
    """Have a conversation with a secret and with markup in it; return the session."""
    ground.provider.script([says(f"{HOSTILE} and {SECRET}")])
    session = (await opened(script))["session"]
    follow = f"/v1/events?sessions={session}"
    async with script.stream("GET", follow) as stream:
        await ask(script, "agent/prompt", session=session, **prompt(f"use {SECRET} {HOSTILE}"))
        async for line in stream.aiter_lines():
            if "run.ended" in line:
                break
    return session


async def preview(script: httpx.AsyncClient, session: str) -> Json:
    """Return the preview of the page of a session."""
    answer = await script.post("/api/shares/preview", json={"session": session})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def share(script: httpx.AsyncClient, session: str, **more: int) -> Json:
    """Create a link and return it."""
    confirm = (await preview(script, session))["confirm"]
    body = {"session": session, "confirm": confirm, **more}
    answer = await script.post("/api/shares", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def stranger(site: Site) -> httpx.AsyncClient:
    """Return a browser without a login, in which a link of another site is followed."""
    headers = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    }
    return httpx.AsyncClient(headers=headers, timeout=15)


async def test_a_page_is_previewed_shared_and_revoked(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with served(ground) as site, site.script() as script:
        session = await conversation(ground, script)
        seen = await preview(script, session)
        assert {one["kind"]: one["count"] for one in seen["redacted"]} == {"github-token": 2}
        assert seen["session"] == session
        assert seen["title"]
        created = await share(script, session)
        assert created["url"].startswith(f"{site.origin}/s/")
        async with stranger(site) as browser:
            page = await browser.get(created["url"])
            assert page.status_code == 200
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert SECRET not in page.text
            assert page.text.count("[redacted:github-token]") == 4  # two of them in the title
            assert not re.search(r"<script|<img src=x|href=.javascript:", page.text)
            policy = page.headers["content-security-policy"]
            assert "script-src" not in policy
            assert "default-src 'none'" in policy
            assert re.search(r"style-src 'sha256-[A-Za-z0-9+/=]{44}';", policy)
            assert policy.endswith("; sandbox")
            assert page.headers["referrer-policy"] == "no-referrer"
            assert len(page.content) == seen["size"]
            listed = (await script.get("/api/shares")).json()["shares"]
            assert [(one["share"], one["state"]) for one in listed] == [
                (created["share"], "active")
            ]
            revoke = f"/api/shares/{created['share']}/revoke"
            for _ in range(2):
                revoked = await script.post(revoke, json={})
                assert (revoked.status_code, revoked.json()["state"]) == (200, "revoked")
            gone = await browser.get(created["url"])
            assert gone.status_code == 410
            assert gone.text.count(".") == 1
            assert (await browser.get(f"{site.origin}/s/{'x' * 43}")).status_code == 404
    folder = app_paths(ground.env).web / "shares"
    assert [one.name for one in folder.glob("*.html")] == []
    token = created["url"].rpartition("/")[2]
    assert token not in (folder / "shares.json").read_text("utf-8")
    lines = [one.getMessage() for one in caplog.records if one.name.startswith("tiller_server")]
    assert not [one for one in lines if token in one]
    assert [one for one in lines if "'/s/{token}' 200" in one]


async def test_a_link_outlives_the_server_and_expires(ground: Ground) -> None:
    clock = FakeClock()
    async with served(ground, clock=clock) as site, site.script() as script:
        session = await conversation(ground, script)
        first = await share(script, session)
        second = await share(script, session, expiresInS=30 * DAY_S)
        assert first["url"] != second["url"]
    folder = app_paths(ground.env).web / "shares"
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    tokens = [one["url"].rpartition("/")[2] for one in (first, second)]
    async with served(ground, clock=clock) as site, stranger(site) as browser:

        async def statuses() -> list[int]:
            return [(await browser.get(f"{site.origin}/s/{one}")).status_code for one in tokens]

        assert await statuses() == [200, 200]
        clock.advance(DAY_S)
        assert await statuses() == [410, 200]
        async with site.script() as script:
            states = [one["state"] for one in (await script.get("/api/shares")).json()["shares"]]
            assert states == ["active", "expired"]
            assert len([*folder.glob("*.html")]) == 1
            clock.advance(30 * DAY_S)
            assert await statuses() == [410, 410]
            clock.advance(30 * DAY_S)
            assert (await script.get("/api/shares")).json() == {"shares": []}
            assert await statuses() == [404, 404]


async def test_a_link_needs_the_preview_of_the_page_as_it_is(ground: Ground) -> None:
    async with served(ground) as site, site.script() as script:
        session = await conversation(ground, script)
        before = await preview(script, session)
        await ask(script, "agent/session/rename", session=session, title="Another")
        body = {"session": session, "confirm": before["confirm"]}
        stale = await script.post("/api/shares", json=body)
        assert stale.status_code == 409
        assert (await script.get("/api/shares")).json() == {"shares": []}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"session": "s"}, 400),
        ({"session": "s-none", "confirm": "x"}, 404),
        ({"session": "s", "confirm": "x", "expiresInS": 59}, 400),
        ({"session": "s", "confirm": "x", "expiresInS": 30 * DAY_S + 1}, 400),
        ({"session": "s", "confirm": "x", "expires": 60}, 400),
    ],
)
async def test_a_link_that_cannot_be_made_is_refused(
    ground: Ground, body: Json, status: int
) -> None:
    async with served(ground) as site, site.script() as script:
        answer = await script.post("/api/shares", json=body)
        assert answer.status_code == status
        assert answer.json()["error"]["message"]
        assert (await script.post("/api/shares/none/revoke", json={})).status_code == 404


@pytest.mark.parametrize("role", ["observer", "approver"])
async def test_only_an_operator_shares(ground: Ground, role: Role) -> None:
    async with served(ground, role=role) as site, site.script() as script:
        for path, body in (
            ("/api/shares", {"session": "s", "confirm": "x"}),
            ("/api/shares/preview", {"session": "s"}),
            ("/api/shares/none/revoke", {}),
        ):
            answer = await script.post(path, json=body)
            assert answer.status_code == 403, path
            assert role in answer.json()["error"]["message"]
        assert (await script.get("/api/shares")).json() == {"shares": []}


async def test_another_site_may_link_to_a_page_and_not_fetch_it(ground: Ground) -> None:
    async with served(ground) as site, site.script() as script, stranger(site) as browser:
        created = await share(script, await conversation(ground, script))
        for name, value in (
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-dest", "iframe"),
            ("sec-fetch-dest", "image"),
            ("origin", "http://evil.example"),
        ):
            answer = await browser.get(created["url"], headers={name: value})
            assert answer.status_code == 403, (name, value)
        # Nothing else is opened by it.
        assert (await browser.get(f"{site.origin}/")).status_code == 403
