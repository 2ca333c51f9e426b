"""The key and headers of a provider: where they come from, and whether they are there."""

from collections.abc import Mapping

from agent_core.kernel.errors import ProviderError
from agent_core.providers.access import Access, Grant, with_headers
from agent_core.providers.catalogue import ProviderFacts
from agent_core.providers.models_file import WrittenAccess
from agent_core.providers.setting_values import ValueMissing, found_value, missing_variables


class Credentials:
    """What opens one provider. Its key is the one in models.json, else in the environment."""

    def __init__(
        self, provider: ProviderFacts, *, written: WrittenAccess, environment: Mapping[str, str]
    ) -> None:
        self._provider = provider
        self._written = written
        self._environment = environment

    def what_to_set(self) -> str | None:
        """Say what the user must do to get in; None: nothing is missing as far as can be told beforehand."""
        if self._provider.keyless:
            return None
        written = self._written.api_key
        if written is not None:
            missing = missing_variables(written, self._environment)
            return f"set the environment variable {' and '.join(missing)}" if missing else None
        names = (*self._provider.key_variables, *self._provider.bearer_variables)
        if any(self._environment.get(name) for name in names):
            return None
        also = f"the environment variable {' or '.join(names)}, or " if names else ""
        return f"set {also}apiKey of {self._provider.id!r} in models.json"

    def variables(self) -> frozenset[str]:
        """Name the variables that a key or header may be taken from, whether they are set or not."""
        written = (
            self._written.api_key or "",
            *self._written.headers.values(),
            *(
                value
                for headers in self._written.model_headers.values()
                for value in headers.values()
            ),
        )
        named = (name for value in written for name in missing_variables(value, {}))
        return frozenset((*self._provider.key_variables, *self._provider.bearer_variables, *named))

    def for_model(self, model: str) -> Access:
        """Give the way in for one model, which may have headers of its own."""
        return _ModelAccess(self, model)

    async def grant(self, model: str) -> Grant:
        """Find the key and headers, anew each time.

        Raises:
            ProviderError: Of reason `auth`: something is missing; the text names what to set.
        """
        headers = with_headers(self._written.headers, self._written.model_headers.get(model, {}))
        try:
            found = {
                name: await found_value(written, self._environment)
                for name, written in headers.items()
            }
            key, bearer = await self._key()
        except ValueMissing as error:
            raise self._refusal(str(error)) from None
        for value in (key or "", *found.values()):
            if not value.isascii() or not value.isprintable():
                raise self._refusal("its key or a header has signs that HTTP cannot carry")
        return Grant(key=key, bearer=bearer, headers=found)

    async def _key(self) -> tuple[str | None, bool]:
        written = self._written.api_key
        if written is not None:
            key = await found_value(written, self._environment)
            return key, self._written.auth_header
        for name in self._provider.key_variables:
            if key := self._environment.get(name, "").strip():
                return key, self._written.auth_header
        for name in self._provider.bearer_variables:
            if key := self._environment.get(name, "").strip():
                return key, True
        if self._provider.keyless:
            return None, False
        raise ValueMissing(self.what_to_set() or "it has no key")

    def _refusal(self, why: str) -> ProviderError:
        provider = self._provider.id
        message = f"{provider} cannot be asked: {why}"
        return ProviderError(message, reason="auth", provider=provider, before_first_byte=True)


class _ModelAccess:
    """The way in for one model."""

    def __init__(self, credentials: Credentials, model: str) -> None:
        self._credentials = credentials
        self._model = model

    async def grant(self) -> Grant:
        """Find the key and headers for a request."""
        return await self._credentials.grant(self._model)
