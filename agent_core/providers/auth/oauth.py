"""OAuth: sign-in, tokens and their renewal."""

import json as stdlib_json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

import anyio
import msgspec

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.redaction.redactor import names_a_value
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers.http.client import (
    JsonRequest,
    JsonRequestFailed,
    JsonResponse,
    SendJson,
    request_json,
)

LATEST_MS = 1e17
"""Upper bound of an expiry time, in milliseconds since 1970; it also excludes infinities."""


class StoredKey(SecretValue, frozen=True, kw_only=True):
    """A key, as a user may write one: literal, a variable, a command. Its `repr` does not show it."""

    hidden: ClassVar = frozenset({"key", "env"})

    key: str
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Values that go before those of the environment, for this provider."""


class StoredTokens(SecretValue, frozen=True, kw_only=True):
    """Tokens of an OAuth login; the `repr` does not show them."""

    hidden: ClassVar = frozenset({"access", "refresh"})

    access: str
    refresh: str = ""
    expires_ms: int = 0
    """When `access` ends, in milliseconds since 1970; 0: never."""

    def lives_until(self, moment_ms: int) -> bool:
        """Return whether it can still be used then."""
        return self.expires_ms == 0 or self.expires_ms > moment_ms


class InKeyring(Value, frozen=True, kw_only=True):
    """The key lies in the system's keyring."""


AuthEntry = StoredKey | StoredTokens | InKeyring


def secrets_of(entry: AuthEntry) -> tuple[str, ...]:
    """Return what must not show of an entry; a key that is only named there is found when it is used."""
    match entry:
        case StoredKey(key=key, env=env):
            named = key.startswith(("$", "!")) or key.isupper()
            return (
                *(() if named else (key,)),
                *(env[name] for name in env if names_a_value(name, env[name])),
            )
        case StoredTokens(access=access, refresh=refresh):
            return (access, refresh)
        case InKeyring():
            return ()


class AuthFile(SecretValue, frozen=True, kw_only=True):
    """The content of the file: entries that are understood, and everything as it stands, so that nothing is lost."""

    hidden: ClassVar = frozenset({"raw"})

    entries: Mapping[str, AuthEntry] = msgspec.field(default_factory=dict[str, AuthEntry])
    raw: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    problems: tuple[ConfigError, ...] = ()
    broken: bool = False
    """It is no JSON object: nothing may be written to it, or what the user meant would be lost."""


def read_auth(text: str, *, path: Path) -> AuthFile:
    """Read the text; an entry that is wrong is told and left out. No problem quotes what the file holds."""
    if not text.strip():
        return AuthFile()
    try:
        value: JsonValue = stdlib_json.loads(text)  # pyright: ignore[reportAny] - a parser gives Any
    except stdlib_json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}:{error.colno}: not JSON ({error.msg}); no key of it is used until it is repaired"
        problem = ConfigError(message, path=path, line=error.lineno, column=error.colno)
        return AuthFile(problems=(problem,), broken=True)
    except RecursionError:
        problem = ConfigError(f"{path} is nested too deeply; no key of it is used", path=path)
        return AuthFile(problems=(problem,), broken=True)
    if not json.is_object(value):
        problem = ConfigError(
            f"{path}:1:1: must hold a JSON object: {{ … }}", path=path, line=1, column=1
        )
        return AuthFile(problems=(problem,), broken=True)
    entries: dict[str, AuthEntry] = {}
    problems: list[ConfigError] = []
    for provider, given in value.items():
        found = _entry(given)
        if isinstance(found, str):
            from agent_core.providers.json_positions import place_of  # noqa: PLC0415 - at first use

            line, column = place_of(text, (provider,))
            message = f"{path}:{line}:{column}: {provider}: {found}; sign in again (tiller auth login {provider})"
            problems.append(ConfigError(message, path=path, line=line, column=column))
        else:
            entries[provider] = found
    return AuthFile(entries=entries, raw=value, problems=tuple(problems))


def with_entry(file: AuthFile, provider: str, entry: AuthEntry | None) -> JsonObject:
    """Return what to write: everything that was there, with one entry put in, replaced or (None) taken out."""
    raw = {name: value for name, value in file.raw.items() if name != provider}
    if entry is not None:
        raw[provider] = _written(entry)
    return raw


def _entry(given: JsonValue) -> AuthEntry | str:
    if not json.is_object(given):
        return "must be an object"
    match given.get("type"):
        case "api_key":
            return _stored_key(given)
        case "oauth":
            return _stored_tokens(given)
        case "keyring":
            return InKeyring()
        case _:
            return 'its type must be "api_key", "oauth" or "keyring"'


def _stored_key(given: JsonObject) -> StoredKey | str:
    key, env = given.get("key"), json.as_object(given.get("env"))
    if not isinstance(key, str) or not key.strip():
        return "has no key"
    variables = {name: word for name, word in env.items() if isinstance(word, str)}
    return StoredKey(key=key, env=variables)


