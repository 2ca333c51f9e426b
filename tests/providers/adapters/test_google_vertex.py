"""Vertex AI: where its Gemini and its Claude are asked, in whose words, and how it lets us in."""

import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel import ToolCallId
from agent_core.kernel.errors import ProviderError
from agent_core.messages import Text, ToolCall, Usage
from agent_core.providers import ToolDeclaration
from agent_core.providers.adapters.google_vertex import AdcTokens, GoogleVertex, Ticket
from agent_core.providers.adapters.google_vertex.model import url_of
from agent_core.providers.auth.credentials import RequestCredentials
from tests.providers.adapters.test_google_generative_ai import chunk, end
from tests.providers.auth.auth_server import AuthServer, auth_server
from tests.providers.conftest import Pools
from tests.providers.loopback import Asked, Reply, loopback, sse
from tests.providers.replay import HELLO, LAB, OpenDoor, Outcome, ask
from tests.providers.test_conformance import BEGUN, block, ended

PLACED = {"project": "my-project", "location": "europe-west4"}
GEMINI = replace(LAB, api="google-vertex", id="gemini-2.5-flash", compat=PLACED)
CLAUDE = replace(GEMINI, id="claude-sonnet-4-5@20250929")
ANSWER = (chunk({"text": "a"}), end())
IN_PROJECT = "/projects/my-project/locations/europe-west4/publishers"


class NoKey:
    """Lets nobody in by itself."""

    async def credentials(self) -> RequestCredentials:
        return RequestCredentials()


@dataclass
class Tickets:
    """Gives the same ticket again and again."""

    project: str | None = "of-the-ticket"
    quota: str | None = None
    given: int = 0

    async def ticket(self) -> Ticket:
        self.given += 1
        return Ticket(token="ya29.very-secret", project=self.project, quota_project=self.quota)


@pytest.mark.parametrize(
    ("location", "model", "host", "path"),
    [
        (
            None,
            "gemini-3-pro",
            "aiplatform.googleapis.com/v1beta1",
            "global/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        (
            "us-east5",
            "claude-3-7-sonnet@1",
            "us-east5-aiplatform.googleapis.com/v1",
            "us-east5/publishers/anthropic/models/claude-3-7-sonnet@1:streamRawPredict",
        ),
        (
            "eu",
            "gemini-3-pro",
            "aiplatform.eu.rep.googleapis.com/v1beta1",
            "eu/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        (
            "us-central1",
            "endpoints/123",
            "us-central1-aiplatform.googleapis.com/v1beta1",
            "us-central1/endpoints/123:streamGenerateContent?alt=sse",
        ),
    ],
)
def test_the_address_follows_the_location_and_the_maker(
    location: Any, model: str, host: str, path: str
):
    facts = replace(GEMINI, id=model, compat={"location": location})
    assert url_of(facts, project="p") == f"https://{host}/projects/p/locations/{path}"


def test_a_catalogues_address_does_not_hold_against_the_chosen_location():
    facts = replace(GEMINI, base_url="https://{location}-aiplatform.googleapis.com")
    assert url_of(facts, project="p").startswith("https://europe-west4-aiplatform.googleapis.com/")
    alone = replace(GEMINI, compat={}, base_url="https://asia-east1-aiplatform.googleapis.com")
    assert "//asia-east1-" in url_of(alone, project="p")
    assert "/locations/asia-east1/" in url_of(alone, project="p")
    proxied = replace(GEMINI, base_url="http://proxy:1")
    assert url_of(proxied, project="p").startswith("http://proxy:1/v1beta1/projects/p/")


async def heard(pools: Pools, facts: Any, *events: Any, **more: Any) -> tuple[Outcome, Asked]:
    async with loopback(Reply(sse(*events))) as server:
        placed = replace(facts, base_url=f"{server.url}/v1")
        request = more.pop("request", HELLO)
        options: dict[str, Any] = {"access": NoKey(), "pool": pools(), "tickets": Tickets(), **more}
        outcome = await ask(GoogleVertex(placed, **options), request)
        (asked,) = server.asked
    return outcome, asked


