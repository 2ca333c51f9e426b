"""Signs a user in to providers from inside an editor: by a browser, or by a code that is typed in one."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import anyio

from agent_core.kernel import Clock
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.auth.oauth import (
    FUNCTION_LOGIN_S,
    AuthEntry,
    LoginFunctions,
    OAuthFacts,
    PkceFacts,
    log_in_by_functions,
)
from agent_core.providers.auth.oauth_browser import LOGIN_S, log_in_with_browser
from agent_core.providers.auth.oauth_device import DeviceCode, log_in_with_code
from agent_core.providers.auth.store import AuthStore

SignInKind: TypeAlias = Literal["login", "key"]


class SignInMethod(Value, frozen=True, kw_only=True):
    """A provider, and how one gets in."""

    provider: str
    name: str
    is_open: bool
    oauth: OAuthFacts | None
    """How one logs in; None: with a key, which must be stored or be in the environment and is nothing for a dialog."""
    variables: tuple[str, ...]
    """Of the environment, that may hold the key."""

    @property
    def way(self) -> SignInKind:
        """How one gets in."""
        return "key" if self.oauth is None else "login"


class VerificationPage(Value, frozen=True, kw_only=True):
    """A page that the user must open to log in."""

    url: str
    code: str | None = None
    """To be typed in there."""
    ends_ms: int
    """When it is too late, in milliseconds since 1970."""


ShowVerificationPage: TypeAlias = Callable[[VerificationPage], None]


def sign_in_method(one: ProviderState) -> SignInMethod:
    """Return how one gets in. Pure."""
    return SignInMethod(
        provider=one.provider.id,
        name=one.provider.name,
        is_open=one.auth == "ok",
        oauth=one.provider.oauth,
        variables=(*one.provider.key_variables, *one.provider.bearer_variables),
    )


def sign_in_methods(providers: Iterable[ProviderState]) -> Mapping[str, SignInMethod]:
    """List those that want something, by id: those that one logs in to first, those that are open last. Pure."""
    found = [sign_in_method(one) for one in providers if not one.provider.keyless]
    ordered = sorted(found, key=lambda one: (one.is_open, one.way == "key"))
    return {one.provider: one for one in ordered}


class SignInFlows:
    """Credentials of one user, and the logins that create them."""

    def __init__(self, path: Path, *, clock: Clock, redactor: Redactor) -> None:
        """Begin without reading anything.

        Args:
            path: The user's auth.json.
            clock: Clock for the expiry of tokens.
            redactor: Learns the stored secrets.
        """
        self._store = AuthStore(path, clock=clock, redactor=redactor)
        self._clock = clock
        self._pages: dict[str, VerificationPage] = {}
        self.beginning = anyio.Lock()
        """Held by whoever begins a login in the background until its page is known: a second one finds that."""

    def page(self, provider: str) -> VerificationPage | None:
        """Return the page of a login that waits for its user; None: none waits."""
        return self._pages.get(provider)

    async def log_in(self, method: SignInMethod, *, show: ShowVerificationPage) -> None:
        """Wait until the user has logged in, and store the credentials; does nothing for a provider that needs a key.

        Args:
            method: Whose login it is.
            show: Receives the page that the user must open.

        Raises:
            LoginFailed: The user or the provider refused, the user did not come in time, or the port is in use.
            ConfigError: The credentials could not be stored.
        """
        if method.oauth is None:
            return

        def shown(page: VerificationPage) -> None:
            self._pages[method.provider] = page
            show(page)

        try:
            await self._store.put(method.provider, await self._entry(method.oauth, shown))
        finally:
            _ = self._pages.pop(method.provider, None)

    async def log_out(self, provider: str) -> bool:
        """Forget what is stored for a provider; False: nothing was.

        Raises:
            ConfigError: It could not be taken out.
        """
        return await self._store.remove(provider)

    def _entry(self, oauth: OAuthFacts, show: ShowVerificationPage) -> Awaitable[AuthEntry]:
        if isinstance(oauth, PkceFacts):
            return log_in_with_browser(
                oauth, show=lambda url: show(self._page(url, lives_s=LOGIN_S)), clock=self._clock
            )

        if isinstance(oauth, LoginFunctions):
            return log_in_by_functions(
                oauth,
                show=lambda url, code: show(
                    self._page(url, code=code or None, lives_s=FUNCTION_LOGIN_S)
                ),
            )

        def show_code(device: DeviceCode) -> None:
            show(self._page(device.url, code=device.code, lives_s=device.lives_s))

        return log_in_with_code(oauth, show=show_code, clock=self._clock)

    def _page(self, url: str, *, code: str | None = None, lives_s: float) -> VerificationPage:
        return VerificationPage(
            url=url, code=code, ends_ms=self._clock.now_ms() + int(lives_s * 1000)
        )
