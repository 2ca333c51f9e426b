"""Permission requests and questions of a session, as requests to the ACP client. Pure."""

from collections.abc import Mapping
from typing import Final

from agent_core.events import (
    CommandSubject,
    OptionKind,
    PermissionRequest,
    Question,
    QuestionLine,
    ServerSubject,
    TargetSubject,
    TrustSubject,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object
from tiller_server.acp.content import text_block

KINDS: Final[Mapping[OptionKind, str]] = {
    "allowOnce": "allow_once",
    "allowRun": "allow_always",
    "allowSession": "allow_always",
    "allowProject": "allow_always",
    "allowUser": "allow_always",
    "rejectOnce": "reject_once",
    "rejectAlways": "reject_always",
}
CONTENT_CHARS: Final = 64 * 1024
DECLINED: Final[JsonObject] = {"cancelled": True}
ACCEPT: Final = "accept"


def permission_params(session: str, request: PermissionRequest) -> JsonObject:
    """Return the params of `session/request_permission`."""
    call: dict[str, JsonValue] = {
        "toolCallId": request.item or f"permission-{request.request}",
        "title": request.title,
        "status": "pending",
        "kind": _kind(request),
        "content": [
            {"type": "content", "content": text_block(text[:CONTENT_CHARS])}
            for text in _texts(request)
            if text
        ],
    }
    subject = request.subject
    if isinstance(subject, CommandSubject):
        call["rawInput"] = {"command": subject.command, "cwd": str(subject.cwd)}
    elif isinstance(subject, TargetSubject):
        if subject.input is not None:
            call["rawInput"] = subject.input
        if subject.path is not None:
            call["locations"] = [{"path": str(subject.path)}]
    options: list[JsonValue] = [
        {"optionId": option.id, "name": option.label, "kind": KINDS[option.kind]}
        for option in request.options
    ]
    return {"sessionId": session, "toolCall": call, "options": options}


def permission_answer(request: PermissionRequest, result: JsonValue) -> JsonObject | None:
    """Return the answer to `agent/permission`; None, a refusal, for everything that is not an option."""
    outcome = as_object(as_object(result).get("outcome"))
    option = outcome.get("optionId")
    if outcome.get("outcome") != "selected" or not isinstance(option, str):
        return None
    return {"option": option} if request.option(option) is not None else None


def form_params(session: str, question: Question) -> JsonObject:
    """Return the params of `elicitation/create` for a form."""
    properties: dict[str, JsonValue] = {line.id: _property(line) for line in question.questions}
    required: list[JsonValue] = [line.id for line in question.questions if line.default is None]
    message = question.questions[0].text if len(question.questions) == 1 else "The agent asks:"
    return {
        "mode": "form",
        "sessionId": session,
        "message": message,
        "requestedSchema": {"type": "object", "properties": properties, "required": required},
    }


def form_answer(question: Question, result: JsonValue) -> JsonObject:
    """Return the answer to `agent/question` for the result of a form; one that does not fit declines."""
    given = as_object(result)
    if given.get("action") != ACCEPT:
        return DECLINED
    content = as_object(given.get("content"))
    answers: dict[str, JsonValue] = {}
    for line in question.questions:
        if (answer := content.get(line.id)) is None and line.default is not None:
            continue
        if not _fits(line, answer):
            return DECLINED
        answers[line.id] = answer
    return {"answers": answers}


def choice_params(session: str, question: Question, line: QuestionLine) -> JsonObject:
    """Return the params of `session/request_permission` for one line of a question, for clients without forms."""
    if line.kind == "confirm":
        rows = [("yes", "Yes", "allow_once"), ("no", "No", "reject_once")]
    else:
        rows = [(option.id, option.label, "allow_once") for option in line.options]
    options: list[JsonValue] = [
        {"optionId": option, "name": label, "kind": kind} for option, label, kind in rows
    ]
    call: JsonObject = {
        "toolCallId": f"question-{question.request}-{line.id}",
        "title": line.text,
        "kind": "think",
        "status": "pending",
    }
    return {"sessionId": session, "toolCall": call, "options": options}


def choice_answer(line: QuestionLine, result: JsonValue) -> JsonValue:
    """Return the answer to one line; None: there is none."""
    outcome = as_object(as_object(result).get("outcome"))
    option = outcome.get("optionId")
    if outcome.get("outcome") != "selected" or not isinstance(option, str):
        return None
    if line.kind == "confirm":
        return {"yes": True, "no": False}.get(option)
    return option if any(one.id == option for one in line.options) else None


def _kind(request: PermissionRequest) -> str:
    match request.subject:
        case CommandSubject():
            return "execute"
        case TargetSubject(type=kind) if kind in {"edit", "delete", "fetch"}:
            return kind
        case _:
            return "other"


def _texts(request: PermissionRequest) -> tuple[str, ...]:
    match request.subject:
        case CommandSubject(command=command):
            return (request.description or "", f"```sh\n{command}\n```")
        case TrustSubject(difference=difference) | ServerSubject(difference=difference):
            return (request.description or "", difference)
        case _:
            return (request.description or "",)


def _fits(line: QuestionLine, answer: JsonValue) -> bool:
    options = {option.id for option in line.options}
    match line.kind:
        case "confirm":
            return isinstance(answer, bool)
        case "text":
            return isinstance(answer, str)
        case "choice" if isinstance(answer, list):
            return all(isinstance(one, str) and one in options for one in answer)
        case "choice":
            return isinstance(answer, str) and answer in options


def _property(line: QuestionLine) -> JsonObject:
    default: dict[str, JsonValue] = {}
    if line.default is not None:
        default["default"] = line.default
    match line.kind:
        case "confirm":
            return {"type": "boolean", "title": line.text, **default}
        case "text":
            return {"type": "string", "title": line.text, **default}
        case "choice":
            rows: list[JsonValue] = [
                {"const": option.id, "title": option.label} for option in line.options
            ]
            if isinstance(line.default, tuple):
                items: JsonObject = {"anyOf": rows}
                return {"type": "array", "title": line.text, "items": items, **default}
            return {"type": "string", "title": line.text, "oneOf": rows, **default}
