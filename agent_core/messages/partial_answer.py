"""An answer while it streams, with the content to keep if it is cut off."""

from agent_core.messages.values import AssistantContent, Text, Thinking


class PartialAnswer:
    """The words and thoughts that have come so far.

    Tool calls are left out on purpose: a call that was not finished is never executed, and one without
    a result would make the next request invalid.
    """

    def __init__(self) -> None:
        self._kinds: list[type[Text | Thinking]] = []
        self._pieces: list[list[str]] = []

    def text(self, piece: str) -> None:
        """Append words."""
        self._append(Text, piece)

    def thinking(self, piece: str) -> None:
        """Append a thought."""
        self._append(Thinking, piece)

    def content(self) -> tuple[AssistantContent, ...]:
        """Return the content so far; parts of only white space are dropped."""
        whole = (
            (kind, "".join(part)) for kind, part in zip(self._kinds, self._pieces, strict=True)
        )
        return tuple(kind(text=text) for kind, text in whole if text.strip())

    def _append(self, kind: type[Text] | type[Thinking], piece: str) -> None:
        if not self._kinds or self._kinds[-1] is not kind:
            self._kinds.append(kind)
            self._pieces.append([])
        self._pieces[-1].append(piece)
