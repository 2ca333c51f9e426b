"""Options of a client at its start, and the settings among them."""

import logging
from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from agent_core.events import Attendant
from agent_core.kernel import JsonValue
from agent_core.kernel.unknown_keys import NOTES, did_you_mean, unknown_keys
from agent_core.kernel.values import Value
from tiller_server.lsp.clients.session_candidates import SessionOpenOption
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.wire.capabilities import AgentOptions
from tiller_server.lsp.wire.parsing import validation_issue

EDITOR: Final = "editor"
"""Role of a client that declares none."""
CONNECTION: Final = "connection"
OWN: Final = "own"
PLACE: Final = "initializationOptions.agent"
QUIRKS: Final = "quirks"
"""Read by itself (`tiller_server.lsp.editors.quirks`)."""
CLOSED: Final = ("permission", "budgets")
"""Options in which an unknown key refuses sessions."""

_log = logging.getLogger(__name__)


class ReadOptions(Value, frozen=True, kw_only=True):
    """The options of a client, and what is wrong with them."""

    options: AgentOptions
    problems: tuple[str, ...] = ()
    """A sentence each, for the user."""
    refusals: tuple[str, ...] = ()
    """Those of the problems with which no session may be opened: they are about what the agent may do or spend."""


def read_options(connection: LspConnection) -> ReadOptions:
    """Read `initializationOptions.agent`; options that cannot be read are left out."""
    given = _agent_options(connection)
    try:
        options = AgentOptions.model_validate(given, by_alias=True, by_name=False)
    except ValidationError as error:
        problem = f"{PLACE}.{validation_issue(error, given).text}; the options are left out"
        _log.warning("%s", problem)
        return ReadOptions(
            options=AgentOptions(),
            problems=(problem,),
            refusals=(problem,) if any(name in given for name in CLOSED) else (),
        )
    problems: list[str] = []
    refusals: list[str] = []
    for path, allowed_keys in unknown_keys(options, given):
        name, place = str(path[-1]), ".".join(map(str, path))
        if place == QUIRKS or name.startswith(NOTES):
            continue
        above = place.removesuffix(name)
        problem = f"{PLACE}.{place} is no option{did_you_mean(name, allowed_keys, above=above)}"
        _log.warning("%s", problem)
        problems.append(problem)
        if path[0] in CLOSED:
            refusals.append(problem)
    return ReadOptions(options=options, problems=tuple(problems), refusals=tuple(refusals))


def _agent_options(connection: LspConnection) -> Mapping[str, object]:
    params = as_object(connection.client_params) or {}
    given = as_object(params.get("initializationOptions")) or {}
    return as_object(given.get("agent")) or {}


def settings_of(options: AgentOptions) -> Mapping[str, JsonValue]:
    """Return what the editor's configuration says, as a layer of settings."""
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


def opening_of(options: AgentOptions) -> SessionOpenOption:
    """Return what the client wants opened when it names no session."""
    return options.session.open if options.session else None


def ends_sessions(options: AgentOptions) -> bool:
    """Return whether what the client opened ends with its connection."""
    return options.session is not None and options.session.lifetime == CONNECTION


def opens_in_own_folder(options: AgentOptions) -> bool:
    """Return whether a session that is opened by its id works in its own folder, not in that of the client."""
    return options.session is not None and options.session.folder == OWN


def attendant_of(options: AgentOptions, *, editor: str) -> Attendant:
    """Return the role and name of a client, as the other clients of a session see it."""
    said = options.client
    return Attendant(
        role=str((said and said.role) or EDITOR), name=str((said and said.name) or editor)
    )


def is_plain(params: Mapping[str, object], options: AgentOptions) -> bool:
    """Return whether a client knows plain LSP and nothing of ours: then it gets code actions, lenses and hints."""
    capabilities = as_object(params.get("capabilities")) or {}
    experimental = as_object(capabilities.get("experimental")) or {}
    return options.capabilities is None and "agent" not in experimental
