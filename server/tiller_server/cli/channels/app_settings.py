"""Apps of chat platforms as the settings of the user describe them; loads the settings, and pydantic with them."""

from pathlib import Path

from agent_core.resources.settings.layers import Layer, load_settings_now
from agent_core.resources.settings.values import ChannelsSettings, ChatAppSettings
from tiller_server.channels.bridge.config import EVERYBODY, BridgeConfig, ChatWorkspace
from tiller_server.cli.channels.chat_app import ChatApp, ChatAppName
from tiller_server.cli.doctor.check import Check


def load_chat_app(name: ChatAppName, settings: Path, home: Path) -> ChatApp:
    """Return an app of the settings, with checks that need neither a secret nor the network.

    Args:
        name: Name of the command.
        settings: File of the user's settings; only they count for chat platforms.
        home: Folder that `~` stands for.
    """
    channels = load_settings_now((Layer(name="user", content=settings),)).values.channels
    if name == "lark":
        return _lark(channels, home)
    slack = channels.slack
    return ChatApp(
        bridge=_bridge_config("Slack", slack, home),
        checks=tuple(_checks("channels.slack", slack, home)),
        variables=(slack.app_token_variable, slack.bot_token_variable),
    )


def _lark(channels: ChannelsSettings, home: Path) -> ChatApp:
    lark = channels.lark
    missing = "" if lark.app_id else "channels.lark.appId"
    return ChatApp(
        bridge=_bridge_config("Lark", lark, home),
        checks=tuple(_checks("channels.lark", lark, home, missing=missing)),
        app_id=lark.app_id or "",
        domain=lark.domain,
        missing=missing,
        variables=(lark.secret_variable,),
    )


def _checks(key: str, app: ChatAppSettings, home: Path, *, missing: str = "") -> list[Check]:
    checks = [Check(name="settings", status="ok", found=key)]
    if missing:
        advice = f"tiller config set {missing} VALUE"
        found = f"{missing} is not set"
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


def _bridge_config(title: str, app: ChatAppSettings, home: Path) -> BridgeConfig:
    return BridgeConfig(
        client=title,
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
