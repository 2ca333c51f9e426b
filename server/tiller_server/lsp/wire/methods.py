"""The table of methods: every request and notification of the protocol, in the order of PROTOCOL.md."""

from collections.abc import Mapping, Sequence
from typing import Final

from tiller_server.lsp.wire import (
    accounts,
    catalogue,
    changes,
    editor,
    extensions,
    permissions,
    runs,
    sessions,
    subscription,
)
from tiller_server.lsp.wire.base import WireModel
from tiller_server.lsp.wire.method import Method

__all__ = ["METHODS"]

_ALL: Final[Sequence[Method[WireModel, object]]] = (
    *sessions.SERVED,
    *subscription.SERVED,
    *runs.SERVED,
    *changes.SERVED,
    *permissions.SERVED,
    *catalogue.SERVED,
    *extensions.SERVED,
    *accounts.SERVED,
    runs.EDITOR_CONTEXT,
    editor.TRUST,
    permissions.PERMISSION,
    permissions.QUESTION,
    changes.EDIT_APPLY,
    editor.DOCUMENTS_SAVE,
    editor.DOCUMENTS_READ,
    editor.FILE_READ,
    editor.FILE_WRITE,
    editor.DIAGNOSTICS,
    editor.LSP_REQUEST,
    changes.CHANGES_SHOW,
)

METHODS: Final[Mapping[str, Method[WireModel, object]]] = {method.name: method for method in _ALL}
