"""Entries of auth.json, as values and as text. Pure."""

import json as stdlib_json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.redaction.redactor import names_a_value
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers.json_positions import place_of

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
