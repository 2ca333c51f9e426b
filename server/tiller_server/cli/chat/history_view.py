"""Shows the end of the conversation when a chat continues a session."""

from collections.abc import Sequence
from typing import Final

from agent_core.messages import UserMessage
from agent_core.transcript import AnyEntry, MessageEntry
from tiller_server.cli.stored_sessions.transcript_view import content_text, conversation_blocks
from tiller_server.cli.terminal.live_view import LiveView, quoted
from tiller_server.cli.terminal.markdown_text import rendered
from tiller_server.cli.terminal.text import BOLD, SHORT_ID, one_line

SHOWN_PROMPTS: Final = 3
"""The last prompts are shown, with all that followed them."""


def show_history(
    path: Sequence[AnyEntry], view: LiveView, *, session: str, title: str | None
) -> None:
    """Write the title and the last prompts and answers of a session above the input line; nothing if it has none.

    Args:
        path: Entries of the present branch.
        view: Where it is shown.
        session: Id of the session.
        title: Title of the session.
    """
    prompts = [place for place, entry in enumerate(path) if _is_prompt(entry)]
    if not prompts:
        return
    if shown_title := one_line(title or ""):
        view.tell(shown_title, BOLD)
    earlier = len(prompts) - SHOWN_PROMPTS
    if earlier > 0:
        what = "1 earlier prompt" if earlier == 1 else f"{earlier} earlier prompts"
        view.tell(f"… {what}: tiller sessions show {session[-SHORT_ID:]}")
    blocks = conversation_blocks(
        path[prompts[max(earlier, 0)] :],
        colour=view.shape.colour,
        prompt=lambda content: quoted(content_text(content[:1])),
        rendered=lambda text: "\n".join(
            rendered(text, columns=view.screen.columns, colour=view.shape.colour)
        ),
    )
    view.screen.above("".join(f"{block}\n" for block in blocks))


def _is_prompt(entry: object) -> bool:
    return isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
