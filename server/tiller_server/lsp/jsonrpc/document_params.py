"""Params of document notifications, repaired for lsprotocol: null or odd members do not stop mirroring of a text."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from tiller_server.lsp.jsonrpc.messages import as_array, as_object

VersionedParams: TypeAlias = tuple[dict[str, object], int | None]
"""The params without their version, and the version: None when the editor gives none that could be named again."""
_STANDS_IN: Final = 0
_MOST: Final = 2**53
"""Beyond it, JSON of many clients does not tell whole numbers apart."""


def opened_params(params: Mapping[str, object]) -> VersionedParams:
    """Read the params of `textDocument/didOpen`."""
    return _without_version(params)


def changed_params(params: Mapping[str, object]) -> VersionedParams:
    """Read the params of `textDocument/didChange`; a null `range` or `rangeLength` is one that was left out."""
    changes = as_array(params.get("contentChanges")) or []
    return _without_version(
        {**params, "contentChanges": [_without_nulls(change) for change in changes]}
    )


def _without_version(params: Mapping[str, object]) -> VersionedParams:
    document = as_object(params.get("textDocument"))
    if document is None:
        return dict(params), None
    # lsprotocol refuses null and what has more than 31 bits, and the change of the text with it.
    named = {**document, "version": _STANDS_IN}
    return {**params, "textDocument": named}, _version(document.get("version"))


def _version(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        # Clients written in Lua say 3.0 where they mean 3.
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MOST:
        return None
    return value


def _without_nulls(change: object) -> object:
    members = as_object(change)
    if members is None:
        return change
    return {name: value for name, value in members.items() if value is not None}
