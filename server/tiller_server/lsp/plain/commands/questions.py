"""Answers to what a session asks, from where there is no dialog any more: by a code action of the chat file."""

from collections.abc import Mapping
from typing import Any, Final

from agent_core.events import Question, QuestionLine
from agent_core.kernel.errors import TillerError
from agent_core.session import AgentSession
from tiller_server.lsp.dialogs.question_dialog import YES
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.plain.commands.arguments import Arguments, object_of
from tiller_server.lsp.sessions.client import Front, bad

OVER: Final[Mapping[str, str]] = {"status": "expired"}
NO_WORDS: Final[Mapping[str, str]] = {"status": "noWords"}


async def answer(front: Front, arguments: Arguments) -> dict[str, Any]:
    """Accept an answer: `{request, option}`, and `line` where a question has several lines.

    The answer to one of several lines is stored until all lines have one. `answers` answers all lines at once; a line
    that it omits gets its default. With neither, the text below the last `## You` of the chat file is the answer.

    Raises:
        RpcError: The arguments are invalid, or this client may not decide.
    """
    known = {"request": str, "option": str, "line": str, "answers": dict, "session": str}
    asked = object_of("tiller.answer", arguments, known=known)
    if "request" not in asked:
        message = "tiller.answer takes one object with `request` and `option`; the code actions of the chat file give it"
        raise bad(message)
    front.dialogs.check_may_decide()
    if "option" in asked or "answers" in asked:
        return _first(front, asked)
    found: dict[str, Any] = {**NO_WORDS}

    def give(words: str) -> bool:
        found.update(_first(front, {**asked, "option": words}))
        return found["status"] in {"recorded", "kept"}

    _ = await front.chat.answer(give)
    if found == NO_WORDS:
        message = 'tiller.answer: write the answer below the last "## You" of the chat file first'
        raise bad(message)
    return found


def _first(front: Front, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer in the first session that asks it."""
    for hosted in front.host.sessions():
        if front not in hosted.fronts:
            continue
        try:
            found = _answered(front, hosted.session, asked)
        except TillerError as error:
            raise rpc_error(error, session=hosted.session.id) from error
        if found is not None:
            return found
    return {**OVER}


def _answered(
    front: Front, session: AgentSession, asked: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Answer in one session; None: it asks nothing of that id."""
    request, by = asked["request"], front.editor.name
    if any(one.request == request for one in session.permissions.pending):
        receipt = session.permissions.answer(request, str(asked.get("option", "")), by=by)
        return {"status": receipt.status}
    question = next((one for one in session.questions.pending if one.request == request), None)
    if question is None:
        return None
    answers = asked.get("answers")
    if answers is None:
        answers = _collected(front, question, asked)
        missing = [one.id for one in question.questions if one.id not in answers]
        if missing:
            return {"status": "kept", "missing": missing}
    receipt = session.questions.answer(request, answers, by=by)
    front.chat.partly.pop(request, None)
    return {"status": receipt.status}


def _collected(front: Front, question: Question, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers so far; a question that is over is forgotten."""
    line = _line(question, asked.get("line"))
    partly: dict[str, dict[str, Any]] = front.chat.partly
    answers = partly.setdefault(question.request, {})
    option = asked["option"]
    answers[line.id] = option == YES if line.kind == "confirm" else option
    return answers


def _line(question: Question, name: object) -> QuestionLine:
    lines = question.questions
    found = [one for one in lines if one.id == name] if name is not None else [*lines]
    if len(found) == 1:
        return found[0]
    message = f"tiller.answer: `line` names one of {', '.join(one.id for one in lines)}"
    raise bad(message)
