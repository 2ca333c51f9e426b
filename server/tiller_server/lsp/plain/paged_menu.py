"""Lists to choose from in plain dialogs, which show four buttons: longer lists have pages."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from agent_core.kernel.values import Value
from tiller_server.lsp.dialogs.permission_dialog import ACTIONS, exactly, shortened
from tiller_server.lsp.jsonrpc.messages import as_object

MORE: Final = "More …"
INFO: Final = 3

ShowMenu = Callable[[Mapping[str, object]], Awaitable[object]]


class MenuChoice(Value, frozen=True, kw_only=True):
    """One thing to choose."""

    id: str
    title: str


def pages(choices: Sequence[MenuChoice]) -> list[Sequence[MenuChoice]]:
    """Deal choices out to pages: all on one where they fit, else with room for a button to the next. Pure."""
    if len(choices) <= ACTIONS:
        return [choices]
    room = ACTIONS - 1
    return [choices[at : at + room] for at in range(0, len(choices), room)]


async def choose(show: ShowMenu, question: str, choices: Sequence[MenuChoice]) -> str | None:
    """Ask the user to choose; the first page follows the last one.

    Args:
        show: Shows one dialog and returns the action that was pressed.
        question: The text of the dialog.
        choices: The choices, the likeliest first.

    Returns:
        The id of the choice; None when the dialog was closed.
    """
    dealt = pages(choices)
    at = 0
    while True:
        page = dealt[at]
        where = f" ({at + 1} of {len(dealt)})" if len(dealt) > 1 else ""
        buttons = {one.id: shortened(exactly(one.title)) for one in page}
        actions = [{"title": title, "optionId": one} for one, title in buttons.items()]
        if len(dealt) > 1:
            actions.append({"title": MORE, "optionId": MORE})
        pressed = as_object(
            await show(
                {"type": INFO, "message": f"Tiller: {exactly(question)}{where}", "actions": actions}
            )
        )
        if pressed is None:
            return None
        if pressed.get("title") == MORE:
            at = (at + 1) % len(dealt)
            continue
        return _chosen(buttons, pressed)


def _chosen(buttons: Mapping[str, str], pressed: Mapping[str, object]) -> str | None:
    option = pressed.get("optionId")
    if isinstance(option, str):
        return option if option in buttons else None
    # Some editors give nothing back but the title.
    named = [one for one, title in buttons.items() if title == pressed.get("title")]
    return named[0] if len(named) == 1 else None
