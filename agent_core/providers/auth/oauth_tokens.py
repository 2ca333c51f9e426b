"""The exchange of codes and tokens for other tokens, as OAuth 2 and its relatives have it."""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

from agent_core.kernel import JsonObject
from agent_core.providers.auth.entries import LATEST_MS, StoredKey, StoredTokens
from agent_core.providers.auth.oauth import DeviceFacts, OAuthFacts, PkceFacts
from agent_core.providers.http.json_request import (
    JsonRequest,
    JsonRequestFailed,
    JsonResponse,
    SendJson,
    request_json,
)

SAID_LENGTH = 200
MS = 1000
LONGEST_S = 1e9


class LoginFailed(Exception):
    """There is no token; the text says why and holds no secret."""


async def refreshed(
    facts: OAuthFacts, tokens: StoredTokens, now_ms: int, *, ask: SendJson = request_json
) -> StoredTokens:
    """Exchange tokens that end for new ones.

    Raises:
        LoginFailed: The provider does not want them any more, or cannot be asked.
    """
    if isinstance(facts, DeviceFacts) and facts.exchange_url:
        return await exchanged(facts, tokens.refresh, ask=ask)
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh}
    body = await asked_for_tokens(facts, form, ask=ask)
    # Some providers let the old token for refreshing live on and send none.
    return tokens_of(body, now_ms, refresh=tokens.refresh)


async def exchanged(
    facts: DeviceFacts, token: str, *, ask: SendJson = request_json
) -> StoredTokens:
    """Exchange the token of a login for the short-lived one that the API takes.

    Raises:
        LoginFailed: The provider refuses: the login was revoked, or its account may not use the API.
    """
    headers = {**facts.exchange_headers, "authorization": f"token {token}"}
    question = JsonRequest(url=facts.exchange_url, headers=headers)
    reply = await _asked(question, ask)
    access, ends_s = reply.body.get("token"), reply.body.get("expires_at")
    if reply.status != HTTPStatus.OK or not isinstance(access, str):
        raise _refused(facts.exchange_url, reply)
    has_expiry = isinstance(ends_s, int | float) and 0 <= ends_s * MS < LATEST_MS
    until_ms = int(ends_s) * MS if has_expiry and isinstance(ends_s, int | float) else 0
    return StoredTokens(access=access, refresh=token, expires_ms=until_ms)


async def tokens_for_code(
    facts: PkceFacts, form: Mapping[str, str], now_ms: int, *, ask: SendJson = request_json
) -> StoredKey | StoredTokens:
    """Exchange the code that a browser brought back.

    Raises:
        LoginFailed: The provider refuses it.
    """
    if facts.style == "standard":
        body = await asked_for_tokens(facts, {"grant_type": "authorization_code", **form}, ask=ask)
        return tokens_of(body, now_ms)
    wanted = {
        "code": form["code"],
        "code_verifier": form["code_verifier"],
        "code_challenge_method": "S256",
    }
    reply = await _asked(JsonRequest(url=facts.token_url, method="POST", body=wanted), ask)
    key = reply.body.get("key")
    if reply.status != HTTPStatus.OK or not isinstance(key, str) or not key:
        raise _refused(facts.token_url, reply)
    return StoredKey(key=key)


async def asked_for_tokens(
    facts: OAuthFacts, form: Mapping[str, str], *, ask: SendJson = request_json
) -> JsonObject:
    """Ask a token address for tokens.

    Raises:
        LoginFailed: It refuses.
    """
    client = {"client_id": facts.client_id} if facts.client_id else {}
    question = JsonRequest(url=facts.token_url, method="POST", form={**client, **form})
    reply = await _asked(question, ask)
    if reply.status != HTTPStatus.OK or not isinstance(reply.body.get("access_token"), str):
        raise _refused(facts.token_url, reply)
    return reply.body


def tokens_of(body: JsonObject, now_ms: int, *, refresh: str = "") -> StoredTokens:
    """Read the tokens of an answer."""
    access, again, lives_s = (body.get(k) for k in ("access_token", "refresh_token", "expires_in"))
    lives_ms = (
        int(lives_s * MS) if isinstance(lives_s, int | float) and 0 < lives_s < LONGEST_S else 0
    )
    return StoredTokens(
        access=access if isinstance(access, str) else "",
        refresh=again if isinstance(again, str) else refresh,
        expires_ms=now_ms + lives_ms if lives_ms else 0,
    )


async def _asked(question: JsonRequest, ask: SendJson) -> JsonResponse:
    try:
        return await ask(question)
    except JsonRequestFailed as error:
        raise LoginFailed(str(error)) from None


def _refused(url: str, reply: JsonResponse) -> LoginFailed:
    """Return what the provider said, but only from the fields that are made for people."""
    inner = reply.body.get("error")
    said = next(
        (
            text
            for text in (reply.body.get("error_description"), reply.body.get("message"), inner)
            if isinstance(text, str) and text
        ),
        "no reason given",
    )
    return LoginFailed(f"{urlsplit(url).netloc} answered {reply.status}: {said[:SAID_LENGTH]}")
