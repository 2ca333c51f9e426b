"""Views of extensions for the user; a client that cannot show a view ignores it."""

from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value


class UiNotify(Value, frozen=True, kw_only=True):
    """Something to read once: `text` and `level`."""

    extension: str
    view: JsonObject


class UiStatus(Value, frozen=True, kw_only=True):
    """A few words under a key, until others come: `key` and `text`, null to take them off."""

    extension: str
    view: JsonObject


class UiWidget(Value, frozen=True, kw_only=True):
    """A view under a key, until another comes: `key`, `view`, null to take it off, and `placement`."""

    extension: str
    view: JsonObject


class UiTitle(Value, frozen=True, kw_only=True):
    """A name for the window: `text`."""

    extension: str
    view: JsonObject


class UiEditorText(Value, frozen=True, kw_only=True):
    """Words for where the user types: `text`, and the `mode` `replace` or `insert`."""

    extension: str
    view: JsonObject


UiEvent = UiNotify | UiStatus | UiWidget | UiTitle | UiEditorText
