"""How an extension speaks with people: dialogs that wait for an answer, and views that a client shows in its own way."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Literal, NoReturn, Protocol, TypeAlias

from agent_core.events import (
    Answer,
    Answers,
    QuestionLine,
    QuestionOption,
    UiEditorText,
    UiEvent,
    UiNotify,
    UiStatus,
    UiTitle,
    UiWidget,
)
from agent_core.extensions.ports import SHOWN, Lifetime, ViewKind
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import Unsupported, UsageError
from agent_core.kernel.values import Value

TextViewStyle: TypeAlias = Literal["plain", "markdown", "code"]


class TextView(Value, frozen=True, kw_only=True):
    """Words."""

    text: str
    title: str = ""
    style: TextViewStyle = "plain"


class Row(Value, frozen=True, kw_only=True):
    """One line of a list."""

    text: str
    detail: str = ""
    done: bool | None = None
    """Shown as a box that is ticked or not; None: there is no box."""


class ListView(Value, frozen=True, kw_only=True):
    """Lines one below the other."""

    rows: Sequence[Row]
    title: str = ""


class TableView(Value, frozen=True, kw_only=True):
    """Cells in columns."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


View: TypeAlias = TextView | ListView | TableView


def view_json(view: object) -> JsonObject:
    """Return a view as JSON; plain words are a view as well.

    Raises:
        TypeError: An extension gave something else.
    """
    match view:
        case str():
            return {"kind": "text", "text": view, "style": "plain"}
        case TextView():
            made: JsonObject = {"kind": "text", "text": view.text, "style": view.style}
        case ListView():
            made = {"kind": "list", "rows": [_row(one) for one in view.rows]}
        case TableView():
            made = {
                "kind": "table",
                "head": list(view.head),
                "rows": [list(one) for one in view.rows],
            }
        case _:
            message = f"{view!r:.200} is no view; return a text, TextView, ListView or TableView"
            raise TypeError(message)
    return {**made, "title": view.title} if view.title else made


def _row(row: Row) -> JsonObject:
    made: JsonObject = {"text": row.text}
    if row.detail:
        made = {**made, "detail": row.detail}
    return made if row.done is None else {**made, "done": row.done}


Level = Literal["info", "warning", "error"]
Placement = Literal["aboveEditor", "belowEditor"]
Pause = Callable[[], AbstractContextManager[object]]
"""Stops the clock of a hook while it waits for something else."""
LINE: Final = "answer"
WORKING: Final = "working"
"""The key under which the words are shown that stand while a model is waited for."""

NOT_OFFERED: Final[Mapping[str, str]] = {
    "on_terminal_input": "there is no terminal; register a command or a shortcut",
    "set_footer": "a client draws its own footer; use status or widget",
    "set_header": "a client draws its own header; use widget",
    "custom": "a client draws with its own means; use widget, or a dialog",
    "set_editor_component": "the editor belongs to the user; use set_editor_text",
    "get_editor_text": "a client does not tell what is being typed; ask with input or editor",
    "theme": "colours are the client's",
    "get_all_themes": "colours are the client's",
    "get_theme": "colours are the client's",
    "set_theme": "colours are the client's",
    "get_tools_expanded": "what is folded is the client's",
    "set_tools_expanded": "what is folded is the client's",
}
"""UI functions of other agents that an editor cannot show, with the alternative."""
NOBODY: Final[Mapping[str, str]] = {
    "policy": "nobody is to be asked here",
    "unshown": "no client can show it",
    "timeout": "nobody answered in time",
    "cancelled": "it was withdrawn",
}


class ClientScreen(Protocol):
    """Where dialogs and views go."""

    @property
    def is_attended(self) -> bool:
        """Whether people can be asked."""
        ...

    async def ask(self, line: QuestionLine, *, timeout_s: float | None) -> Answers:
        """Ask and wait.

        Raises:
            UsageError: It is no question that can be asked.
        """
        ...

    def shows(self, what: ViewKind) -> bool:
        """Return whether some client shows such a thing."""
        ...

    def show(self, event: UiEvent) -> None:
        """Hand a view to the clients."""
        ...


