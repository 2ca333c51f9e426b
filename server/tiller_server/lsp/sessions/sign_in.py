"""Signs a user in to providers from inside an editor: by a browser, or by a code that is typed in one."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import anyio

from agent_core.kernel import Clock
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.providers.auth.entries import Entry
from agent_core.providers.auth.oauth import OAuthFacts, PkceFacts
from agent_core.providers.auth.oauth_browser import LOGIN_S, log_in_with_browser
from agent_core.providers.auth.oauth_device import DeviceCode, log_in_with_code
from agent_core.providers.auth.store import AuthStore
from agent_core.providers.catalog.provider_state import ProviderState

Way: TypeAlias = Literal["login", "key"]


class Door(Value, frozen=True, kw_only=True):
    """A provider, and how one gets in."""

    provider: str
    name: str
    is_open: bool
    oauth: OAuthFacts | None
    """How one logs in; None: with a key, which must be stored or be in the environment and is nothing for a dialog."""
    variables: tuple[str, ...]
    """Of the environment, that may hold the key."""

    @property
    def way(self) -> Way:
        """How one gets in."""
        return "key" if self.oauth is None else "login"


class Page(Value, frozen=True, kw_only=True):
    """A page that the user must open to log in."""

    url: str
    code: str | None = None
    """To be typed in there."""
    ends_ms: int
    """When it is too late, in milliseconds since 1970."""


Show: TypeAlias = Callable[[Page], None]


def door_of(one: ProviderState) -> Door:
    """Return how one gets in. Pure."""
    return Door(
        provider=one.facts.id,
        name=one.facts.name,
        is_open=one.auth == "ok",
        oauth=one.facts.oauth,
        variables=(*one.facts.key_variables, *one.facts.bearer_variables),
    )


def doors_of(providers: Iterable[ProviderState]) -> Mapping[str, Door]:
    """List those that want something, by id: those that one logs in to first, those that are open last. Pure."""
    found = [door_of(one) for one in providers if not one.facts.keyless]
    ordered = sorted(found, key=lambda one: (one.is_open, one.way == "key"))
    return {one.provider: one for one in ordered}


class SigningIn:
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
        self._pages: dict[str, Page] = {}
        self.beginning = anyio.Lock()
        """Held by whoever begins a login in the background until its page is known: a second one finds that."""

    def page(self, provider: str) -> Page | None:
        """Return the page of a login that waits for its user; None: none waits."""
        return self._pages.get(provider)

    async def log_in(self, door: Door, *, show: Show) -> None:
        """Wait until the user has logged in, and store the credentials; does nothing for a provider that needs a key.

        Args:
            door: Whose login it is.
            show: Receives the page that the user must open.

        Raises:
            LoginFailed: The user or the provider refused, the user did not come in time, or the port is in use.
            ConfigError: The credentials could not be stored.
        """
        if door.oauth is None:
            return

        def shown(page: Page) -> None:
            self._pages[door.provider] = page
            show(page)

        try:
            await self._store.put(door.provider, await self._entry(door.oauth, shown))
        finally:
            _ = self._pages.pop(door.provider, None)

    async def log_out(self, provider: str) -> bool:
        """Forget what is stored for a provider; False: nothing was.

        Raises:
            ConfigError: It could not be taken out.
        """
        return await self._store.remove(provider)

    def _entry(self, oauth: OAuthFacts, show: Show) -> Awaitable[Entry]:
        if isinstance(oauth, PkceFacts):
            return log_in_with_browser(
                oauth, show=lambda url: show(self._page(url, lives_s=LOGIN_S)), clock=self._clock
            )

        def show_code(device: DeviceCode) -> None:
            show(self._page(device.url, code=device.code, lives_s=device.lives_s))

        return log_in_with_code(oauth, show=show_code, clock=self._clock)

    def _page(self, url: str, *, code: str | None = None, lives_s: float) -> Page:
        return Page(url=url, code=code, ends_ms=self._clock.now_ms() + int(lives_s * 1000))
