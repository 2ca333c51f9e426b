"""Every name that extensions of the reference know is given, given as a declarative view, or said not to be offered."""

from typing import Final, Literal

import pytest

from agent_core.extensions import CommandContext, Context, ExtensionApi, Unsupported
from agent_core.extensions.api import EventBus, ExtensionTool, OwnBus
from agent_core.extensions.registry import Registrations
from agent_core.extensions.scope import ExtensionScope
from agent_core.extensions.ui import Ui
from agent_core.hooks import POINTS
from agent_core.providers.catalog.models_file import ModelShape, ProviderShape
from agent_core.tools import ToolSpec

How = Literal["given", "view", "not offered"]
API: Final[dict[str, tuple[How, str]]] = {
    "on": ("given", "on"),
    "registerTool": ("given", "tool"),
    "registerCommand": ("given", "command"),
    "registerShortcut": ("given", "shortcut"),
    "registerFlag": ("given", "flag"),
    "getFlag": ("given", "get_flag"),
    "registerMessageRenderer": ("view", "message_renderer"),
    "sendMessage": ("given", "send_message"),
    "sendUserMessage": ("given", "send_user_message"),
    "appendEntry": ("given", "append_entry"),
    "setSessionName": ("given", "set_session_name"),
    "getSessionName": ("given", "session_name"),
    "setLabel": ("given", "set_label"),
    "exec": ("given", "exec"),
    "getActiveTools": ("given", "active_tools"),
    "getAllTools": ("given", "describe_tools"),
    "setActiveTools": ("given", "set_active_tools"),
    "getCommands": ("given", "commands"),
    "setModel": ("given", "set_model"),
    "getThinkingLevel": ("given", "thinking"),
    "setThinkingLevel": ("given", "set_thinking"),
    "registerProvider": ("given", "provider"),
    "registerMarkdownTransformer": ("not offered", "register_markdown_transformer"),
}
CONTEXT: Final[dict[str, tuple[How, str]]] = {
    "ui": ("given", "ui"),
    "hasUI": ("given", "has_ui"),
    "cwd": ("given", "root"),
    "sessionManager": ("given", "session"),
    "modelRegistry": ("given", "models"),
    "model": ("given", "model"),
    "isIdle": ("given", "is_idle"),
    "abort": ("given", "abort"),
    "hasPendingMessages": ("given", "has_pending_messages"),
    "shutdown": ("not offered", "shutdown"),
    "getContextUsage": ("given", "usage"),
    "compact": ("given", "compact"),
    "getSystemPrompt": ("given", "system_prompt"),
    "isProjectTrusted": ("given", "is_trusted"),
}
COMMAND: Final[dict[str, tuple[How, str]]] = {
    "waitForIdle": ("given", "wait_for_idle"),
    "newSession": ("not offered", "new_session"),
    "fork": ("given", "fork"),
    "navigateTree": ("given", "navigate"),
    "switchSession": ("not offered", "switch_session"),
    "reload": ("given", "reload"),
}
UI: Final[dict[str, tuple[How, str]]] = {
    "select": ("given", "select"),
    "confirm": ("given", "confirm"),
    "input": ("given", "input"),
    "notify": ("given", "notify"),
    "onTerminalInput": ("not offered", "on_terminal_input"),
    "setStatus": ("given", "status"),
    "setWorkingMessage": ("given", "working"),
    "setWidget": ("view", "widget"),
    "setFooter": ("not offered", "set_footer"),
    "setHeader": ("not offered", "set_header"),
    "setTitle": ("given", "title"),
    "custom": ("not offered", "custom"),
    "pasteToEditor": ("given", "paste_to_editor"),
    "setEditorText": ("given", "set_editor_text"),
    "getEditorText": ("not offered", "get_editor_text"),
    "editor": ("given", "editor"),
    "setEditorComponent": ("not offered", "set_editor_component"),
    "theme": ("not offered", "theme"),
    "getAllThemes": ("not offered", "get_all_themes"),
    "getTheme": ("not offered", "get_theme"),
    "setTheme": ("not offered", "set_theme"),
    "getToolsExpanded": ("not offered", "get_tools_expanded"),
    "setToolsExpanded": ("not offered", "set_tools_expanded"),
}


def api() -> ExtensionApi:
    return ExtensionApi(
        ExtensionScope("x"),
        Registrations(extension="x"),
        bus=EventBus(failed=lambda *_: None, later=lambda *_: None),
        flags=lambda _: None,
        changed=lambda: None,
    )


ALL = [
    pytest.param(owner, how, ours, id=f"{where}.{theirs}")
    for where, owner, table in (
        ("api", api, API),
        ("ctx", lambda: Context(ExtensionScope("x")), CONTEXT),
        ("command", lambda: CommandContext(ExtensionScope("x")), COMMAND),
        ("ui", lambda: Context(ExtensionScope("x")).ui, UI),
    )
    for theirs, (how, ours) in table.items()
]


@pytest.mark.parametrize(("owner", "how", "ours"), ALL)
def test_every_name_has_its_answer(owner, how: How, ours: str) -> None:
    given = owner()
    if how == "not offered":
        with pytest.raises(Unsupported, match=f"{ours} is not offered"):
            getattr(given, ours)
    else:
        assert hasattr(type(given), ours)
        assert getattr(type(given), ours).__doc__


def test_the_bus_is_there() -> None:
    assert isinstance(api().events, OwnBus)


def test_a_definition_of_a_tool_has_what_it_needs() -> None:
    assert {"name", "description", "parameters", "kind", "snippet", "guidelines"} <= set(
        ToolSpec.__dataclass_fields__
    )
    assert {"function", "titled", "arguments"} <= set(ExtensionTool.__dataclass_fields__)


def test_a_provider_is_said_in_the_words_of_models_json() -> None:
    said = {"name", "base_url", "api_key", "api", "headers", "auth_header", "models"}
    assert said <= set(ProviderShape.model_fields)
    model = {
        "id",
        "name",
        "api",
        "reasoning",
        "input",
        "cost",
        "context_window",
        "max_tokens",
        "headers",
        "compat",
    }
    assert model <= set(ModelShape.model_fields)


def test_every_event_can_be_listened_to_by_its_name() -> None:
    mine = api()
    for point in POINTS.values():
        mine.on(point.name)(lambda event, ctx: None)
    registered = mine._registered.hooks
    assert [at for at, _ in registered] == list(POINTS)


def test_what_is_not_offered_has_no_other_names() -> None:
    assert isinstance(Context(ExtensionScope("x")).ui, Ui)
    with pytest.raises(AttributeError):
        _ = Context(ExtensionScope("x")).nothing
    with pytest.raises(AttributeError):
        _ = api().nothing