async def test_gemini_is_asked_in_the_project_with_a_token(pools: Pools):
    outcome, asked = await heard(pools, GEMINI, *ANSWER)
    assert outcome.text == "a"
    assert asked.path == (
        f"/v1{IN_PROJECT}/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    )
    assert asked.headers["authorization"] == "Bearer ya29.very-secret"
    assert asked.body["contents"] == [{"role": "user", "parts": [{"text": "Hello"}]}]


async def test_the_tickets_project_is_used_when_nobody_names_one(pools: Pools):
    facts = replace(GEMINI, compat={})
    _, asked = await heard(pools, facts, *ANSWER, tickets=Tickets(quota="payer"))
    assert asked.path.startswith("/v1/projects/of-the-ticket/locations/global/")
    assert asked.headers["x-goog-user-project"] == "payer"


async def test_a_key_opens_gemini_without_a_project(pools: Pools):
    tickets = Tickets()
    outcome, asked = await heard(pools, GEMINI, *ANSWER, access=OpenDoor(), tickets=tickets)
    assert outcome.error is None
    assert asked.path == (
        "/v1/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    )
    assert asked.headers["x-goog-api-key"] == "sk-test-very-secret"
    assert tickets.given == 0


async def test_a_token_of_ones_own_needs_no_ticket(pools: Pools):
    tickets = Tickets()
    access = OpenDoor(bearer=True)
    _, asked = await heard(pools, GEMINI, *ANSWER, access=access, tickets=tickets)
    assert asked.headers["authorization"] == "Bearer sk-test-very-secret"
    assert IN_PROJECT in asked.path
    assert tickets.given == 0


@pytest.mark.parametrize(
    ("facts", "access"),
    [(GEMINI, NoKey()), (CLAUDE, NoKey()), (CLAUDE, OpenDoor())],
    ids=["gemini", "claude", "claude with a key"],
)
async def test_without_a_project_the_error_says_what_to_set(facts: Any, access: Any, pools: Pools):
    model = GoogleVertex(
        replace(facts, compat={}), access=access, pool=pools(), tickets=Tickets(project=None)
    )
    outcome = await ask(model)
    assert outcome.error is not None
    assert outcome.error.reason == "auth"
    assert "GOOGLE_CLOUD_PROJECT" in str(outcome.error)


async def test_claude_is_asked_and_heard_in_its_own_words(pools: Pools):
    request = replace(
        HELLO,
        thinking="low",
        tools=(ToolDeclaration(name="read", description="R", parameters={"type": "object"}),),
    )
    outcome, asked = await heard(
        pools,
        replace(CLAUDE, reasoning=True),
        BEGUN,
        block(0, "text", text="a"),
        block(1, "tool_use", id="toolu_vrtx_1", name="read", input={}),
        *ended("tool_use"),
        request=request,
    )
    assert outcome.message is not None
    assert outcome.message.content == (
        Text(text="a"),
        ToolCall(id=ToolCallId("toolu_vrtx_1"), name="read", arguments={}),
    )
    assert (outcome.message.api, outcome.message.usage) == (
        "google-vertex",
        Usage(input=10, output=5),
    )
    assert asked.path == (
        f"/v1{IN_PROJECT}/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict"
    )
    assert asked.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    assert asked.body["anthropic_version"] == "vertex-2023-10-16"
    assert asked.body["stream"] is True
    assert "model" not in asked.body


async def test_a_token_shows_in_no_error(pools: Pools):
    echoed = b'{"error": {"code": 401, "message": "bad token ya29.very-secret"}}'
    async with loopback(Reply([echoed], status=401)) as server:
        facts = replace(GEMINI, base_url=server.url)
        outcome = await ask(GoogleVertex(facts, access=NoKey(), pool=pools(), tickets=Tickets()))
    assert outcome.error is not None
    assert outcome.error.reason == "auth"
    assert "very-secret" not in f"{outcome.error}{outcome.error!r}"
    assert "very-secret" not in repr(await Tickets().ticket())


@cache
def private_key() -> str:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - with google-auth
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - with google-auth

    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture
async def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[AuthServer]:
    """Set up a service account whose tokens a server inside the test gives."""
    pytest.importorskip("google.auth")
    token = {"access_token": "ya29.fresh", "expires_in": 3600, "token_type": "Bearer"}
    async with auth_server({"/token": [(200, token)]}) as server:
        account = {
            "type": "service_account",
            "project_id": "of-the-account",
            "private_key_id": "1",
            "private_key": private_key(),
            "client_email": "agent@of-the-account.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"{server.url}/token",
        }
        path = tmp_path / "account.json"
        path.write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"):
            monkeypatch.delenv(name, raising=False)
        yield server


async def test_a_service_accounts_token_is_fetched_once_and_kept(google: AuthServer):
    tokens = AdcTokens()
    first = await tokens.ticket()
    assert (first.token, first.project) == ("ya29.fresh", "of-the-account")
    assert await tokens.ticket() == first
    (asked,) = google.to("/token")
    assert asked.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"


async def test_a_token_that_has_run_out_is_renewed(google: AuthServer):
    old = {"access_token": "ya29.old", "expires_in": 1, "token_type": "Bearer"}
    google.answers["/token"].insert(0, (200, old))
    tokens = AdcTokens()
    assert (await tokens.ticket()).token == "ya29.old"
    assert (await tokens.ticket()).token == "ya29.fresh"


@pytest.mark.parametrize(
    ("answer", "reason", "told"),
    [
        ((400, {"error": "invalid_grant", "error_description": "gone"}), "auth", "log in again"),
        (None, "network", "cannot be reached"),
    ],
    ids=["refused", "out of reach"],
)
async def test_a_token_that_cannot_be_had_is_an_error(
    answer: Any, reason: str, told: str, google: AuthServer, tmp_path: Path
):
    if answer is not None:
        google.answers["/token"] = [answer]
    else:
        path = tmp_path / "account.json"
        path.write_text(path.read_text().replace(google.url, "http://127.0.0.1:1"))
    with pytest.raises(ProviderError, match=told) as failed:
        await AdcTokens().ticket()
    assert failed.value.reason == reason


async def test_without_any_credentials_the_error_says_what_to_do(
    google: AuthServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "not there"))
    with pytest.raises(ProviderError, match="gcloud auth application-default login") as failed:
        await AdcTokens().ticket()
    assert failed.value.reason == "auth"
    assert google.heard == []


async def test_where_google_auth_is_not_installed_the_error_says_so(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(ProviderError, match=r"tiller\[vertex\]") as failed:
        await AdcTokens().ticket()
    assert failed.value.reason == "auth"
