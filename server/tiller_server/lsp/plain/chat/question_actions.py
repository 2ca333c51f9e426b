"""Actions in the chat file beside writing: answers to pending requests, and a stop. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from agent_core.events import PermissionRequest, Question, QuestionLine
from agent_core.kernel import JsonValue
from agent_core.session import AgentSession
from tiller_server.lsp.dialogs.permission_dialog import exactly, shortened
from tiller_server.lsp.plain.chat.format import ChatPiece, draft_of, sections
from tiller_server.lsp.plain.chat.pieces import permission_pieces, question_pieces

KIND: Final = "quickfix.tiller"
ANSWER: Final = "tiller.answer"
YES_OR_NO: Final = ("Yes", "No")

ChatAction = dict[str, JsonValue]
PendingChatRequest = PermissionRequest | Question


def actions(session: AgentSession, text: str, lines0: tuple[int, int]) -> list[ChatAction]:
    """Return the code actions for some lines: answers to the requests there, else to all pending ones; stop; send.

    Args:
        session: The session.
        text: The file.
        lines0: The first and the last line.
    """
    waiting: Sequence[PendingChatRequest] = (
        *session.permissions.pending,
        *session.questions.pending,
    )
    here = [one for one in waiting if _reaches(one, text, lines0)]
    draft = draft_of(text)
    draft_text = "" if draft is None else draft.text
    found = [action for one in here or waiting for action in _answers(one, draft_text=draft_text)]
    if session.info.snapshot().state != "idle":
        found.append(_action("Tiller: Stop", "tiller.stop"))
    if draft_text:
        found.append(_action("Tiller: Send", "tiller.send"))
    return found


def lenses(session: AgentSession, text: str) -> list[ChatAction]:
    """Return the code lenses: a stop at the answer that is being given, a way to send at the draft, and the answers."""
    found: list[ChatAction] = []
    there = sections(text)
    answer = next((one for one in reversed(there) if one.who == "agent"), None)
    if answer is not None and session.info.snapshot().state != "idle":
        found.append(_lens(text, answer.start, _command("Stop", "tiller.stop")))
    draft = draft_of(text)
    if draft is not None and draft.text:
        found.append(_lens(text, draft.start, _command("Send", "tiller.send")))
    for asked in (*session.permissions.pending, *session.questions.pending):
        at = text.rfind(_first(asked))
        if at >= 0:
            found.extend(_lens(text, at, one["command"]) for one in _answers(asked))
    return found


def _reaches(asked: PendingChatRequest, text: str, lines0: tuple[int, int]) -> bool:
    """Return whether a question stands on some of these lines."""
    pieces = [*_pieces(asked)]
    at = text.rfind(pieces[0].text)
    if at < 0:
        return False
    first = text.count("\n", 0, at)
    return first <= lines0[1] and first + len(pieces) > lines0[0]


def _first(asked: PendingChatRequest) -> str:
    return next(iter(_pieces(asked))).text


def _pieces(asked: PendingChatRequest) -> Iterator[ChatPiece]:
    yield from question_pieces(asked) if isinstance(asked, Question) else permission_pieces(asked)


def _answers(asked: PendingChatRequest, *, draft_text: str = "") -> Iterator[ChatAction]:
    if isinstance(asked, PermissionRequest):
        for option in asked.options:
            argument = {"request": asked.request, "option": option.id}
            yield _action(f"Tiller: {shortened(exactly(option.label))}", ANSWER, argument)
        return
    several = len(asked.questions) > 1
    for one in asked.questions:
        about = f"{shortened(exactly(one.text))} " if several else ""
        if one.kind == "text" and draft_text:
            argument = {"request": asked.request, "line": one.id}
            yield _action(f"Tiller: {about}Answer with the words below", ANSWER, argument)
        for option, label in _options(one):
            argument = {"request": asked.request, "option": option}
            if several:
                argument["line"] = one.id
            yield _action(f"Tiller: {about}{shortened(exactly(label))}", ANSWER, argument)


def _options(one: QuestionLine) -> Sequence[tuple[str, str]]:
    if one.kind == "confirm":
        return [(word, word) for word in YES_OR_NO]
    return [(option.id, option.label) for option in one.options]


def _action(title: str, command: str, argument: dict[str, str] | None = None) -> ChatAction:
    return {"title": title, "kind": KIND, "command": _command(title, command, argument)}


def _command(title: str, command: str, argument: dict[str, str] | None = None) -> ChatAction:
    arguments: list[JsonValue] = [] if argument is None else [{**argument}]
    return {"title": title, "command": command, "arguments": arguments}


def _lens(text: str, offset: int, command: JsonValue) -> ChatAction:
    at: JsonValue = {"line": text.count("\n", 0, offset), "character": 0}
    return {"range": {"start": at, "end": at}, "command": command}
