"""Finds the key and headers of a provider where the user has put them."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from agent_core.kernel.errors import ProviderError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import SecretValue
from agent_core.providers.auth.authenticator import Authenticator, RequestCredentials, with_headers
from agent_core.providers.auth.entries import AuthEntry, InKeyring, StoredKey, StoredTokens
from agent_core.providers.auth.keyring_store import keyring_key
from agent_core.providers.auth.oauth_tokens import LoginFailed
from agent_core.providers.auth.setting_values import ValueMissing, found_value, missing_variables
from agent_core.providers.auth.store import AuthStore
from agent_core.providers.catalog.catalogue import ProviderInfo
from agent_core.providers.catalog.models_file import WrittenAccess

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
            (self._provider.keyless, "none is needed"),
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