class Ui:
    """Dialogs and views of one extension. `unanswered` and `unshown` record those that no client can show."""

    def __init__(
        self, extension: str, screen: ClientScreen, *, life: Lifetime, pause: Pause
    ) -> None:
        self._extension = extension
        self._screen = screen
        self._life = life
        self._pause = pause
        self.unanswered: tuple[str, ...] = ()
        """The dialogs of this context that got no answer from a person, each with the reason."""
        self.unshown: frozenset[ViewKind] = frozenset()
        """Kinds of views that this context published although no client shows them."""

    def shows(self, what: ViewKind) -> bool:
        """Return whether some client shows such a thing now."""
        return self._screen.shows(what)

    async def select(
        self, title: str, options: Sequence[str], *, timeout_s: float | None = None
    ) -> str | None:
        """Ask the user to choose an option; return it, or None when none was chosen.

        Args:
            title: The question.
            options: Shown as they are; equal ones are distinguished by position.
            timeout_s: Seconds after which None is returned; None: as for permissions.

        Raises:
            UsageError: There are no options, or more than can be read.
        """
        shown = tuple(
            QuestionOption(id=str(number), label=text) for number, text in enumerate(options)
        )
        chosen = await self._ask(
            "select",
            QuestionLine(id=LINE, text=self._said(title), kind="choice", options=shown),
            timeout_s,
        )
        return options[int(chosen)] if isinstance(chosen, str) else None

    async def confirm(
        self, title: str, message: str = "", *, timeout_s: float | None = None
    ) -> bool:
        """Ask for a yes; no, silence and having nobody to ask are False."""
        text = self._said(title, message)
        line = QuestionLine(id=LINE, text=text, kind="confirm")
        return await self._ask("confirm", line, timeout_s) is True

    async def input(
        self, title: str, placeholder: str = "", *, timeout_s: float | None = None
    ) -> str | None:
        """Ask the user for a line of text; None: no answer."""
        hint = f"({placeholder})" if placeholder else ""
        line = QuestionLine(id=LINE, text=self._said(title, hint), kind="text")
        answer = await self._ask("input", line, timeout_s)
        return answer if isinstance(answer, str) else None

    async def editor(
        self, title: str, prefill: str = "", *, timeout_s: float | None = None
    ) -> str | None:
        """Ask the user for a longer text; None: no answer. The initial text is shown with the question."""
        line = QuestionLine(id=LINE, text=self._said(title, prefill), kind="text")
        answer = await self._ask("editor", line, timeout_s)
        return answer if isinstance(answer, str) else None

    def notify(self, message: str, level: Level = "info") -> None:
        """Show a notification; no answer is expected."""
        self._show(UiNotify(extension=self._extension, view={"text": message, "level": level}))

    def status(self, key: str, text: str | None) -> None:
        """Show a few words under a key until others come; None takes them off."""
        self._show(UiStatus(extension=self._extension, view={"key": key, "text": text}))

    def working(self, text: str | None = None) -> None:
        """Show a status text while a model works; None: the client's own text."""
        self.status(WORKING, text)

    def widget(
        self,
        key: str,
        view: View | str | Sequence[str] | None,
        *,
        placement: Placement = "aboveEditor",
    ) -> None:
        """Show a view under a key until another comes; None takes it off."""
        shown: JsonValue = None
        if view is not None:
            plain = (
                "\n".join(view)
                if isinstance(view, Sequence) and not isinstance(view, str)
                else view
            )
            shown = view_json(plain)
        self._show(
            UiWidget(
                extension=self._extension,
                view={"key": key, "view": shown, "placement": placement},
            )
        )

    def title(self, text: str) -> None:
        """Name the window, where a client lets it be named."""
        self._show(UiTitle(extension=self._extension, view={"text": text}))

    def set_editor_text(self, text: str) -> None:
        """Replace the text in the user's input editor."""
        self._show(UiEditorText(extension=self._extension, view={"text": text, "mode": "replace"}))

    def paste_to_editor(self, text: str) -> None:
        """Insert text into the user's input editor and keep the text that is there."""
        self._show(UiEditorText(extension=self._extension, view={"text": text, "mode": "insert"}))

    def __getattr__(self, name: str) -> NoReturn:
        if why := NOT_OFFERED.get(name):
            message = f"ui.{name} is not offered: {why}"
            raise Unsupported(message)
        raise AttributeError(name)

    async def _ask(self, call: str, line: QuestionLine, timeout_s: float | None) -> Answer | None:
        self._life.check()
        with self._pause():
            answers = await self._screen.ask(line, timeout_s=timeout_s)
        if answers.answers is None:
            why = NOBODY.get(answers.by, f"{answers.by} declined")
            self.unanswered = (*self.unanswered, f"{call}: {why}")
            return None
        return answers.answers.get(LINE)

    def _show(self, event: UiEvent) -> None:
        self._life.check()
        what = SHOWN[type(event)]
        if not self._screen.shows(what):
            self.unshown = self.unshown.union((what,))
        self._screen.show(event)

    def _said(self, title: str, more: str = "") -> str:
        """Return the text of a question, prefixed with the extension's name so that it cannot impersonate Tiller."""
        if not title.strip():
            message = f"extension {self._extension!r} asks an empty question; give it a text"
            raise UsageError(message)
        said = f"{self._extension}: {title}"
        return f"{said}\n\n{more}" if more else said
