"""Answers of people to approvals: checked, sent to the daemon, recorded. The first one wins."""

import asyncio
from typing import Final
from weakref import WeakValueDictionary

import anyio

from agent_core.channels.messaging.port import ClickReply, InboundClick, Sender, Settlement
from agent_core.channels.messaging.store import approvals, bindings
from agent_core.channels.messaging.store.approvals import StoredApproval
from agent_core.channels.messaging.store.database import Transaction
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.channels.bridge.approval_prompts import (
    DECLINE,
    EXPIRED,
    ApprovalEnd,
    chosen_end,
    question_of,
)
from tiller_server.channels.bridge.chat_store import ChatStore
from tiller_server.channels.bridge.config import BridgeConfig

ANSWER_S: Final = 2.0
"""How long the daemon is waited for; a click has to be answered within 3 s."""
UNRECORDED: Final = "Not recorded: the agent cannot be reached. Try again in a moment."


class Approver:
    """The way of an answer, by a button or by text."""

    def __init__(self, link: DaemonLink, store: ChatStore, config: BridgeConfig) -> None:
        self._link = link
        self._store = store
        self._config = config
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def click(self, event: InboundClick) -> ClickReply:
        """Decide a click."""
        approval = await self._store.run(lambda tx: approvals.approval(tx, event.request))
        is_elsewhere = approval is not None and (
            approval.chat != event.target.chat or approval.message not in {None, event.message}
        )
        if approval is None or is_elsewhere or approval.shown.digest != event.digest:
            return _refused("This button belongs to no open request.")
        return await self.answer(approval, event.option, event.sender)

    async def answer(
        self, approval: StoredApproval, option: str, sender: Sender, *, text: str | None = None
    ) -> ClickReply:
        """Send an answer to the daemon, if its author may give it.

        Args:
            approval: The approval.
            option: Id of the option.
            sender: The author.
            text: Answer to a question for a text.
        """
        refusal = await self._refusal(approval, sender)
        if refusal is not None:
            return _refused(refusal)
        turn = self._turns.setdefault(approval.request, anyio.Lock())
        try:
            async with asyncio.timeout(ANSWER_S):
                await turn.acquire()
        except TimeoutError:
            return ClickReply(text="Another answer is being recorded.", kind="info")
        try:
            claimed = await self._claim(approval, option, sender, text)
            if claimed is None:
                return await self._not_claimed(approval)
            return await self._send(claimed)
        finally:
            turn.release()

    async def _claim(
        self, approval: StoredApproval, option: str, sender: Sender, text: str | None
    ) -> StoredApproval | None:
        """Record whose answer is sent next; None: the request is settled, or has no such answer."""
        given = approval.answer(option)
        if given is None:
            return None

        def claim(tx: Transaction) -> StoredApproval | None:
            if text is not None:
                answer: JsonObject = {**as_object(given), "value": text}
                approvals.set_answer(tx, approval, option, answer)
            name = sender.name or sender.id
            return approvals.claim(
                tx, approval.request, option=option, by_id=sender.id, by_name=name
            )

        return await self._store.run(claim)

    async def _refusal(self, approval: StoredApproval, sender: Sender) -> str | None:
        bound = await self._store.run(lambda tx: bindings.binding(tx, approval.binding))
        workspace = "" if bound is None else bound.workspace
        if sender.is_bot:
            return "A bot may not decide this."
        if self._config.may_approve(sender.id, workspace):
            return None
        if approval.kind == "question" and self._config.may_talk(sender.id):
            return None
        return "You may not decide this; ask a person who may approve."

    async def _not_claimed(self, approval: StoredApproval) -> ClickReply:
        now = await self._store.run(lambda tx: approvals.approval(tx, approval.request))
        settled = None if now is None else now.settled
        if settled is None:
            return _refused("There is no such answer to this request.")
        by = f" by {settled.by}" if settled.by else ""
        return ClickReply(
            text=f"Already answered{by}: {settled.label}",
            kind="info",
            prompt=approval.shown,
            settlement=settled,
        )

    async def _send(self, approval: StoredApproval) -> ClickReply:
        try:
            async with asyncio.timeout(ANSWER_S):
                end = await self._respond(approval)
        except TimeoutError:
            # It may be recorded: the claim stays, and the event of the session settles it.
            return ClickReply(text=UNRECORDED, kind="warning")
        except AgentRefused as error:
            await self._store.run(lambda tx: approvals.reopen(tx, approval.request))
            reason = UNRECORDED if error.code is None else f"Not recorded: {error}"
            return ClickReply(text=reason, kind="warning")

        if end is None:
            # The event of the session has the answer that counts, and redraws the message.
            await self._store.run(lambda tx: approvals.reopen(tx, approval.request))
            return ClickReply(text="Already answered in another place.", kind="info")

        def settle(tx: Transaction) -> Settlement:
            now = approvals.approval(tx, approval.request) or approval
            return self._store.settle(tx, now, end)

        settlement = await self._store.run(settle)
        is_ours = settlement.by == approval.by_name
        return ClickReply(
            text=settlement.label if is_ours else f"Already answered by {settlement.by}",
            kind="success" if is_ours else "info",
            prompt=approval.shown,
            settlement=settlement,
        )

    async def _respond(self, approval: StoredApproval) -> ApprovalEnd | None:
        """Send an answer to the daemon; return the end that it brought, None: another answer was first."""
        end = chosen_end(approval)
        request = question_of(approval.request)
        answer = approval.answer(approval.option)
        match approval.kind:
            case "permission":
                result = await self._link.request(
                    "agent/permission/respond", {"request": request, "option": answer}
                )
            case "plan":
                given: JsonObject = {"session": approval.session, **as_object(answer)}
                _ = await self._link.request("agent/plan/respond", given)
                return end
            case "question":
                params = await self._form(approval)
                if params is None:
                    return end
                result = await self._link.request("agent/question/respond", params)
        match as_object(result):
            case {"status": "alreadyResolved"}:
                return None
            case {"status": "expired"}:
                return EXPIRED
            case _:
                return end

    async def _form(self, approval: StoredApproval) -> JsonObject | None:
        """Return the answer of a form; None: other lines of it wait."""
        request = question_of(approval.request)
        if approval.option == DECLINE:
            return {"request": request, "cancelled": True}
        lines = await self._store.run(lambda tx: approvals.lines_of(tx, request))
        answers: dict[str, JsonValue] = {}
        for line in lines:
            given = as_object(line.answer(line.option) if line.option else None)
            if not given:
                return None
            answers[as_text(given.get("line"))] = given.get("value")
        return {"request": request, "answers": answers}


def _refused(text: str) -> ClickReply:
    return ClickReply(text=text, kind="error")
