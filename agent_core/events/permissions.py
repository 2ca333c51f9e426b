"""Permission requests to the user, their options and their answers."""

from pathlib import Path
from typing import Literal

from agent_core.kernel import ItemId, JsonObject, RunId, SessionId
from agent_core.kernel.values import Value

SandboxCoverage = Literal["full", "partial", "none"]
Risk = Literal["low", "medium", "high"]
RuleScope = Literal["run", "session", "project", "user"]
OptionKind = Literal[
    "allowOnce",
    "allowRun",
    "allowSession",
    "allowProject",
    "allowUser",
    "rejectOnce",
    "rejectAlways",
]
TargetKind = Literal["edit", "delete", "fetch", "mcp", "outsideRoot", "secret", "tool"]


class RuleInfo(Value, frozen=True, kw_only=True):
    """A standing answer, as people see it."""

    id: str
    tool: str
    argv_prefix: tuple[str, ...] | None = None
    path: str | None = None
    host: str | None = None
    mcp: str | None = None
    needs: tuple[str, ...] | None = None
    verdict: Literal["allow", "ask", "deny"]
    scope: RuleScope
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


class PermissionOption(Value, frozen=True, kw_only=True):
    """One way to answer."""

    id: str
    kind: OptionKind
    label: str
    rule: RuleInfo | None = None
    """Rule that this answer creates; None: no rule."""


class CommandRead(Value, frozen=True, kw_only=True):
    """One command of a line, as far as it could be read."""

    argv: tuple[str, ...]


class CommandSubject(Value, frozen=True, kw_only=True):
    """A command that wants to run."""

    type: Literal["command"] = "command"
    argv: tuple[str, ...] | None
    """The words of a line that is one plain command."""
    command: str
    """Exactly what will run."""
    cwd: Path
    plain: bool
    """The line was understood whole; if not, `parsed` is only what might run."""
    sandbox: SandboxCoverage
    parsed: tuple[CommandRead, ...]
    needs: tuple[str, ...] = ()
    """Access that containment would deny and that the model requests."""


class TargetSubject(Value, frozen=True, kw_only=True):
    """Anything else with a target: a file to change, a tool of somebody else."""

    type: TargetKind
    tool: str
    sandbox: SandboxCoverage
    path: Path | None = None
    input: JsonObject | None = None
    """The arguments of the call, shortened where they are long."""
    change_set: str | None = None
    """Id of the change set of an edit; None for other targets."""


class TrustSubject(Value, frozen=True, kw_only=True):
    """A workspace that wants to configure the session and to be changed."""

    type: Literal["trust"] = "trust"
    folder: Path
    added: tuple[str, ...] = ()
    """Files added since it was trusted, as paths relative to it; at most 20. `removed` and `changed` alike."""
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    difference: str = ""
    """How texts differ from those that were trusted, as a unified diff."""


class ServerSubject(Value, frozen=True, kw_only=True):
    """A server whose tools want to be used."""

    type: Literal["server"] = "server"
    server: str
    way: str
    """How it is reached, and what holds it in."""
    source: Path
    """The file that names it."""
    added: tuple[str, ...] = ()
    """Tools that nobody approved yet, by the server's own names; at most 128, as the other two."""
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    """Tools that would run without a question each time, since the server marks them as read-only."""
    difference: str = ""
    """All that the server says of new tools, and how it differs for those that have changed."""


PermissionSubject = CommandSubject | TargetSubject | TrustSubject | ServerSubject


class PermissionRequest(Value, frozen=True, kw_only=True):
    """Asks a person whether something may be done."""

    request: str
    session: SessionId
    run: RunId | None
    """None: nothing runs; the wire then shows an empty run."""
    item: ItemId
    title: str
    description: str | None
    """Why it is asked."""
    risk: Risk
    since_ms: int
    expires_ms: int | None
    """When silence becomes a no."""
    subject: PermissionSubject
    options: tuple[PermissionOption, ...]
    default: str
    """The option that silence takes; never one that allows."""

    def option(self, option: str) -> PermissionOption | None:
        """Return the option of that id."""
        return next((one for one in self.options if one.id == option), None)


class PermissionRequested(Value, frozen=True, kw_only=True):
    """A person is asked whether something may be done; it stands in the session's file already."""

    run: RunId | None
    request: PermissionRequest


class PermissionResolved(Value, frozen=True, kw_only=True):
    """A request is answered; the rule that came of it is in force."""

    run: RunId | None
    request: str
    option: str | None
    """None: the run was cancelled before anybody answered."""
    by: str
    """Source of the answer: a client, `timeout`, `cancelled`, `tooManyDenials`."""
    rule: RuleInfo | None = None
