"""Kinds of extension views that some client shows, as set by the server of the session's clients."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec import Struct

from agent_core.events import UiEditorText, UiEvent, UiNotify, UiStatus, UiTitle, UiWidget

ViewKind = Literal["notify", "status", "widget", "title", "editorText"]
SHOWN: Final[Mapping[type[UiEvent], ViewKind]] = {
    UiNotify: "notify",
    UiStatus: "status",
    UiWidget: "widget",
    UiTitle: "title",
    UiEditorText: "editorText",
}
"""Kind of view by event class."""


class ViewFilter(Struct):
    """Predicate for the views that clients show; by default all are, since any client may subscribe to a session."""

    shows: Callable[[ViewKind], bool] = lambda _: True
