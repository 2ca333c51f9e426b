"""What an extension shows to people; a client that cannot show it lets it be."""

from agent_core.kernel import JsonObject
from agent_core.kernel.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UiNotify:
    """Something to read once: `text` and `level`."""

    extension: str
    view: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class UiStatus:
    """A few words under a key, until others come: `key` and `text`, null to take them off."""

    extension: str
    view: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class UiWidget:
    """A view under a key, until another comes: `key`, `view`, null to take it off, and `placement`."""

    extension: str
    view: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class UiTitle:
    """A name for the window: `text`."""

    extension: str
    view: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class UiEditorText:
    """Words for where the user types: `text`, and the `mode` `replace` or `insert`."""

    extension: str
    view: JsonObject


UiEvent = UiNotify | UiStatus | UiWidget | UiTitle | UiEditorText
