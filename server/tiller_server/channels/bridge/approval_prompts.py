"""Permission requests, questions and plans of the agent as messages with buttons. Pure."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from agent_core.channels.messaging.delivery.text_parts import shortened
from agent_core.channels.messaging.port import ApprovalOption, ApprovalPrompt
from agent_core.channels.messaging.store.approvals import ApprovalKind, StoredApproval
from agent_core.events import (
    CommandSubject,
    PermissionRequest,
    PermissionSubject,
    Question,
    QuestionLine,
    ServerSubject,
    TargetSubject,
    TrustSubject,
)
from agent_core.kernel import JsonValue
from agent_core.kernel.json import encode
from agent_core.kernel.redaction.redactor import TextRedactor
from agent_core.kernel.values import Value

SHOWN_CHARS: Final = 1500
"""Longest command or text in an approval; the digest is over what is shown."""
PLAN_CHARS: Final = 6000
DIGEST_DIGITS: Final = 16
OFFERED: Final[Mapping[str, tuple[str, str]]] = {
    "allowOnce": ("once", "Allow once"),
    "allowSession": ("session", "Allow for this session"),
    "rejectOnce": ("deny", "Deny"),
}
"""Options of the agent that a chat offers, by kind: their id and label here. Rules beyond the session are made elsewhere."""
LABELS: Final[Mapping[str, str]] = {
    "once": "Allowed once",
    "session": "Allowed for this session",
    "deny": "Denied",
    "accept": "Accepted",
    "reject": "Rejected",
    "decline": "Declined",
}
DENY: Final = "deny"
DECLINE: Final = "decline"
ACCEPT: Final = "accept"
REJECT: Final = "reject"
REFUSALS: Final = frozenset({DENY, DECLINE, REJECT})


class ApprovalEnd(Value, frozen=True, kw_only=True):
    """How an approval has ended."""

    label: str
    by: str = ""
    """Name of the person, or of the other front end; empty: there was no decision."""
    allowed: bool = False
    """Whether a permission was given, a plan accepted or a question answered."""


EXPIRED: Final = ApprovalEnd(label="Expired: denied")
WITHDRAWN: Final = ApprovalEnd(label="Withdrawn")


class PromptDraft(Value, frozen=True, kw_only=True):
    """A message with buttons, and the answer of each button for the agent."""

    kind: ApprovalKind
    prompt: ApprovalPrompt
    answers: Mapping[str, JsonValue]


def permission_draft(
    request: PermissionRequest, *, workspace: str, code: str, cleaner: TextRedactor
) -> PromptDraft:
    """Return a permission request as a message. Trust in folders and servers can only be denied in a chat."""
    is_trust = isinstance(request.subject, TrustSubject | ServerSubject)
    options: list[ApprovalOption] = []
    answers: dict[str, JsonValue] = {}
    for option in request.options:
        id_, label = OFFERED.get(option.kind, ("", ""))
        if not id_ or (is_trust and id_ != DENY):
            continue
        style = "danger" if id_ == DENY else "primary" if id_ == "once" else "default"
        options.append(ApprovalOption(id=id_, label=label, style=style))
        answers[id_] = option.id
    body = _subject_text(request.subject)
    if request.description:
        body = f"{body}\n\n{request.description}"
    if is_trust:
        body = f"{body}\n\nIt can be allowed in a terminal only."
    prompt = _prompt(
        request=request.request,
        title=request.title,
        risk=request.risk,
        body=body,
        detail=f"{workspace} · {_tool_of(request.subject)}",
        options=options,
        code=code,
        cleaner=cleaner,
    )
    return PromptDraft(kind="permission", prompt=prompt, answers=answers)


def question_drafts(
    question: Question, *, workspace: str, codes: Sequence[str], cleaner: TextRedactor
) -> Sequence[PromptDraft]:
    """Return a form as one message for each of its lines.

    Args:
        question: The form.
        workspace: Name of the workspace.
        codes: A code for each line.
        cleaner: Removes secrets.
    """
    is_form = len(question.questions) > 1
    return [
        _line_draft(
            line,
            request=line_request(question.request, number if is_form else None),
            workspace=workspace,
            code=code,
            cleaner=cleaner,
        )
        for number, (line, code) in enumerate(zip(question.questions, codes, strict=True))
    ]


def line_request(request: str, number: int | None) -> str:
    """Return the id of the approval of a line; None: the form has one line only."""
    return request if number is None else f"{request}#{number}"


def question_of(request: str) -> str:
    """Return the request that an approval belongs to."""
    return request.partition("#")[0]


def chosen_end(approval: StoredApproval) -> ApprovalEnd:
    """Return the end that the answer of a person has brought."""
    options = approval.shown.options
    label = next((option.label for option in options if option.id == approval.option), "Answered")
    return ApprovalEnd(
        label=LABELS.get(approval.option, label),
        by=approval.by_name,
        allowed=approval.option not in REFUSALS,
    )


def plan_draft(
    *, run: str, markdown: str, plan_hash: str, workspace: str, code: str, cleaner: TextRedactor
) -> PromptDraft:
    """Return a plan as a message."""
    prompt = _prompt(
        request=f"plan-{run}",
        title="Plan",
        risk="low",
        body=f"{shortened(markdown, limit=PLAN_CHARS)}\n\nAnswer with a message to ask for changes.",
        detail=f"{workspace} · plan",
        options=[
            ApprovalOption(id=ACCEPT, label="Accept", style="primary"),
            ApprovalOption(id=REJECT, label="Reject", style="danger"),
        ],
        code=code,
        cleaner=cleaner,
    )
    answers: dict[str, JsonValue] = {
        ACCEPT: {"sha256": plan_hash, "answer": "approve"},
        REJECT: {"sha256": plan_hash, "answer": "reject"},
    }
    return PromptDraft(kind="plan", prompt=prompt, answers=answers)


def _line_draft(
    line: QuestionLine, *, request: str, workspace: str, code: str, cleaner: TextRedactor
) -> PromptDraft:
    options: list[ApprovalOption] = []
    answers: dict[str, JsonValue] = {}
    body = line.text
    match line.kind:
        case "choice":
            for number, option in enumerate(line.options, 1):
                id_ = f"o{number}"
                options.append(ApprovalOption(id=id_, label=option.label))
                answers[id_] = {"line": line.id, "value": option.id}
                if option.description:
                    body = f"{body}\n- **{option.label}**: {option.description}"
        case "confirm":
            for id_, label, value in (("yes", "Yes", True), ("no", "No", False)):
                options.append(ApprovalOption(id=id_, label=label))
                answers[id_] = {"line": line.id, "value": value}
        case "text":
            body = f"{body}\n\nAnswer this message with the text."
            answers["text"] = {"line": line.id}
    options.append(ApprovalOption(id=DECLINE, label="Decline", style="danger"))
    answers[DECLINE] = {}
    prompt = _prompt(
        request=request,
        title="Question",
        risk="low",
        body=body,
        detail=f"{workspace} · question",
        options=options,
        code=code,
        cleaner=cleaner,
    )
    return PromptDraft(kind="question", prompt=prompt, answers=answers)


def _prompt(
    *,
    request: str,
    title: str,
    risk: str,
    body: str,
    detail: str,
    options: Sequence[ApprovalOption],
    code: str,
    cleaner: TextRedactor,
) -> ApprovalPrompt:
    clean_title, clean_body = cleaner.text(title), cleaner.text(body)
    labels = "\0".join(option.label for option in options)
    shown = "\0".join((clean_title, clean_body, detail, labels))
    return ApprovalPrompt(
        request=request,
        title=clean_title,
        risk="high" if risk == "high" else "low" if risk == "low" else "medium",
        body=clean_body,
        detail=detail,
        options=tuple(options),
        digest=sha256(shown.encode()).hexdigest()[:DIGEST_DIGITS],
        code=code,
    )


def _subject_text(subject: PermissionSubject) -> str:
    match subject:
        case CommandSubject():
            return _fenced(subject.command)
        case TargetSubject():
            path = "" if subject.path is None else f"`{subject.path}`"
            given = "" if subject.input is None else _fenced(encode(subject.input).decode())
            return "\n".join(part for part in (path, given) if part) or subject.tool
        case TrustSubject():
            return f"`{subject.folder}`"
        case ServerSubject():
            return f"`{subject.server}`: {subject.way}"


def _fenced(text: str) -> str:
    mark = "```"
    while mark in text:
        mark += "`"
    cut = shortened(text, limit=SHOWN_CHARS)
    if cut != text:
        digest = sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]
        return f"{mark}\n{cut}\n{mark}\n{len(text)} characters, SHA-256 {digest}"
    return f"{mark}\n{cut}\n{mark}"


def _tool_of(subject: PermissionSubject) -> str:
    match subject:
        case CommandSubject():
            return "command"
        case TargetSubject():
            return subject.tool
        case TrustSubject():
            return "trust"
        case ServerSubject():
            return "tool server"
