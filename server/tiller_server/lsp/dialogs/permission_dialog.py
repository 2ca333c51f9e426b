"""Questions as `window/showMessageRequest` shows them: a few lines, a few buttons, nothing hidden."""

from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from agent_core.channels import PermissionChoice
from agent_core.events import (
    CommandSubject,
    PermissionOption,
    PermissionRequest,
    ServerSubject,
    TrustSubject,
)
from agent_core.kernel.text import shown
from tiller_server.lsp.jsonrpc.messages import as_object

ACTIONS: Final = 4
TITLE_CHARS: Final = 60
MOST_CHARS: Final = 8_192
"""Longest text of a request in a dialog, in characters; a longer one is unreadable there and can only be refused."""
WARNING: Final = 2
OFFERED: Final = (
    "allowOnce",
    "allowSession",
    "allowProject",
    "rejectOnce",
    "rejectAlways",
    "allowRun",
    "allowUser",
)
"""Which ways to answer get a button, the first four that there are; shown in the order of the request."""


class DialogAction(TypedDict):
    """Button of a dialog."""

    title: str
    optionId: str


class Dialog(TypedDict):
    """Params of `window/showMessageRequest`."""

    type: int
    message: str
    actions: list[DialogAction]


def dialog(request: PermissionRequest) -> Dialog:
    """Return the params of the dialog: at most three lines and four buttons."""
    target = exactly(_target(request))
    fits = len(target) <= MOST_CHARS
    if not fits:
        target = (
            f"{target[:TITLE_CHARS]}… ({len(target)} characters: too long to be allowed from here)"
        )
    options = _buttons(request.options) if fits else _refusals(request.options)
    return {
        "type": WARNING,
        "message": "\n".join((_headline(request), target, _why(request))),
        "actions": [{"title": shortened(one.label), "optionId": one.id} for one in options],
    }


def chosen(request: PermissionRequest, answer: object) -> str:
    """Return the option that was taken; a dialog that was dismissed, or answered oddly, takes the default, a no."""
    action = as_object(answer) or {}
    offered = {one["optionId"]: one["title"] for one in dialog(request)["actions"]}
    option = action.get("optionId")
    if isinstance(option, str):
        return option if option in offered else request.default
    titles = [taken for taken, title in offered.items() if title == action.get("title")]
    return titles[0] if len(titles) == 1 else request.default


def answered(request: PermissionRequest, answer: object) -> PermissionChoice:
    """Read the answer to `agent/permission`: the option and the note; an invalid answer selects the default, a no."""
    given = as_object(answer) or {}
    option, note = given.get("option"), given.get("note")
    is_valid = isinstance(option, str) and request.option(option) is not None
    return PermissionChoice(
        option=str(option) if is_valid else request.default,
        note=note[:MOST_CHARS] if isinstance(note, str) and note else None,
    )


def exactly(text: str) -> str:
    """Return a text on one line with nothing hidden in it: characters that do not print are named."""
    return "".join(_visible(char) for char in shown(text))


def shortened(label: str) -> str:
    """Fit a label on a button."""
    return label if len(label) <= TITLE_CHARS else f"{label[: TITLE_CHARS - 1]}…"


def _visible(char: str) -> str:
    if char == "\n":
        return "⏎ "
    return char if char.isprintable() else f"<U+{ord(char):04X}>"


def _headline(request: PermissionRequest) -> str:
    subject = request.subject
    if isinstance(subject, CommandSubject):
        wants = f" with {' and '.join(subject.needs)}" if subject.needs else ""
        where = exactly(str(subject.cwd))
        return f"Tiller wants to run a command{wants} in {where} (containment: {subject.sandbox})"
    if isinstance(subject, TrustSubject | ServerSubject):
        return exactly(request.title)
    return f"Tiller wants to use {exactly(subject.tool)} (risk: {request.risk})"


def _target(request: PermissionRequest) -> str:
    subject = request.subject
    if isinstance(subject, CommandSubject):
        return subject.command
    if isinstance(subject, TrustSubject):
        names = (*subject.changed, *subject.added, *subject.removed)
        return f"{subject.folder}: {', '.join(names)}" if names else str(subject.folder)
    if isinstance(subject, ServerSubject):
        return f"{', '.join((*subject.changed, *subject.added))} of {subject.way}"
    return str(subject.path) if subject.path is not None else _arguments_text(subject.input or {})


def _arguments_text(given: Mapping[str, object]) -> str:
    return ", ".join(f"{name}: {one}" for name, one in given.items()) or "(no arguments)"


def _why(request: PermissionRequest) -> str:
    return f"Why you are asked: {exactly(request.description or 'no rule allows it')}"


def _buttons(options: Sequence[PermissionOption]) -> list[PermissionOption]:
    ranked = sorted(options, key=lambda one: OFFERED.index(one.kind))[:ACTIONS]
    return [one for one in options if one in ranked]


def _refusals(options: Sequence[PermissionOption]) -> list[PermissionOption]:
    return [one for one in options if one.kind.startswith("reject")][:ACTIONS]
