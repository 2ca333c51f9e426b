"""A chat platform as its command needs it, with its settings and secrets."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path

from agent_core.channels.messaging.port import MessagingChannel
from agent_core.kernel import Clock
from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value
from agent_core.providers.auth.store import keyring_key
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import Layer, load_settings_now
from agent_core.resources.settings.values import ChannelsSettings, ChatAppSettings
from tiller_server.channels.bridge.config import EVERYBODY, BridgeConfig, ChatWorkspace
from tiller_server.cli.doctor.check import Check

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

    name: str
    """Name of the command, of the settings and of the extra."""
    title: str
    """Name for people, and in the events of sessions."""
    needed: tuple[str, ...]
    """Modules of the extra."""
    app: ChatAppSettings
    app_id: str
    """Id that the settings name; empty: the platform knows it from the secrets."""
    missing: str = ""
    """Setting that has to be made before anything works; empty: none."""
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


def channel_settings(paths: AppPaths) -> ChannelsSettings:
    """Return the settings of chat platforms: only the user's own count."""
    return load_settings_now((Layer(name="user", content=paths.settings),)).values.channels


async def read_secrets(platform: ChatPlatform, env: Mapping[str, str]) -> Mapping[str, str]:
    """Return the secrets of an app by their names, from the environment or the keyring.

    Raises:
        UsageError: One is missing.
    """
    found: dict[str, str] = {}
    for secret in platform.secrets:
        value = env.get(secret.variable) or await keyring_key(keyring_name(platform, secret))
        if not value:
            message = (
                f"there is no {secret.name} of the {platform.title} app; "
                f"set {secret.variable}, or run tiller {platform.name} login"
            )
            raise UsageError(message)
        found[secret.name] = value
    return found


def keyring_name(platform: ChatPlatform, secret: ChatSecret) -> str:
    """Return the name under which the keyring has a secret."""
    return f"channels.{platform.name} {platform.app_id} {secret.name}".replace("  ", " ")


def environment_without_secrets(
    platform: ChatPlatform, env: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the environment for the daemon: commands of the agent must not see the secrets of the app."""
    hidden = {secret.variable for secret in platform.secrets}
    return {name: value for name, value in env.items() if name not in hidden}


def settings_checks(platform: ChatPlatform, home: Path) -> list[Check]:
    """Return the checks of the settings of an app, without any secret or network."""
    key, app = f"channels.{platform.name}", platform.app
    checks = [Check(name="settings", status="ok", found=key)]
    if platform.missing:
        advice = f"tiller config set {platform.missing} VALUE"
        found = f"{platform.missing} is not set"
        checks = [Check(name="settings", status="missing", found=found, advice=advice)]
    if not app.workspaces:
        advice = f"tiller config set {key}.workspaces.main.folder ~/project"
        found = f"{key}.workspaces is empty"
        checks.append(Check(name="workspaces", status="missing", found=found, advice=advice))
    for name, workspace in app.workspaces.items():
        folder = _folder(workspace.folder, home)
        is_there = folder.is_dir()
        checks.append(
            Check(
                name="workspace",
                status="ok" if is_there else "missing",
                found=f"{name}: {folder}" if is_there else f"{name}: {folder} is not a folder",
            )
        )
    checks.extend(_people_checks(key, app))
    return checks


def _people_checks(key: str, app: ChatAppSettings) -> list[Check]:
    approvers = [app.approvers, *(one.approvers or () for one in app.workspaces.values())]
    checks = [
        Check(
            name="people",
            status="ok",
            found="everybody" if EVERYBODY in app.people else f"{len(app.people)}",
        )
        if app.people
        else Check(
            name="people",
            status="note",
            found=f"{key}.people is empty: nobody may write to the bot",
            advice="write to the bot; its answer names your id",
        )
    ]
    if any(EVERYBODY in ids for ids in approvers):
        found = f'{key}.approvers has "*": approvers are named one by one'
        checks.append(Check(name="approvers", status="missing", found=found))
    elif not any(approvers):
        found = f"{key}.approvers is empty: no permission request is answered in a chat"
        checks.append(Check(name="approvers", status="note", found=found))
    return checks


def bridge_config(platform: ChatPlatform, home: Path) -> BridgeConfig:
    """Return the configuration of a bridge.

    Raises:
        UsageError: A setting is missing or cannot be used.
    """
    for check in settings_checks(platform, home):
        if check.status == "missing":
            message = f"{check.found}; run {check.advice}" if check.advice else check.found
            raise UsageError(message)
    app = platform.app
    return BridgeConfig(
        client=platform.title,
        workspaces=tuple(
            ChatWorkspace(
                name=name,
                folder=_folder(workspace.folder, home),
                model=workspace.model,
                mode=workspace.mode,
                approvers=None if workspace.approvers is None else frozenset(workspace.approvers),
            )
            for name, workspace in app.workspaces.items()
        ),
        talkers=frozenset(app.people),
        approvers=frozenset(app.approvers),
        admins=frozenset(app.admins),
        allow_direct=app.direct,
        allow_groups=app.groups,
        context_messages=app.context_messages,
    )


def _folder(path: str, home: Path) -> Path:
    return home / path[2:] if path.startswith("~/") else home if path == "~" else Path(path)
