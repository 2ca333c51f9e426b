"""Commands by which the user gives their word: on changes, also those of tasks, on the folder, on rules."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from agent_core.changes.values import HunkAction
from agent_core.events import RuleInfo
from agent_core.kernel.errors import TillerError
from agent_core.workspace.files.paths import relative_name
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.operations.review_commands import accept_or_reject
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.code_actions import mergeable
from tiller_server.lsp.plain.commands.arguments import (
    CommandArguments,
    check_nothing,
    object_of,
    text_argument,
)
from tiller_server.lsp.plain.commands.model import ask
from tiller_server.lsp.plain.paged_menu import MenuChoice
from tiller_server.lsp.sessions.client import invalid_params
from tiller_server.lsp.sessions.open_session import OpenSession

DONE: Final[Mapping[str, str]] = {"accept": "kept", "reject": "taken back"}
MOST_RULES: Final = 20
"""So many are told in one message."""


async def accept(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Keep a change, those of a file, or all that wait."""
    return await _decide(plain_client, "accept", arguments)


async def reject(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Revert a change, those of a file, or all that are pending."""
    return await _decide(plain_client, "reject", arguments)


async def restore(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Ask whether the files of the last run go back; the answer does not wait for the user's."""
    check_nothing("tiller.restore", arguments)
    client = plain_client.client
    client.dialogs.check_may_decide()
    open_session = await client.resolve_session()
    try:
        offered = open_session.session.checkpoints.offer()
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    await client.flush()
    if offered is None:
        plain_client.show_message("the last run changed nothing that could be taken back.")
    return {"checkpoint": None if offered is None else offered.checkpoint}


async def merge_task(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Merge what a task changed in its worktree: the task that is named, the only one, or one that the user chooses."""
    named = text_argument("tiller.mergeTask", arguments, key="task")
    client = plain_client.client
    client.dialogs.check_may_decide()
    open_session = await client.resolve_session()
    waiting = mergeable(open_session.session.tasks.list())
    if not named and not waiting:
        plain_client.show_message("no task left changes in a worktree.")
        return {"task": None}
    if named or len(waiting) == 1:
        return await _merge(plain_client, open_session, named or waiting[0].id)

    async def choose() -> None:
        choices = [MenuChoice(id=one.id, title=f"{one.id}: {one.description}") for one in waiting]
        question = "merge the changes of which task?"
        chosen = await ask(plain_client, "tiller.mergeTask", question, choices)
        if chosen is not None:
            try:
                _ = await _merge(plain_client, open_session, chosen)
            except RpcError as error:
                plain_client.show_message(error.message, kind=1)

    client.host.start(choose, what="the choice of a task")
    return {"task": None}


async def _merge(plain_client: PlainClient, open_session: OpenSession, id_: str) -> object:
    tasks = open_session.session.tasks
    try:
        merged = await tasks.merges.merge(id_)
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    await plain_client.client.flush()
    from agent_core.session.tools.task_worktrees import listed  # noqa: PLC0415 - at first use

    names = [relative_name(path, open_session.root) for path in merged.written]
    worktree = next((one.worktree for one in tasks.list() if one.id == id_), None)
    done = f"merged {id_} into {listed(names)}; tiller.restore takes it back"
    if not names:
        done = f"the workspace had all changes of {id_} already"
    plain_client.show_message(f"{done}. `tiller worktree remove {worktree}` removes the worktree.")
    return {"task": id_, "written": [path.as_uri() for path in merged.written]}


async def trust(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Trust the folder of the session."""
    check_nothing("tiller.trust", arguments)
    client = plain_client.client
    client.dialogs.check_may_decide()
    open_session = await client.resolve_session()
    try:
        decided = await open_session.session.permissions.decide_trust(trusted=True)
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    plain_client.show_message(f"{decided.folder} is trusted.")
    return serializer.trust(decided)


async def rules(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Show the standing answers, or take one away: `{"remove": ID}`."""
    asked = object_of("tiller.rules", arguments, members={"remove": str})
    client = plain_client.client
    open_session = await client.resolve_session()
    permissions = open_session.session.permissions
    try:
        rule = asked.get("remove")
        if isinstance(rule, str):
            client.dialogs.check_may_decide()
            _check_rule_exists(rule, await permissions.refresh())
            found = await permissions.remove(rule)
        else:
            found = await permissions.refresh()
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    plain_client.show_message(rules_text(found))
    return {"rules": [one.id for one in found]}


def rules_text(rules: tuple[RuleInfo, ...]) -> str:
    """Return which rules there are."""
    if not rules:
        return "there are no rules; an answer that is to last makes one."
    parts = [f"{one.verdict} {_about(one)} ({one.scope}, {one.id})" for one in rules[:MOST_RULES]]
    more = f" · and {len(rules) - MOST_RULES} more" if len(rules) > MOST_RULES else ""
    return f"{len(rules)} rules: {' · '.join(parts)}{more}"


async def _decide(
    plain_client: PlainClient, action: HunkAction, arguments: CommandArguments
) -> object:
    answer = await accept_or_reject(plain_client.client, action, tuple(arguments))
    plain_client.show_message(_decided(action, Counter(answer["results"]), is_all=not arguments))
    return answer


def _decided(action: HunkAction, counted: Counter[str], *, is_all: bool) -> str:
    """Return what came of a word. A word on everything counts also what was decided before."""
    others = 0 if is_all and not counted["conflict"] else counted.total() - counted["done"]
    parts = [f"{counted['done']} {DONE[action]}"] if counted["done"] else []
    if others and (parts or not is_all):
        parts.append(f"{others} not: it was decided or changed meanwhile")
    return f"{' · '.join(parts)}." if parts else "nothing waits for your word."


def _about(rule: RuleInfo) -> str:
    what = " ".join(rule.argv_prefix or ()) or rule.path or rule.host or rule.mcp
    return f"{rule.tool} `{what}`" if what else rule.tool


def _check_rule_exists(rule: str, there: tuple[RuleInfo, ...]) -> None:
    if all(one.id != rule for one in there):
        message = f"tiller.rules: no rule has the id {rule!r:.80}"
        raise invalid_params(message)
