"""What a client said when it started, and what of it is settings."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from agent_core.events import Attendant
from agent_core.kernel import JsonValue
from server.lsp.choice import Opening
from server.lsp.codec import as_object
from server.lsp.protocol import Connection
from server.lsp.wire import AgentOptions

EDITOR: Final = "editor"
"""What a client is that does not say."""
CONNECTION: Final = "connection"

_log = logging.getLogger(__name__)


def read_options(connection: Connection) -> AgentOptions:
    """Read what the client said at the start; a client that says it wrong is served all the same."""
    try:
        return AgentOptions.model_validate(_agent_options(connection))
    except ValueError as error:
        _log.warning("initializationOptions.agent cannot be read and is left out: %s", error)
        return AgentOptions()


def _agent_options(connection: Connection) -> Mapping[str, object]:
    params = as_object(connection.client_params) or {}
    given = as_object(params.get("initializationOptions")) or {}
    return as_object(given.get("agent")) or {}


def settings_of(options: AgentOptions) -> Mapping[str, JsonValue]:
    """Give what the editor's configuration says, as a layer of settings."""
    permission, budgets = options.permission, options.budgets
    groups: dict[str, dict[str, JsonValue]] = {"permission": {}, "budgets": {}}
    if permission is not None:
        groups["permission"] = {
            "mode": permission.mode,
            "fallback": permission.fallback,
            "timeoutS": permission.timeout_s,
        }
    if budgets is not None:
        groups["budgets"] = {
            "usd": budgets.usd,
            "tokens": budgets.tokens,
            "turns": budgets.turns,
            "minutes": budgets.minutes,
        }
    said: dict[str, JsonValue] = {}
    for name, group in groups.items():
        if given := {key: value for key, value in group.items() if value is not None}:
            said[name] = given
    return said


def opening_of(options: AgentOptions) -> Opening:
    """Give what the client wants opened when it names no session."""
    return options.session.open if options.session else None


def ends_sessions(options: AgentOptions) -> bool:
    """Say whether what the client opened ends with its connection."""
    return options.session is not None and options.session.lifetime == CONNECTION


def attendant_of(options: AgentOptions, *, editor: str) -> Attendant:
    """Say who a client is, as the others of a session see it."""
    said = options.client
    return Attendant(
        role=str((said and said.role) or EDITOR), name=str((said and said.name) or editor)
    )


def is_plain(params: Mapping[str, Any], options: AgentOptions) -> bool:
    """Tell whether a client knows plain LSP and nothing of ours: then it gets code actions, lenses and hints."""
    capabilities = as_object(params.get("capabilities")) or {}
    experimental = as_object(capabilities.get("experimental")) or {}
    return options.capabilities is None and "agent" not in experimental
