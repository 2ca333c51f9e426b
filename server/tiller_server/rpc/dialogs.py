"""Permission requests and questions as dialogs of pi: `extension_ui_request`, answered by `extension_ui_response`."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.events import (
    Event,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionRequested,
    QuestionResolved,
)
from agent_core.events.values import Answer, QuestionLine
from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.values import Value

PERMISSION: Final = "agent/permission/respond"
QUESTION: Final = "agent/question/respond"


class Reply(Value, frozen=True, kw_only=True):
    """Answer for the server."""

    method: str
    params: Mapping[str, JsonValue]


class Form:
    """A question whose lines are asked one after another."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answers: dict[str, Answer] = {}

    @property
    def line(self) -> QuestionLine:
        """The line that is asked now."""
        return self.question.questions[len(self.answers)]

    @property
    def is_complete(self) -> bool:
        """Whether every line has an answer."""
        return len(self.answers) == len(self.question.questions)


class Dialogs:
    """The dialogs that wait for the client."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, PermissionRequest | Form] = {}
        """By the id of their record."""

    def see(self, event: Event) -> Sequence[JsonObject]:
        """Return the dialogs to show for an event; forget those that were answered elsewhere."""
        match event:
            case PermissionRequested(request=request):
                self._waiting[request.request] = request
                return [self._permission(request)]
            case QuestionRequested(request=question) if question.questions:
                return [self._ask(Form(question))]
            case PermissionResolved(request=name) | QuestionResolved(request=name):
                self._withdraw(name)
                return ()
            case _:
                return ()

    def answered(self, response: JsonObject) -> tuple[Reply | None, Sequence[JsonObject]]:
        """Return the reply that a response of the client completes, and the next dialog of its form.

        A response to a dialog that waits no longer, or was never shown, has neither.
        """
        name = response.get("id")
        waiting = self._waiting.pop(name, None) if isinstance(name, str) else None
        if isinstance(waiting, PermissionRequest):
            chosen = _labels(waiting).get(str(response.get("value")), waiting.default)
            params: JsonObject = {"request": waiting.request, "option": chosen}
            return Reply(method=PERMISSION, params=params), ()
        if waiting is None:
            return None, ()
        request = waiting.question.request
        answer = _answer(waiting.line, response)
        if answer is None:
            return Reply(method=QUESTION, params={"request": request, "cancelled": True}), ()
        waiting.answers[waiting.line.id] = answer
        if not waiting.is_complete:
            return None, [self._ask(waiting)]
        answers = {
            line: list(one) if isinstance(one, tuple) else one
            for line, one in waiting.answers.items()
        }
        return Reply(method=QUESTION, params={"request": request, "answers": answers}), ()

    def clear(self) -> None:
        """Forget all: another session is in front."""
        self._waiting.clear()

    def _withdraw(self, request: str) -> None:
        self._waiting = {
            name: one
            for name, one in self._waiting.items()
            if request
            != (one.request if isinstance(one, PermissionRequest) else one.question.request)
        }

    def _permission(self, request: PermissionRequest) -> JsonObject:
        title = "\n".join(filter(None, (request.title, request.description)))
        options: list[JsonValue] = [*_labels(request)]
        shown: JsonObject = {"title": title, "options": options}
        return self._record(request.request, "select", shown, request.expires_ms)

    def _ask(self, form: Form) -> JsonObject:
        line = form.line
        name = f"{form.question.request}/{line.id}"
        self._waiting[name] = form
        expires = form.question.expires_ms
        match line.kind:
            case "choice":
                options: list[JsonValue] = [one.label for one in line.options]
                shown: JsonObject = {"title": line.text, "options": options}
                return self._record(name, "select", shown, expires)
            case "confirm":
                return self._record(name, "confirm", {"title": line.text, "message": ""}, expires)
            case "text":
                hint = {"placeholder": line.default} if isinstance(line.default, str) else {}
                return self._record(name, "input", {"title": line.text, **hint}, expires)

    def _record(
        self, name: str, method: str, shown: JsonObject, expires_ms: int | None
    ) -> JsonObject:
        left_ms = None if expires_ms is None else max(0, expires_ms - self._clock.now_ms())
        timed = {} if left_ms is None else {"timeout": left_ms}
        return {"type": "extension_ui_request", "id": name, "method": method, **shown, **timed}


def _labels(request: PermissionRequest) -> dict[str, str]:
    """Return the ids of the options by their labels; a label that stands twice has the id behind it."""
    out: dict[str, str] = {}
    for option in request.options:
        label = option.label if option.label not in out else f"{option.label} ({option.id})"
        out[label] = option.id
    return out


def _answer(line: QuestionLine, response: JsonObject) -> Answer | None:
    """Return the answer to a line; None: the user declined, or the response does not fit."""
    value, confirmed = response.get("value"), response.get("confirmed")
    if response.get("cancelled") is True:
        return None
    match line.kind:
        case "confirm":
            return confirmed if isinstance(confirmed, bool) else None
        case "text":
            return value if isinstance(value, str) else None
        case "choice":
            return next((one.id for one in line.options if one.label == value), None)
