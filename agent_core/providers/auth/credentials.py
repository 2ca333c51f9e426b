"""Credentials of a request: where each comes from, and how it is put into the request."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import ClassVar, Literal, Protocol

import anyio
import anyio.abc
import msgspec
from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.redaction.pattern_search import is_secret_name, looks_secret
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.threads import uncancelled
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers.auth.oauth import (
    AuthEntry,
    InKeyring,
    LoginFailed,
    StoredKey,
    StoredTokens,
)
from agent_core.providers.auth.store import AuthStore, keyring_key
from agent_core.providers.catalog.catalogue import ProviderInfo
from agent_core.providers.catalog.models_file import WrittenAccess


class RequestCredentials(SecretValue, frozen=True, kw_only=True):
    """A key and headers for one request; its `repr` shows neither."""

    hidden: ClassVar = frozenset({"key", "headers"})

    key: str | None = None
    """None: the server asks for none."""
    bearer: bool = False
    """The key goes into `Authorization: Bearer` also where the API has a header of its own."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """These win over what an adapter would send."""
    source: str | None = None
    """Where the key comes from, in words for the user: a variable or file, never the key."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that must not show in an error."""
        return tuple(value for value in (self.key, *self.headers.values()) if value)

    @property
    def redacted_values(self) -> tuple[str, ...]:
        """Values that must not be shown anywhere: the key and the secret headers."""
        headers = (
            value
            for name, value in self.headers.items()
            if is_secret_name(name) or looks_secret(value)
        )
        return (*((self.key,) if self.key else ()), *headers)


class Authenticator(Protocol):
    """The way in to one provider."""

    async def credentials(self) -> RequestCredentials:
        """Find the key and headers for a request.

        Raises:
            ProviderError: Of reason `auth`: there is none; the text names what to set.
        """
        ...


def with_headers(base: Mapping[str, str], *overrides: Mapping[str, str]) -> dict[str, str]:
    """Lay headers over one another; their names have no case, and the later win."""
    merged = {name.lower(): value for name, value in base.items()}
    for override in overrides:
        merged.update({name.lower(): value for name, value in override.items()})
    return merged


COMMAND_S = 10.0
CLOSE_S = 1.0
OUTPUT_BYTES = 64 * 1024
COMMAND_MARK = "!"
KEYLESS = "none is needed"
"""Source of the key of a provider that takes none."""

