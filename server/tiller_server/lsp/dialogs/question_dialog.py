"""Questions about what is meant as `window/showMessageRequest` shows them, and what is read from the answers: pure."""

from collections.abc import Mapping
from typing import Final

from agent_core.events import Question, QuestionLine
from tiller_server.lsp.dialogs.permission_dialog import ACTIONS, Dialog, exactly, shortened
from tiller_server.lsp.jsonrpc.messages import as_object

INFO: Final = 3
MESSAGE_CHARS: Final = 2_000
YES: Final = "Yes"
NO: Final = "No"


def shows(line: QuestionLine) -> bool:
    """Return whether a plain dialog can ask it: a few buttons, and nothing to type."""
    if line.kind == "text" or len(line.text) > MESSAGE_CHARS:
        return False
    return line.kind == "confirm" or len(line.options) <= ACTIONS


def missing(question: Question) -> tuple[QuestionLine, ...]:
    """Return the lines for which a plain client has neither a dialog nor a default."""
    return tuple(one for one in question.questions if not shows(one) and one.default is None)


def line_dialog(line: QuestionLine) -> Dialog:
    """Return the params of the dialog for a line that `shows`."""
    text = exactly(line.text)
    return {
        "type": INFO,
        "message": f"Tiller asks: {text}",
        "actions": [{"title": title, "optionId": one} for one, title in _buttons(line).items()],
    }


def line_answer(line: QuestionLine, given: object) -> str | bool | None:
    """Read the button that was pressed; None: it was dismissed, or answered oddly."""
    action = as_object(given) or {}
    buttons = _buttons(line)
    option = action.get("optionId")
    if not isinstance(option, str):
        titles = [one for one, title in buttons.items() if title == action.get("title")]
        option = titles[0] if len(titles) == 1 else ""
    if option not in buttons:
        return None
    return option == YES if line.kind == "confirm" else option


def form_answer(given: object) -> Mapping[str, object] | None:
    """Read the answer to `agent/question`; None: it was declined, or is none."""
    return as_object((as_object(given) or {}).get("answers"))


def untold(question: Question) -> str:
    """Return the message to the user about the parts of a question that this editor cannot show."""
    texts = "; ".join(shortened(exactly(one.text)) for one in missing(question))
    return f"Tiller asks what this editor cannot show: {texts}. Answer in a client that can, or say it in the next prompt."


def _buttons(line: QuestionLine) -> dict[str, str]:
    if line.kind == "confirm":
        return {YES: YES, NO: NO}
    return {one.id: shortened(exactly(one.label)) for one in line.options}
