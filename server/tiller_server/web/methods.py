"""Which methods of the agent a browser may use. Any other is refused."""

from collections.abc import Mapping
from typing import Final, Literal

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value

Role = Literal["observer", "approver", "operator"]
ROLES: Final[tuple[Role, ...]] = ("observer", "approver", "operator")
"""From the fewest rights to the most."""
ROLE_HEADER: Final = "tiller-role"
"""Header with the role of the server."""
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
REQUEST_FAILED: Final = -32803


class Served(Value, frozen=True, kw_only=True):
    """A method that is served."""

    role: Role
    """Least role that may use it."""
    needs_session: bool = True
    """Whether `session` has to name a session: two tabs share the connection, and what it has in front is no tab's choice."""


METHODS: Final[Mapping[str, Served]] = {
    "agent/session/open": Served(role="observer"),
    "agent/session/list": Served(role="observer", needs_session=False),
    "agent/session/read": Served(role="observer"),
    "agent/session/tree": Served(role="observer"),
    "agent/session/stats": Served(role="observer"),
    "agent/session/export": Served(role="observer"),
    "agent/blob/read": Served(role="observer", needs_session=False),
    "agent/changes/list": Served(role="observer"),
    "agent/checkpoint/list": Served(role="observer"),
    "agent/checkpoint/preview": Served(role="observer"),
    "agent/task/changes": Served(role="observer"),
    "agent/command/list": Served(role="observer"),
    "agent/command/complete": Served(role="observer"),
    "agent/model/list": Served(role="observer"),
    "agent/costs": Served(role="observer", needs_session=False),
    "agent/permission/respond": Served(role="approver", needs_session=False),
    "agent/question/respond": Served(role="approver", needs_session=False),
    "agent/run/cancel": Served(role="approver"),
    "agent/background/stop": Served(role="approver"),
    "agent/task/stop": Served(role="approver"),
    "agent/prompt": Served(role="operator"),
    "agent/steer": Served(role="operator"),
    "agent/followUp": Served(role="operator"),
    "agent/queue/update": Served(role="operator"),
    "agent/run/retry": Served(role="operator"),
    "agent/compact": Served(role="operator"),
    "agent/plan/respond": Served(role="operator"),
    "agent/session/configure": Served(role="operator"),
    "agent/session/fork": Served(role="operator"),
    "agent/session/navigate": Served(role="operator"),
    "agent/session/label": Served(role="operator"),
    "agent/session/rename": Served(role="operator"),
    "agent/model/cycle": Served(role="operator"),
    "agent/thinking/cycle": Served(role="operator"),
    "agent/background/move": Served(role="operator"),
    "agent/task/resume": Served(role="operator"),
    "agent/task/merge": Served(role="operator"),
    "agent/task/discard": Served(role="operator"),
    "agent/changes/resolve": Served(role="operator"),
    "agent/checkpoint/restore": Served(role="operator"),
}
FOREIGN: Final = ("partialResultToken", "workDoneToken", "wait")
"""Fields that would bind a run or a stream to one HTTP request."""
CHANGING: Final = ("config", "title", "folders")
"""Fields of `agent/session/open` that change something."""


class RefusedCall(Value, frozen=True, kw_only=True):
    """Why a request is not passed on, as the error of its answer."""

    code: int
    message: str
    kind: str | None = None

    def wire(self) -> JsonObject:
        """Return the error as the agent would send it."""
        data: JsonObject = {"retryable": False}
        if self.kind is not None:
            data = {"kind": self.kind, **data}
        return {"code": self.code, "message": self.message, "data": data}


def objection(
    method: str, params: JsonObject, *, role: Role, asked: Mapping[str, JsonObject]
) -> RefusedCall | None:
    """Return why a request is refused; None: it may go to the daemon.

    Args:
        method: Its method.
        params: Its params.
        role: Role of the server.
        asked: Permission requests that wait, by id.
    """
    served = METHODS.get(method)
    if served is None:
        return RefusedCall(
            code=METHOD_NOT_FOUND, message=f"{method[:80]} is not served in a browser"
        )
    if ROLES.index(role) < ROLES.index(served.role):
        return _denied(f"{method} needs the role {served.role}, and tiller web runs as {role}")
    for field in FOREIGN:
        if params.get(field) is not None:
            message = f"{method}: {field} is not served in a browser; follow GET /v1/events"
            return RefusedCall(code=INVALID_PARAMS, message=message)
    if served.needs_session and not isinstance(params.get("session"), str):
        message = f"{method}: session is missing; name the session that is meant"
        return RefusedCall(code=INVALID_PARAMS, message=message)
    return _privilege(method, params, role=role, asked=asked)


def _privilege(
    method: str, params: JsonObject, *, role: Role, asked: Mapping[str, JsonObject]
) -> RefusedCall | None:
    if _mode_of(params) == "yolo":
        return _denied("the mode yolo cannot be set in a browser; set it in the terminal or editor")
    match method:
        case "agent/session/open" if role != "operator":
            changes = [name for name in CHANGING if params.get(name) is not None]
            if changes or params.get("session") == "new":
                what = changes[0] if changes else "a new session"
                return _denied(f"{what} needs the role operator, and tiller web runs as {role}")
            return None
        case "agent/permission/respond":
            return _decision(params, asked.get(str(params.get("request"))))
        case _:
            return None


def _decision(params: JsonObject, request: JsonObject | None) -> RefusedCall | None:
    """Refuse answers that give rights beyond the project, or that decide on trust."""
    option = str(params.get("option"))
    chosen = _kind_of(option, request)
    if params.get("scope") == "user" or "allowUser" in {option, chosen}:
        return _denied("a rule for all projects cannot be made in a browser; use the terminal")
    subject = as_object(None if request is None else request.get("subject")).get("type")
    if subject in {"trust", "server"} and chosen != "rejectOnce":
        command = "tiller trust add" if subject == "trust" else "tiller chat"
        return _denied(f"whom to trust cannot be decided in a browser; use {command} in a terminal")
    return None


def _kind_of(option: str, request: JsonObject | None) -> str:
    options = None if request is None else request.get("options")
    for one in options if isinstance(options, list) else []:
        offered = as_object(one)
        if option in (offered.get("id"), offered.get("optionId")):
            return str(offered.get("kind"))
    return option


def _mode_of(params: JsonObject) -> object:
    for name in ("set", "config"):
        mode = as_object(params.get(name)).get("mode")
        if mode is not None:
            return mode
    return params.get("mode")


def _denied(message: str) -> RefusedCall:
    return RefusedCall(code=REQUEST_FAILED, message=message, kind="PermissionDenied")
