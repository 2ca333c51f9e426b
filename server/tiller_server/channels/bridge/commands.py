"""Commands of a chat: each has one line as its answer, or its effect is seen in the conversation."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from agent_core.channels.messaging.port import Sender
from agent_core.channels.messaging.store import approvals, inbox, outbox
from agent_core.channels.messaging.store.bindings import Binding
from agent_core.channels.messaging.store.database import Transaction
from agent_core.channels.messaging.store.inbox import InboxRow
from agent_core.channels.messaging.store.outbox import PostFile, key_of
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, as_text
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.channels.bridge.admission import BridgeCommand
from tiller_server.channels.bridge.approval_prompts import DENY, REJECT
from tiller_server.channels.bridge.approver import Approver
from tiller_server.channels.bridge.chat_store import ChatStore
from tiller_server.channels.bridge.config import BridgeConfig
from tiller_server.channels.bridge.conversations import Conversations

FILE_BYTES: Final = 8 << 10
"""Diffs above this size are sent as a file."""
MOST_MODELS: Final = 30
HELP: Final = """\
/new: start a new session here
/stop: stop the run
/status: state of the session
/queue TEXT: send a prompt that starts when the run has ended
/compact: summarise the older part of the conversation
/model [NAME]: show the models, or choose one
/diff: changes of the session
/bind NAME: bind this chat to a workspace (administrators)
/approve CODE [OPTION], /deny CODE: answer a request by text
A message during a run is read by the agent before its next step."""
NO_SESSION: Final = "There is no session here yet. Write what is to be done."
_log = logging.getLogger(__name__)
_Handler = Callable[[InboxRow, str], Awaitable[str]]


class ChatCommands:
    """The commands of a bridge, except `/queue`, which is a prompt."""

    def __init__(
        self,
        link: DaemonLink,
        store: ChatStore,
        config: BridgeConfig,
        *,
        conversations: Conversations,
        approver: Approver,
    ) -> None:
        self._link = link
        self._store = store
        self._config = config
        self._conversations = conversations
        self._approver = approver
        self._handlers: Mapping[str, _Handler] = {
            "new": self._new,
            "stop": self._stop,
            "status": self._status,
            "compact": self._compact,
            "model": self._model,
            "diff": self._diff,
            "bind": self._bind,
            "approve": self._approve,
            "deny": self._deny,
            "help": self._help,
        }

    async def run(self, row: InboxRow, command: BridgeCommand) -> None:
        """Run a command and store its answer; the message is over then."""
        try:
            line = await self._handlers[command.name](row, command.argument)
        except AgentRefused as error:
            _log.info("The command /%s of a chat was refused: %s", command.name, error)
            reason = "the agent cannot be reached; try again" if error.code is None else str(error)
            line = f"{self._store.limits.command_mark}{command.name} failed: {reason}"

        def record(tx: Transaction) -> None:
            if line:
                self._store.reply(tx, row, line, cause="command")
            inbox.finish(tx, row, "done", f"/{command.name}")

        await self._store.run(record)

    async def _bound(self, row: InboxRow) -> Binding | None:
        bound = await self._conversations.find(row.message)
        return bound if bound is not None and bound.session else None

    async def _help(self, _row: InboxRow, _argument: str) -> str:
        return HELP.replace("/", self._store.limits.command_mark)

    async def _new(self, row: InboxRow, _argument: str) -> str:
        bound = await self._conversations.renew(row.message)
        return f"A new session was started in {bound.workspace}."

    async def _bind(self, row: InboxRow, argument: str) -> str:
        if row.message.sender.id not in self._config.admins:
            return "Only an administrator may bind a chat to a workspace."
        workspace = self._config.workspace(argument)
        if workspace is None:
            names = ", ".join(workspace.name for workspace in self._config.workspaces)
            return f"There is no workspace {argument!r}. Workspaces: {names}"
        await self._conversations.set_workspace(row.message, workspace)
        bound = await self._bound(row)
        if bound is not None and bound.workspace != workspace.name:
            _ = await self._conversations.renew(row.message, workspace)
        return f"This chat works in {workspace.name} from now on."

    async def _stop(self, row: InboxRow, _argument: str) -> str:
        bound = await self._bound(row)
        if bound is None:
            return NO_SESSION
        params: JsonObject = {"session": bound.session, "scope": "session", "queue": "drop"}
        try:
            _ = await self._link.request("agent/run/cancel", params)
        except AgentRefused as error:
            if error.data.get("kind") == "RunNotActive":
                return "Nothing is running."
            raise

        def stop(tx: Transaction) -> int:
            waiting = [
                other for other in inbox.started(tx, bound.session) if other.queue_id is not None
            ]
            for other in waiting:
                self._store.react(tx, other, "aborted")
                inbox.finish(tx, other, "done", "stopped")
            return len(waiting)

        waiting = await self._store.run(stop)
        return "Stopped." if not waiting else f"Stopped; messages dropped that waited: {waiting}."

    async def _status(self, row: InboxRow, _argument: str) -> str:
        bound = await self._bound(row)
        counts = await self._store.run(inbox.counts)
        waiting = f"Messages that wait for the agent: {counts.get('received', 0)}"
        if bound is None:
            return f"{NO_SESSION}\n{waiting}"
        opened = as_object(
            await self._link.request("agent/session/open", {"session": bound.session})
        )
        config, usage = as_object(opened.get("config")), as_object(opened.get("usage"))
        context = as_object(usage.get("context"))
        queue = opened.get("queue")
        lines = (
            f"Session: {bound.session}, workspace {bound.workspace}",
            f"State: {as_text(opened.get('state'))}",
            f"Model: {as_text(config.get('model')) or 'none'}, mode {as_text(config.get('mode'))}",
            f"Context: {context.get('used')} of {context.get('size')} tokens",
            f"Queue: {len(queue) if isinstance(queue, list) else 0}",
            waiting,
        )
        return "\n".join(lines)

    async def _compact(self, row: InboxRow, argument: str) -> str:
        bound = await self._bound(row)
        if bound is None:
            return NO_SESSION
        params: JsonObject = {"session": bound.session}
        if argument:
            params = {**params, "instructions": argument}
        result = as_object(await self._link.request("agent/compact", params))
        if result.get("compaction") is None:
            return f"Nothing to compact: {as_text(result.get('why'))}"
        return "The older part of the conversation is being summarised."

    async def _model(self, row: InboxRow, argument: str) -> str:
        bound = await self._bound(row)
        if bound is None:
            return NO_SESSION
        if argument:
            change: JsonObject = {"session": bound.session, "set": {"model": argument}}
            result = as_object(await self._link.request("agent/session/configure", change))
            return f"Model: {as_text(as_object(result.get('config')).get('model'))}"
        listed = as_object(await self._link.request("agent/model/list", {"session": bound.session}))
        models = listed.get("models")
        names = [
            as_text(as_object(model).get("model"))
            for model in (models if isinstance(models, list) else [])
        ]
        more = [f"and {len(names) - MOST_MODELS} more"] if len(names) > MOST_MODELS else []
        current = f"Model: {as_text(listed.get('current')) or 'none'}"
        return "\n".join((current, *(f"- {name}" for name in names[:MOST_MODELS]), *more))

    async def _diff(self, row: InboxRow, _argument: str) -> str:
        bound = await self._bound(row)
        if bound is None:
            return NO_SESSION
        params: JsonObject = {"session": bound.session, "format": "gitPatch"}
        patch = as_text(
            as_object(await self._link.request("agent/changes/list", params)).get("patch")
        )
        patch = self._store.cleaner.text(patch)
        if not patch.strip():
            return "Nothing has changed."
        if len(patch.encode()) <= FILE_BYTES:
            mark = "`" * max(3, 1 + _longest_run(patch))
            return f"{mark}diff\n{patch.rstrip()}\n{mark}"
        content = patch.encode()
        if len(content) > self._store.limits.upload_bytes:
            return f"The changes are {len(content)} bytes, more than can be sent here."
        await self._store.run(lambda tx: self._post_file(tx, row, "changes.diff", content))
        return ""

    def _post_file(self, tx: Transaction, row: InboxRow, name: str, content: bytes) -> None:
        is_group = row.message.chat_kind == "group"
        _ = outbox.add(
            tx,
            PostFile(name=name, content=content, reply_to=row.key if is_group else None),
            key=key_of("file", row.key),
            chat=row.chat,
            thread=row.thread,
            now_ms=self._store.clock.now_ms(),
        )

    async def _approve(self, row: InboxRow, argument: str) -> str:
        code, _, option = argument.partition(" ")
        return await self._answer(row, code, (option.strip() or "once", "accept"))

    async def _deny(self, row: InboxRow, argument: str) -> str:
        return await self._answer(row, argument, (DENY, REJECT, "decline"))

    async def _answer(self, row: InboxRow, code: str, options: Sequence[str]) -> str:
        approval = await self._store.run(
            lambda tx: approvals.with_code(tx, row.chat, code.strip().lower())
        )
        if approval is None:
            return f"There is no request with the code {code.strip()!r} here."
        offered = {option.label.lower(): option.id for option in approval.shown.options}
        chosen = next(
            (
                id_
                for option in options
                if approval.answer(id_ := offered.get(option.lower(), option)) is not None
            ),
            None,
        )
        if chosen is None:
            listed = ", ".join(option.id for option in approval.shown.options)
            return f"The request {approval.code} has no such answer. Answers: {listed}"
        message = row.message
        sender = Sender(
            id=message.sender.id, name=message.sender.name, is_bot=message.sender.is_bot
        )
        return (await self._approver.answer(approval, chosen, sender)).text


def _longest_run(text: str) -> int:
    longest = size = 0
    for character in text:
        size = size + 1 if character == "`" else 0
        longest = max(longest, size)
    return longest
