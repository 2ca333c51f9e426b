"""Methods on what extensions offer to clients besides commands: keys, flags, views of their messages."""

from typing import Literal

from tiller_server.lsp.wire.base import JsonObject, Many, SessionParams, Vendor, WireModel

__all__ = [
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
    """Lists what extensions offer besides commands."""


class ExtensionKey(WireModel):
    """A key that a client may bind; `agent/extension/press` does what it stands for."""

    key: str
    extension: str
    description: str | None = None


class ExtensionFlag(WireModel):
    """A switch of the user's settings, with what counts now."""

    name: str
    extension: str
    description: str | None = None
    kind: Literal["boolean", "string"] | Vendor
    value: bool | str | None = None


class ExtensionRenderer(WireModel):
    """A type of messages for which `agent/extension/render` gives a view."""

    custom_type: str
    extension: str


class ExtensionListResult(WireModel):
    """What they offer."""

    keys: Many[ExtensionKey]
    flags: Many[ExtensionFlag]
    renderers: Many[ExtensionRenderer]


class ExtensionPressParams(SessionParams):
    """Does what a key of an extension stands for."""

    key: str


class ExtensionPressResult(WireModel):
    """It has begun."""


class ExtensionRenderParams(SessionParams):
    """Gives the view that an extension has for one of its messages."""

    entry: str


class ExtensionRenderResult(WireModel):
    """The view; null: the message is shown as any other."""

    view: JsonObject | None


class StandingView(WireModel):
    """What an extension shows, as the last event of its kind and key said it."""

    type: Literal["ui.status", "ui.widget", "ui.title"]
    extension: str
    view: JsonObject
