"""Signs a user in to providers from inside an editor: by a browser, or by a code that is typed in one."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_core.kernel import Clock
from agent_core.kernel.records import dataclass
from agent_core.kernel.redaction import Redactor
from agent_core.providers.auth_entries import Entry
from agent_core.providers.auth_store import AuthStore
from agent_core.providers.oauth_browser import log_in_with_browser
from agent_core.providers.oauth_device import DeviceCode, log_in_with_code
from agent_core.providers.oauth_facts import OAuthFacts, PkceFacts
from agent_core.providers.registry import ModelRegistry

Way: TypeAlias = Literal["login", "key"]
NEVER: Final = frozenset({"embedded"})
"""What nobody signs in to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A provider, and how one gets in."""

    provider: str
    name: str
    is_open: bool
    way: Way
    """`key`: a key must be stored or be in the environment, which is nothing for a dialog."""
    variables: tuple[str, ...]
    """Of the environment, that may hold the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that the user must open to log in."""

    url: str
    code: str | None = None
    """To be typed in there."""


class SigningIn:
    """The doors of one user."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        redactor: Redactor,
        registry: Callable[[Mapping[str, str]], Awaitable[ModelRegistry]],
    ) -> None:
        """Begin without reading anything.

        Args:
            path: The user's auth.json.
            clock: Time, to say when tokens end.
            redactor: Learns of what is stored.
            registry: Gives the providers for an environment, as they are now.
        """
        self._store = AuthStore(path, clock=clock, redactor=redactor)
        self._clock = clock
        self._registry = registry

    async def doors(self, env: Mapping[str, str]) -> tuple[Door, ...]:
        """List the providers: those that one logs in to first, those that are open last."""
        registry = await self._registry(env)
        found = [
            Door(
                provider=one.id,
                name=one.name,
                is_open=registry.auth(one.id) == "ok",
                way="key" if one.oauth is None else "login",
                variables=(*one.key_variables, *one.bearer_variables),
            )
            for one in registry.providers()
            if one.api not in NEVER and not one.keyless
        ]
        return tuple(sorted(found, key=lambda one: (one.is_open, one.way == "key")))

    async def log_in(
        self, provider: str, env: Mapping[str, str], *, show: Callable[[Page], None]
    ) -> None:
        """Wait until the user has logged in, and store what opens the provider.

        Args:
            provider: Its id; one whose way is `login`.
            env: The environment of the user.
            show: Takes the page that the user must open.

        Raises:
            LoginFailed: The user or the provider refused, nobody came, or the port is taken.
            ConfigError: What opens it could not be stored.
        """
        registry = await self._registry(env)
        facts = next(one for one in registry.providers() if one.id == provider)
        if facts.oauth is not None:
            await self._store.put(provider, await self._entry(facts.oauth, show))

    async def _entry(self, oauth: OAuthFacts, show: Callable[[Page], None]) -> Entry:
        if isinstance(oauth, PkceFacts):
            return await log_in_with_browser(
                oauth, show=lambda url: show(Page(url=url)), clock=self._clock
            )

        def show_code(device: DeviceCode) -> None:
            show(Page(url=device.url, code=device.code))

        return await log_in_with_code(oauth, show=show_code, clock=self._clock)
