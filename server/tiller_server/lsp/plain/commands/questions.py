"""Answers to what a session asks, from where there is no dialog any more: by a code action of the chat file."""

from collections.abc import Mapping
from typing import Final

from agent_core.events import Question, QuestionLine
from agent_core.kernel.errors import TillerError
from agent_core.session import AgentSession
from tiller_server.lsp.dialogs.question_dialog import YES
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands.arguments import CommandArguments, object_of
from tiller_server.lsp.sessions.client import invalid_params

OVER: Final[Mapping[str, str]] = {"status": "expired"}
NO_TEXT: Final[Mapping[str, str]] = {"status": "noWords"}


async def answer(plain_client: PlainClient, arguments: CommandArguments) -> dict[str, object]:
    """Accept an answer: `{request, option}`, and `line` where a question has several lines.

    The answer to one of several lines is stored until all lines have one. `answers` answers all lines at once; a line
    that it omits gets its default. With neither, the text below the last `## You` of the chat file is the answer.

    Raises:
        RpcError: The arguments are invalid, or this client may not decide.
    """
    members = {"request": str, "option": str, "line": str, "answers": dict, "session": str}
    asked = object_of("tiller.answer", arguments, members=members)
    if "request" not in asked:
        message = "tiller.answer takes one object with `request` and `option`; the code actions of the chat file give it"
        raise invalid_params(message)
    plain_client.client.dialogs.check_may_decide()
    if "option" in asked or "answers" in asked:
        return _first(plain_client, asked)
    found: dict[str, object] = {**NO_TEXT}

    def give(text: str) -> bool:
        found.update(_first(plain_client, {**asked, "option": text}))
        return found["status"] in {"recorded", "kept"}

    _ = await plain_client.chat.answer(give)
    if found == NO_TEXT:
        message = 'tiller.answer: write the answer below the last "## You" of the chat file first'
        raise invalid_params(message)
    return found


def _first(plain_client: PlainClient, asked: Mapping[str, object]) -> dict[str, object]:
    """Answer in the first session that asks it."""
    for open_session in plain_client.client.host.sessions():
        if plain_client.client not in open_session.attached_clients:
            continue
        try:
            found = _answered(plain_client, open_session.session, asked)
        except TillerError as error:
            raise to_rpc_error(error, session=open_session.session.id) from error
        if found is not None:
            return found
    return {**OVER}


def _answered(
    plain_client: PlainClient, session: AgentSession, asked: Mapping[str, object]
) -> dict[str, object] | None:
    """Answer in one session; None: it asks nothing of that id."""
    request, by = str(asked["request"]), plain_client.client.editor.name
    if any(one.request == request for one in session.permissions.pending):
        receipt = session.permissions.answer(request, str(asked.get("option", "")), by=by)
        return {"status": receipt.status}
    question = next((one for one in session.questions.pending if one.request == request), None)
    if question is None:
        return None
    answers = as_object(asked.get("answers"))
    if answers is None:
        answers = _collected(plain_client, question, asked)
        missing = [one.id for one in question.questions if one.id not in answers]
        if missing:
            return {"status": "kept", "missing": missing}
    receipt = session.questions.answer(request, answers, by=by)
    plain_client.chat.partly.pop(request, None)
    return {"status": receipt.status}


def _collected(
    plain_client: PlainClient, question: Question, asked: Mapping[str, object]
) -> dict[str, object]:
    """Return the answers so far; a question that is over is forgotten."""
    line = _line(question, asked.get("line"))
    answers = plain_client.chat.partly.setdefault(question.request, {})
    option = asked["option"]
    answers[line.id] = option == YES if line.kind == "confirm" else option
    return answers


def _line(question: Question, name: object) -> QuestionLine:
    lines = question.questions
    found = [one for one in lines if one.id == name] if name is not None else [*lines]
    if len(found) == 1:
        return found[0]
    message = f"tiller.answer: `line` names one of {', '.join(one.id for one in lines)}"
    raise invalid_params(message)
