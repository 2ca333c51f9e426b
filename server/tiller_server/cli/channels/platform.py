"""A chat platform as its command needs it, with its settings and secrets."""

import os
import pickle
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from agent_core.channels.messaging.port import MessagingChannel
from agent_core.kernel import Clock
from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value
from tiller_server.channels.bridge.config import BridgeConfig
from tiller_server.cli.channels.chat_app import ChatApp, ChatAppName

OpenChannel = Callable[[Mapping[str, str], Clock], AbstractAsyncContextManager[MessagingChannel]]
"""Opens the app of the settings with its secrets, by their names; raises a DeliveryError when it is refused."""
Probe = Callable[[Mapping[str, str], Clock], Awaitable[str]]
"""Asks the platform for a connection with the secrets; returns why there is none, empty if there is one."""


class ChatSecret(Value, frozen=True, kw_only=True):
    """A secret of an app."""

    name: str
    """Name in the keyring and for people, such as `app token`."""
    variable: str
    """Variable of the environment that holds it."""


class ChatPlatform(Value, frozen=True, kw_only=True):
    """A platform, and the app of the user on it."""

    name: ChatAppName
    """Name of the command, of the settings and of the extra."""
    title: str
    """Name for people, and in the events of sessions."""
    needed: tuple[str, ...]
    """Modules of the extra."""
    app: ChatApp
    secrets: tuple[ChatSecret, ...]
    open_channel: OpenChannel
    probe: Probe

    def check_installed(self) -> None:
        """Check that the extra is installed.

        Raises:
            UsageError: It is not.
        """
        missing = [module for module in self.needed if find_spec(module) is None]
        if missing:
            message = (
                f"{' and '.join(missing)} is not installed; run pip install 'tillerd[{self.name}]'"
            )
            raise UsageError(message)


def read_chat_app(name: ChatAppName, settings: Path, home: Path) -> ChatApp:
    """Return the app of a platform as the settings describe it.

    A process of its own reads them: a bridge that runs for weeks would keep 10 MB of modules that it needs once. Called
    in a process with one thread.

    Raises:
        UsageError: That process failed; it wrote why to standard error.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _write_chat_app(writing, name, settings, home)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _ = os.waitpid(child, 0)
    if not data:
        message = f"the settings in {settings} could not be read"
        raise UsageError(message)
    app: ChatApp = pickle.loads(data)  # noqa: S301 - written by this program
    return app


def _write_chat_app(writing: int, name: ChatAppName, settings: Path, home: Path) -> NoReturn:
    try:
        from tiller_server.cli.channels.app_settings import (  # noqa: PLC0415 - only in this process
            load_chat_app,
        )

        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(load_chat_app(name, settings, home), pipe)
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
    finally:
        os._exit(0)


async def read_secrets(platform: ChatPlatform, env: Mapping[str, str]) -> Mapping[str, str]:
    """Return the secrets of an app by their names, from the environment or the keyring.

    Raises:
        UsageError: One is missing.
    """
    found: dict[str, str] = {}
    for secret in platform.secrets:
        value = env.get(secret.variable) or await _keyring_secret(platform, secret)
        if not value:
            message = (
                f"there is no {secret.name} of the {platform.title} app; "
                f"set {secret.variable}, or run tiller {platform.name} login"
            )
            raise UsageError(message)
        found[secret.name] = value
    return found


async def _keyring_secret(platform: ChatPlatform, secret: ChatSecret) -> str | None:
    from agent_core.providers.auth.store import (  # noqa: PLC0415 - not needed where the environment has the secret
        keyring_key,
    )

    return await keyring_key(keyring_name(platform, secret))


def keyring_name(platform: ChatPlatform, secret: ChatSecret) -> str:
    """Return the name under which the keyring has a secret."""
    return f"channels.{platform.name} {platform.app.app_id} {secret.name}".replace("  ", " ")


def environment_without_secrets(
    platform: ChatPlatform, env: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the environment for the daemon: commands of the agent must not see the secrets of the app."""
    hidden = {secret.variable for secret in platform.secrets}
    return {name: value for name, value in env.items() if name not in hidden}


def bridge_config(platform: ChatPlatform) -> BridgeConfig:
    """Return the configuration of a bridge.

    Raises:
        UsageError: A setting is missing or cannot be used.
    """
    for check in platform.app.checks:
        if check.status == "missing":
            message = f"{check.found}; run {check.advice}" if check.advice else check.found
            raise UsageError(message)
    return platform.app.bridge
