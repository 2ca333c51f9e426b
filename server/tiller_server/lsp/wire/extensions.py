"""Methods on what extensions offer to clients besides commands: keys, flags, views of their messages."""

from typing import Final, Literal

from tiller_server.lsp.wire.base import (
    FailFastList,
    SessionParams,
    UncheckedJsonObject,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.method import request

__all__ = [
    "EXTENSION_LIST",
    "EXTENSION_PRESS",
    "EXTENSION_RENDER",
    "SERVED",
    "ExtensionFlag",
    "ExtensionKey",
    "ExtensionListParams",
    "ExtensionListResult",
    "ExtensionPressParams",
    "ExtensionPressResult",
    "ExtensionRenderParams",
    "ExtensionRenderResult",
    "ExtensionRenderer",
    "StandingView",
]


class ExtensionListParams(SessionParams):
    """List the keys, flags and message views of extensions."""


class ExtensionKey(WireModel):
    """Key that a client may bind."""

    key: str
    extension: str
    description: str | None = None


class ExtensionFlag(WireModel):
    """Flag of an extension, which the user sets in `extensionFlags`."""

    name: str
    extension: str
    description: str | None = None
    kind: Literal["boolean", "string"] | Vendor
    value: bool | str | None = None
    """Value in force; left out: none."""


class ExtensionRenderer(WireModel):
    """Message type that `agent/extension/render` has a view for."""

    custom_type: str
    extension: str


class ExtensionListResult(WireModel):
    """Keys, flags and message views of extensions."""

    keys: FailFastList[ExtensionKey]
    """Keys for `agent/extension/press`."""
    flags: FailFastList[ExtensionFlag]
    """Flags, with the values in force."""
    renderers: FailFastList[ExtensionRenderer]
    """Message types for `agent/extension/render`."""


class ExtensionPressParams(SessionParams):
    """Run the action of an extension's key."""

    key: str
    """Key, as `agent/extension/list` names it."""


class ExtensionPressResult(WireModel):
    """The action has begun."""


class ExtensionRenderParams(SessionParams):
    """Return the view of an extension's message."""

    entry: str
    """Entry id of the message."""


class ExtensionRenderResult(WireModel):
    """View of a message."""

    view: UncheckedJsonObject | None
    """The view; null: the message is shown as any other."""


class StandingView(WireModel):
    """View of an extension, as the last event of its kind and key set it."""

    type: Literal["ui.status", "ui.widget", "ui.title"]
    extension: str
    view: UncheckedJsonObject


EXTENSION_LIST: Final = request("agent/extension/list", ExtensionListParams, ExtensionListResult)
EXTENSION_PRESS: Final = request(
    "agent/extension/press", ExtensionPressParams, ExtensionPressResult
)
EXTENSION_RENDER: Final = request(
    "agent/extension/render", ExtensionRenderParams, ExtensionRenderResult
)
SERVED: Final = (EXTENSION_LIST, EXTENSION_PRESS, EXTENSION_RENDER)
"""Methods of this module that clients call, in the order of PROTOCOL.md."""