def _stored_tokens(given: JsonObject) -> StoredTokens | str:
    access, refresh, expires = (given.get(name) for name in ("access", "refresh", "expires"))
    if not isinstance(access, str) or not isinstance(refresh, str):
        return "has no access or refresh token"
    has_expiry = isinstance(expires, int | float) and 0 <= expires < LATEST_MS
    until = int(expires) if has_expiry and isinstance(expires, int | float) else 0
    return StoredTokens(access=access, refresh=refresh, expires_ms=until)


def _written(entry: AuthEntry) -> JsonObject:
    match entry:
        case StoredKey(key=key, env=env):
            return {"type": "api_key", "key": key, **({"env": dict(env)} if env else {})}
        case StoredTokens(access=access, refresh=refresh, expires_ms=expires):
            return {"type": "oauth", "access": access, "refresh": refresh, "expires": expires}
        case InKeyring():
            return {"type": "keyring"}


OAuthStyle = Literal["standard", "key"]


class PkceFacts(Value, frozen=True, kw_only=True):
    """Log in with a browser on this machine, which comes back to a port of ours."""

    authorize_url: str
    token_url: str
    client_id: str = ""
    scope: str = ""
    callback_port: int = 0
    """0: any that is free; otherwise the provider takes no other."""
    style: OAuthStyle = "standard"
    """`key`: the answer is not a token but a key that does not expire."""


class DeviceFacts(Value, frozen=True, kw_only=True):
    """Log in with a browser anywhere, by typing in a code."""

    device_url: str
    token_url: str
    client_id: str
    scope: str = ""
    exchange_url: str = ""
    """Where the token is exchanged for the short-lived one that the API takes; empty: it takes the token itself."""
    exchange_headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Headers that identify the program to that address; no secrets."""


ShowLogin = Callable[[str, str], None]
"""Shows the user an address to open, and the code to be typed in there; empty: none is needed."""


class LoginFunctions(Value, frozen=True, kw_only=True):
    """Log in by functions of an extension, for providers whose login is none of the standard ones."""

    login: Callable[[ShowLogin], Awaitable[StoredTokens]]
    """Waits until the user has logged in, at most 15 minutes; a failure is an exception whose text the user sees."""
    refresh: Callable[[StoredTokens], Awaitable[StoredTokens]] | None = None
    """Exchanges tokens that end within five minutes, in at most 15 s; None: the user has to log in again."""


OAuthEndpoints = PkceFacts | DeviceFacts
OAuthFacts = OAuthEndpoints | LoginFunctions
FUNCTION_LOGIN_S = 900.0


def way_of(facts: OAuthFacts) -> Literal["browser", "code"]:
    """Return what the user needs: a browser on this machine, or one anywhere and a code."""
    return "code" if isinstance(facts, DeviceFacts) else "browser"


async def log_in_by_functions(functions: LoginFunctions, *, show: ShowLogin) -> StoredTokens:
    """Wait until the user has logged in by the function of an extension.

    Raises:
        LoginFailed: The function failed, took too long, or returned no tokens.
    """
    with anyio.move_on_after(FUNCTION_LOGIN_S):
        return await _tokens_from(functions.login(show))
    raise LoginFailed("the login was not completed in time; try again")


async def _tokens_from(work: Awaitable[StoredTokens]) -> StoredTokens:
    try:
        tokens = await work
    except Exception as error:
        message = f"the extension could not log in: {error or type(error).__name__}"
        raise LoginFailed(message) from error
    if not isinstance(tokens, StoredTokens):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign code
        message = f"the extension returned a {type(tokens).__name__}; it must return StoredTokens"
        raise LoginFailed(message)
    return tokens


def read_oauth(given: JsonObject) -> OAuthEndpoints:
    """Read an entry of the catalogue.

    Raises:
        ValueError: It is of no known kind.
    """

    def text(key: str) -> str:
        value = given.get(key)
        return value if isinstance(value, str) else ""

    port = given.get("callbackPort")
    match given.get("kind"):
        case "pkce":
            return PkceFacts(
                authorize_url=text("authorizeUrl"),
                token_url=text("tokenUrl"),
                client_id=text("clientId"),
                scope=text("scope"),
                callback_port=port if isinstance(port, int) else 0,
                style="key" if given.get("style") == "key" else "standard",
            )
        case "device":
            return DeviceFacts(
                device_url=text("deviceUrl"),
                token_url=text("tokenUrl"),
                client_id=text("clientId"),
                scope=text("scope"),
                exchange_url=text("exchangeUrl"),
                exchange_headers={
                    name: value
                    for name, value in json.as_object(given.get("exchangeHeaders")).items()
                    if isinstance(value, str)
                },
            )
        case other:
            message = f"{other!r} is no way to log in"
            raise ValueError(message)


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
    if isinstance(facts, LoginFunctions):
        if facts.refresh is None:
            raise LoginFailed("its extension cannot renew it")
        return await _tokens_from(facts.refresh(tokens))
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
    facts: OAuthEndpoints, form: Mapping[str, str], *, ask: SendJson = request_json
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
