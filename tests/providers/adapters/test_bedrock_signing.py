"""Bedrock: requests are signed as Amazon wants it, with what its own tools would find."""

import hashlib
import hmac
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from agent_core.kernel import json
from agent_core.kernel.errors import ProviderError
from agent_core.providers.adapters.bedrock_converse import AwsSigner, BedrockConverse
from agent_core.providers.auth.credentials import RequestCredentials
from tests.providers.adapters.test_bedrock import CLAUDE, model_for
from tests.providers.aws_frames import delta, ended
from tests.providers.conftest import Pools
from tests.providers.loopback import Asked, Reply, loopback
from tests.providers.replay import Outcome, ask


class NoKey:
    """Lets nobody in by itself."""

    def __init__(self, **headers: str) -> None:
        self._headers = headers

    async def credentials(self) -> RequestCredentials:
        return RequestCredentials(headers=self._headers)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give surroundings without any credentials, and where its configuration would lie."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return tmp_path


def signature_of(asked: Asked, *, host: str, secret: str) -> str:
    """Compute the signature that a request must have, from what was signed."""
    scheme, _, rest = asked.headers["authorization"].partition(" ")
    assert scheme == "AWS4-HMAC-SHA256"
    told = dict(part.split("=", 1) for part in rest.split(", "))
    _key_id, day, region, service, ending = told["Credential"].split("/")
    values = {**asked.headers, "host": host}
    names = told["SignedHeaders"].split(";")
    canonical = "\n".join(
        (
            "POST",
            quote(urlsplit(asked.path).path, safe="/~"),
            "",
            *(f"{name}:{values[name]}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(json.encode(asked.body)).hexdigest(),
        )
    )
    scope = "/".join((day, region, service, ending))
    text = "\n".join(
        (
            scheme,
            asked.headers["x-amz-date"],
            scope,
            hashlib.sha256(canonical.encode()).hexdigest(),
        )
    )
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, ending):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


async def signed(pools: Pools, **more: Any) -> tuple[Outcome, Asked, str]:
    async with loopback(Reply([delta(0, text="a"), *ended("end_turn")])) as server:
        outcome = await ask(model_for(server, pools, **{"access": NoKey(), **more}))
        (asked,) = server.asked
        return outcome, asked, urlsplit(server.url).netloc


async def test_without_a_token_the_request_is_signed(
    aws: Path, monkeypatch: pytest.MonkeyPatch, pools: Pools
):
    pytest.importorskip("botocore")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "the session")
    access = NoKey(**{"X-Amz-Date": "forged", "Authorization": "forged", "x-team": "t"})
    outcome, asked, host = await signed(pools, access=access)
    assert outcome.error is None
    assert asked.headers["x-amz-security-token"] == "the session"
    assert asked.headers["x-team"] == "t"
    assert "/us-east-1/bedrock/aws4_request" in asked.headers["authorization"]
    told = asked.headers["authorization"].rpartition("Signature=")[2]
    assert told == signature_of(asked, host=host, secret="the secret")


async def test_a_profile_brings_its_keys_and_its_region(aws: Path, pools: Pools):
    pytest.importorskip("botocore")
    (aws / "config").write_text("[profile work]\nregion = eu-north-1\n")
    (aws / "credentials").write_text(
        "[work]\naws_access_key_id = AKIDWORK\naws_secret_access_key = s3cret\n"
    )
    async with loopback(Reply([delta(0, text="a"), *ended("end_turn")])) as server:
        facts = replace(CLAUDE, base_url=server.url, compat={"profile": "work"})
        outcome = await ask(BedrockConverse(facts, access=NoKey(), pool=pools()))
        (asked,) = server.asked
    assert outcome.error is None
    assert "Credential=AKIDWORK/" in asked.headers["authorization"]
    assert "/eu-north-1/bedrock/" in asked.headers["authorization"]


async def test_without_any_credentials_the_error_says_what_to_set(aws: Path, pools: Pools):
    pytest.importorskip("botocore")
    async with loopback() as server:
        outcome = await ask(model_for(server, pools, access=NoKey()))
        assert server.asked == []
    assert outcome.error is not None
    assert outcome.error.reason == "auth"
    assert "AWS_BEARER_TOKEN_BEDROCK" in str(outcome.error)


async def test_a_profile_that_is_not_there_is_named(aws: Path):
    pytest.importorskip("botocore")
    with pytest.raises(ProviderError, match="nobody") as refused:
        await AwsSigner().signed("http://x/", b"", headers={}, region="r", profile="nobody")
    assert refused.value.reason == "auth"


class OldSigner:
    """Signs with a key that has run out."""

    async def region(self, profile: str | None) -> str | None:
        del profile
        return None

    async def signed(
        self, url: str, body: bytes, *, headers: Mapping[str, str], region: str, profile: str | None
    ) -> Mapping[str, str]:
        del url, body, region, profile
        return {**headers, "Authorization": "AWS4 old-signature", "X-Amz-Security-Token": "tok-en"}


async def test_neither_a_signature_nor_a_session_shows_in_an_error(pools: Pools):
    echoed = b'{"message": "the tok-en with AWS4 old-signature has run out"}'
    async with loopback(Reply([echoed], status=403)) as server:
        outcome = await ask(model_for(server, pools, access=NoKey(), signer=OldSigner()))
    assert outcome.error is not None
    assert outcome.error.reason == "auth"
    assert "tok-en" not in str(outcome.error)
    assert "old-signature" not in str(outcome.error)


async def test_where_botocore_is_not_installed_the_error_says_so(
    monkeypatch: pytest.MonkeyPatch, pools: Pools
):
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    async with loopback() as server:
        outcome = await ask(model_for(server, pools, access=NoKey()))
    assert outcome.error is not None
    assert outcome.error.reason == "auth"
    assert "tiller[bedrock]" in str(outcome.error)


def test_the_vendors_libraries_are_not_loaded_before_they_are_needed():
    code = """
import sys
import agent_core.providers.adapters.bedrock_converse
import agent_core.providers.adapters.google_generative_ai
import agent_core.providers.adapters.google_vertex
print(sorted(name for name in sys.modules if name in {"botocore", "google.auth", "httpx"}))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=15
    )
    assert run.stdout.strip() == "[]"
