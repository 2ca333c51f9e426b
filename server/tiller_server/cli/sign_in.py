"""Signing in to a provider, as `tiller auth` and a conversation do it."""

import getpass
import sys
from collections.abc import Callable
from typing import Final

from agent_core.kernel import SystemClock
from agent_core.kernel.errors import UsageError
from agent_core.providers.auth.key_check import check_key
from agent_core.providers.auth.oauth import (
    AuthEntry,
    LoginFunctions,
    OAuthFacts,
    PkceFacts,
    log_in_by_functions,
)
from agent_core.providers.auth.oauth_browser import log_in_with_browser
from agent_core.providers.auth.oauth_device import DeviceCode, log_in_with_code
from agent_core.providers.catalog.catalogue import ProviderInfo

KEY_LENGTH: Final = 16_384


async def log_in(
    oauth: OAuthFacts,
    *,
    show_url: Callable[[str], None],
    show_code: Callable[[DeviceCode], None],
) -> AuthEntry:
    """Log in with a browser or a code; return what to store.

    Raises:
        LoginFailed: The provider refused, or nobody answered in time.
    """
    clock = SystemClock()
    if isinstance(oauth, PkceFacts):
        return await log_in_with_browser(oauth, show=show_url, clock=clock)
    if isinstance(oauth, LoginFunctions):

        def show(url: str, code: str) -> None:
            if not code:
                show_url(url)
                return
            show_code(DeviceCode(url=url, code=code, secret="", interval_s=0, lives_s=0))

        return await log_in_by_functions(oauth, show=show)
    return await log_in_with_code(oauth, show=show_code, clock=clock)


def checked_key(text: str) -> str:
    """Return the key without surrounding blanks.

    Raises:
        UsageError: It cannot be a key.
    """
    key = text.strip()
    if not key:
        message = "no key was given"
        raise UsageError(message)
    if len(key) > KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
        message = "invalid key: a key is one word of printable ASCII characters"
        raise UsageError(message)
    return key


async def key_test_note(provider: ProviderInfo, key: str) -> str:
    """Ask the provider whether it takes a key; return what to tell the user about it, as a sentence.

    Raises:
        UsageError: The provider refused the key.
    """
    check = await check_key(provider, key)
    if check.status == "refused":
        message = f"{provider.name} refused the key ({check.detail}); nothing was stored. Copy the whole key and try again"
        raise UsageError(message)
    if check.status == "accepted":
        return f"{provider.name} accepted the key."
    return f"The key could not be tested: {check.detail}." if check.detail else ""


def read_key(asked: str, example: str) -> str:
    """Read a key from a pipe, or from a terminal that does not show it; blocks.

    A key is not an argument: other users of the machine see those.

    Args:
        asked: Text that a terminal shows before the input.
        example: End of the error when there is no input.

    Raises:
        UsageError: There is no key, or it cannot be one.
    """
    text = getpass.getpass(asked) if sys.stdin.isatty() else sys.stdin.read(KEY_LENGTH + 1)
    if not text.strip():
        message = f"there is no key on standard input. {example}"
        raise UsageError(message)
    return checked_key(text)


def literal_key(key: str) -> str:
    """Return the stored form of a key: there, `$NAME` would be a variable and `!` a command."""
    escaped = key.replace("$", "$$")
    return f"${escaped}" if escaped.startswith("!") else escaped
