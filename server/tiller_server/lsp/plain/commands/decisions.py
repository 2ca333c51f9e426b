"""Commands by which the user gives their word: on changes, on the folder, on rules."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from agent_core.changes.decisions import Action
from agent_core.events import RuleShown
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.operations.review_commands import decide
from tiller_server.lsp.plain.client import Room
from tiller_server.lsp.plain.commands.arguments import Arguments, check_nothing, object_of
from tiller_server.lsp.sessions.client import bad

DONE: Final[Mapping[str, str]] = {"accept": "kept", "reject": "taken back"}
MOST_RULES: Final = 20
"""So many are told in one message."""


async def accept(room: Room, arguments: Arguments) -> object:
    """Keep a change, those of a file, or all that wait."""
    return await _decide(room, "accept", arguments)


async def reject(room: Room, arguments: Arguments) -> object:
    """Revert a change, those of a file, or all that are pending."""
    return await _decide(room, "reject", arguments)


async def restore(room: Room, arguments: Arguments) -> object:
    """Ask whether the files of the last run go back; the answer does not wait for the user's."""
    check_nothing("tiller.restore", arguments)
    front = room.front
    front.dialogs.check_may_decide()
    hosted = await front.hosted()
    try:
        offered = hosted.session.checkpoints.offer()
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    await front.flush()
    if offered is None:
        room.tell("the last run changed nothing that could be taken back.")
    return {"checkpoint": None if offered is None else offered.checkpoint}


async def trust(room: Room, arguments: Arguments) -> object:
    """Trust the folder of the session."""
    check_nothing("tiller.trust", arguments)
    front = room.front
    front.dialogs.check_may_decide()
    hosted = await front.hosted()
    try:
        decided = await hosted.session.permissions.decide_trust(trusted=True)
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    room.tell(f"{decided.folder} is trusted.")
    return serializer.trust(decided)


async def rules(room: Room, arguments: Arguments) -> object:
    """Show the standing answers, or take one away: `{"remove": ID}`."""
    asked = object_of("tiller.rules", arguments, known={"remove": str})
    front = room.front
    hosted = await front.hosted()
    permissions = hosted.session.permissions
    try:
        if "remove" in asked:
            front.dialogs.check_may_decide()
            _check_known(asked["remove"], await permissions.refresh())
            found = await permissions.remove(asked["remove"])
        else:
            found = await permissions.refresh()
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    room.tell(rules_text(found))
    return {"rules": [one.id for one in found]}


def rules_text(rules: tuple[RuleShown, ...]) -> str:
    """Return which rules there are."""
    if not rules:
        return "there are no rules; an answer that is to last makes one."
    told = [f"{one.verdict} {_about(one)} ({one.scope}, {one.id})" for one in rules[:MOST_RULES]]
    more = f" · and {len(rules) - MOST_RULES} more" if len(rules) > MOST_RULES else ""
    return f"{len(rules)} rules: {' · '.join(told)}{more}"


async def _decide(room: Room, action: Action, arguments: Arguments) -> object:
    answer: Any = await decide(room.front, action, tuple(arguments))
    room.tell(_decided(action, Counter(answer["results"]), is_all=not arguments))
    return answer


def _decided(action: Action, counted: Counter[str], *, is_all: bool) -> str:
    """Return what came of a word. A word on everything counts also what was decided before."""
    others = 0 if is_all and not counted["conflict"] else counted.total() - counted["done"]
    parts = [f"{counted['done']} {DONE[action]}"] if counted["done"] else []
    if others and (parts or not is_all):
        parts.append(f"{others} not: it was decided or changed meanwhile")
    return f"{' · '.join(parts)}." if parts else "nothing waits for your word."


def _about(rule: RuleShown) -> str:
    what = " ".join(rule.argv_prefix or ()) or rule.path or rule.host or rule.mcp
    return f"{rule.tool} `{what}`" if what else rule.tool


def _check_known(rule: str, there: tuple[RuleShown, ...]) -> None:
    if all(one.id != rule for one in there):
        message = f"tiller.rules: no rule has the id {rule!r:.80}"
        raise bad(message)