_TOKEN = re.compile(r"\$(?:([$!])|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


class ValueMissing(Exception):
    """A value cannot be found; the text says what to do and holds no secret."""


def missing_variables(written: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Name the variables that a written value asks for and that are not set, or empty."""
    if written.startswith(COMMAND_MARK):
        return ()
    names = (found.group(2) or found.group(3) for found in _TOKEN.finditer(written))
    return tuple(str(name) for name in names if name and not environment.get(str(name)))


def filled(written: str, environment: Mapping[str, str]) -> str | None:
    """Substitute environment variables in a text; None when one of them is not set or is empty."""
    if missing_variables(written, environment):
        return None
    return _TOKEN.sub(lambda found: _replaced(found, environment), written)


async def found_value(written: str, environment: Mapping[str, str]) -> str:
    """Find what a written value stands for.

    `$NAME` and `${NAME}` are variables, `$$` and `$!` the signs themselves; a leading `!` runs the rest as a
    shell command, whose output is the value.

    Raises:
        ValueMissing: A variable is not set, or the command failed, said nothing or took too long.
    """
    if written.startswith(COMMAND_MARK):
        return await _output(written.removeprefix(COMMAND_MARK), environment)
    value = filled(written, environment)
    if value is None:
        missing = missing_variables(written, environment)
        message = f"set the environment variable {' and '.join(missing)}"
        raise ValueMissing(message)
    return value


def _replaced(found: re.Match[str], environment: Mapping[str, str]) -> str:
    sign, braced, bare = (str(group or "") for group in found.groups())
    return sign or environment[braced or bare]


async def _output(command: str, environment: Mapping[str, str]) -> str:
    """Run a command; its text may hold a secret, so errors do not quote it."""
    # Its folders of programs may be looked at on the disk.
    env = await to_thread.run_sync(dict, environment)
    try:
        process = await uncancelled(
            anyio.open_process(
                command,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=env,
                start_new_session=True,
            )
        )
    except OSError as error:
        message = f"the command that gives the key cannot be started ({error.strerror})"
        raise ValueMissing(message) from None
    text = ""
    ended = False
    try:
        with anyio.move_on_after(COMMAND_S):
            text = await _read(process)
            ended = await process.wait() == 0
    finally:
        with anyio.move_on_after(CLOSE_S, shield=True):
            _kill(process)
            await process.aclose()
    if not ended or not text.strip():
        message = f"the command that gives the key gave none within {COMMAND_S:g} s; run it by hand to see why"
        raise ValueMissing(message)
    return text.strip()


async def _read(process: anyio.abc.Process) -> str:
    output = bytearray()
    if process.stdout is not None:
        async for chunk in process.stdout:
            output += chunk
            if len(output) > OUTPUT_BYTES:
                return ""
    return output.decode("utf-8", "replace")


def _kill(process: anyio.abc.Process) -> None:
    """End what the command left behind: it has a process group of its own."""
    if sys.platform == "win32":
        if process.returncode is None:
            process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


AMBIENT_NAMED = 2
"""Cloud accounts have many variables; these are enough to know what is meant."""


class CredentialSources(SecretValue, frozen=True, kw_only=True):
    """Where keys are looked for, from the strongest to the weakest; no `repr` shows one."""

    hidden: ClassVar = frozenset({"given", "environment"})

    given: str | None = None
    """A key for this process alone."""
    stored: AuthStore | None = None
    written: WrittenAccess = msgspec.field(default_factory=WrittenAccess)
    environment: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    redactor: Redactor | None = None
    """Learns of every key that is used."""


class ProviderCredentials:
    """Credentials of one provider: the key of this run, else auth.json, models.json, the environment, the keyring.

    With an entry in auth.json, sources after it are not tried, also when the entry does not work: a login that has
    ended must not cause another account to be billed.
    """

    def __init__(self, provider: ProviderInfo, places: CredentialSources) -> None:
        self._provider = provider
        self._places = places

    def source(self) -> str | None:
        """Return where the key comes from, without the key; None: nowhere, as far as can be told beforehand."""
        places, entry, name = self._places, self._entry(), self._named() or self._ambient()
        ways = (
            (places.given is not None, "given for this run"),
            (isinstance(entry, StoredKey), "auth.json"),
            (isinstance(entry, StoredTokens), "auth.json (login)"),
            (places.written.api_key is not None, "models.json"),
            (name is not None, f"environment ({name})"),
            (isinstance(entry, InKeyring), "keyring"),
            (self._provider.keyless, KEYLESS),
        )
        return next((what for holds, what in ways if holds), None)

    def has_key(self) -> bool:
        """Return whether the user gave a key for this provider and no other purpose, as far as can be told."""
        places = self._places
        found = (places.given, self._entry(), places.written.api_key, self._named())
        return any(each is not None for each in found)

    def what_to_set(self) -> str | None:
        """Return what the user must do to get in; None: nothing is missing as far as can be told beforehand."""
        places = self._places
        entry = self._entry()
        if isinstance(entry, StoredKey):
            return _unset(entry.key, {**places.environment, **entry.env})
        if places.given is None and entry is None and places.written.api_key is not None:
            return _unset(places.written.api_key, places.environment)
        return None if self.source() is not None else self._advice()

    def variables(self) -> frozenset[str]:
        """Return the variables that a key or header may come from, whether they are set or not.

        The variables that the provider's own library reads (AWS, Google) are not included: the user's commands need
        them too.
        """
        written = self._places.written
        values = (
            written.api_key or "",
            *written.headers.values(),
            *(value for headers in written.model_headers.values() for value in headers.values()),
        )
        named = (name for value in values for name in missing_variables(value, {}))
        return frozenset((*self._provider.key_variables, *self._provider.bearer_variables, *named))

    def for_model(self, model: str) -> Authenticator:
        """Return the way in for one model, which may have headers of its own."""
        return _ModelAuthenticator(self, model)

    async def credentials(self, model: str) -> RequestCredentials:
        """Find the key and headers, anew each time.

        Raises:
            ProviderError: Of reason `auth`: something is missing; the text names what to set.
        """
        written = self._places.written
        headers = with_headers(written.headers, written.model_headers.get(model, {}))
        try:
            found = {
                name: await found_value(value, self._places.environment)
                for name, value in headers.items()
            }
            key, bearer = await self._key()
        except (ValueMissing, LoginFailed) as error:
            raise self._refusal(str(error)) from None
        for value in (key or "", *found.values()):
            if not value.isascii() or not value.isprintable():
                raise self._refusal("its key or a header has signs that HTTP cannot carry")
        grant = RequestCredentials(key=key, bearer=bearer, headers=found, source=self.source())
        if self._places.redactor is not None:
            self._places.redactor.hold(*grant.redacted_values)
        return grant

    async def _key(self) -> tuple[str | None, bool]:
        places = self._places
        as_bearer = places.written.auth_header
        if places.given is not None:
            return places.given, as_bearer
        stored = await self._stored_key(as_bearer=as_bearer)
        if stored is not None:
            return stored
        if places.written.api_key is not None:
            return await found_value(places.written.api_key, places.environment), as_bearer
        if name := self._named():
            is_token = name in self._provider.bearer_variables
            return places.environment[name].strip(), as_bearer or is_token
        is_open = self._ambient() is not None or self._provider.keyless
        key = None if is_open else await keyring_key(self._provider.id)
        if key is None and not is_open:
            raise ValueMissing(self._advice())
        return key, as_bearer and key is not None

    async def _stored_key(self, *, as_bearer: bool) -> tuple[str, bool] | None:
        places, provider = self._places, self._provider
        if places.stored is None:
            return None
        entry = await places.stored.fresh(provider.id, provider.oauth)
        if isinstance(entry, StoredTokens):
            return entry.access, True
        if isinstance(entry, StoredKey):
            key = await found_value(entry.key, {**places.environment, **entry.env})
            # A provider that knows only tokens gets a stored key as one.
            return key, as_bearer or bool(provider.bearer_variables and not provider.key_variables)
        return None

    def _entry(self) -> AuthEntry | None:
        places = self._places
        if places.given is not None or places.stored is None:
            return None
        return places.stored.entry(self._provider.id)

    def _named(self) -> str | None:
        """Return the variable that holds a key."""
        names = (*self._provider.key_variables, *self._provider.bearer_variables)
        return next(
            (name for name in names if self._places.environment.get(name, "").strip()), None
        )

    def _ambient(self) -> str | None:
        """Return a variable by which the provider's own library finds credentials."""
        names = self._provider.ambient_variables
        return next((name for name in names if self._places.environment.get(name)), None)

    def _advice(self) -> str:
        provider = self._provider
        ambient = provider.ambient_variables[:AMBIENT_NAMED]
        names = (*provider.key_variables, *provider.bearer_variables, *ambient)
        ways = [f"sign in (tiller auth login {provider.id})"]
        if names:
            ways.insert(0, f"set the environment variable {' or '.join(names)}")
        return f"{', '.join(ways)}, or set apiKey of {provider.id!r} in models.json"

    def _refusal(self, why: str) -> ProviderError:
        provider = self._provider.id
        message = f"{provider} cannot be asked: {why}"
        return ProviderError(message, reason="auth", provider=provider, before_first_byte=True)


def _unset(written: str, environment: Mapping[str, str]) -> str | None:
    missing = missing_variables(written, environment)
    return f"set the environment variable {' and '.join(missing)}" if missing else None


class _ModelAuthenticator:
    """The way in for one model."""

    def __init__(self, credentials: ProviderCredentials, model: str) -> None:
        self._credentials = credentials
        self._model = model

    async def credentials(self) -> RequestCredentials:
        """Find the key and headers for a request."""
        return await self._credentials.credentials(self._model)


ADDRESS = "baseUrl"
COMPAT = "compat."


def in_environment(provider: ProviderInfo, environment: Mapping[str, str]) -> ProviderInfo:
    """Return a provider, and each of its models, as the environment says; of two values for one thing the first counts."""
    found: dict[str, str] = {}
    for target, template in provider.environment:
        value = filled(template, environment)
        if value and target not in found:
            found[target] = value
    if not found:
        return provider
    base_url = found.pop(ADDRESS, "") or provider.base_url
    more: dict[str, JsonValue] = {
        target.removeprefix(COMPAT): value for target, value in found.items()
    }
    return replace(
        provider,
        base_url=base_url,
        compat={**provider.compat, **more},
        models=tuple(
            replace(model, base_url=base_url, compat={**model.compat, **more})
            for model in provider.models
        ),
    )


class ProviderState(Value, frozen=True, kw_only=True):
    """Holds no key."""

    provider: ProviderInfo
    auth: Literal["ok", "missing"]
    source: str | None
    """Where its key comes from: a variable, `keyring`, auth.json; None: it has none."""
    advice: str | None
    """The step needed before the provider can be used; None: none."""


def state_of(provider: ProviderInfo, credentials: ProviderCredentials) -> ProviderState:
    """Look how a provider stands now."""
    advice = credentials.what_to_set()
    return ProviderState(
        provider=provider,
        auth="ok" if advice is None else "missing",
        source=credentials.source(),
        advice=advice,
    )
