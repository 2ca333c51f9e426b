"""Turns of a session: prompts are sent, steer what runs, and are cancelled."""

import asyncio
from contextlib import suppress
from typing import Final

from agent_core.events import Notice
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text
from tiller_server.acp.errors import CANCELLED, AcpError, of_agent
from tiller_server.acp.sessions.commands import compact_instructions
from tiller_server.acp.sessions.prompts import PendingPrompt, end_of_result
from tiller_server.acp.sessions.session import AcpSession
from tiller_server.agent_client.connection import AgentRefused

IN_ORDER_S: Final = 2.0
"""How long an answer waits for the updates that belong before it."""
ENDED: Final = frozenset({"RunNotActive", "RunMismatch"})
"""Refusals of `agent/run/retry` for a run that has done all it had to."""


class Turns:
    """The prompts of one client to one session."""

    def __init__(self, session: AcpSession) -> None:
        self._session = session

    async def prompt(self, message_id: str, content: list[JsonValue], *, delivery: str) -> str:
        """Send a prompt and wait for the end of its run; return the stop reason.

        During a run it steers the run, whose end answers both.

        Raises:
            AcpError: The prompt was refused, or its run failed.
        """
        session = self._session
        prompt = session.prompts.add(message_id)
        session.stream.own.add(message_id)
        try:
            await self._submit(prompt, content, delivery)
            await self._until(prompt, content, prompt.answer)
            return prompt.answer.result()
        finally:
            session.prompts.remove(prompt)

    async def insert(
        self, message_id: str, content: list[JsonValue], *, delivery: str, shown: JsonValue
    ) -> str:
        """Send a prompt and wait until it is in the conversation; return the id of its message there.

        Args:
            message_id: Id of the prompt.
            content: Its content for the agent.
            delivery: Its delivery during a run.
            shown: Its content as the client has sent it.

        Raises:
            AcpError: It was refused or withdrawn.
        """
        session = self._session
        prompt = session.prompts.add(message_id)
        prompt.is_inserted_only = True
        try:
            await self._submit(prompt, content, delivery)
            if prompt.is_compaction and not prompt.answer.done():
                session.stream.show_local(message_id, shown)
                return message_id
            await self._until(prompt, content, prompt.inserted, prompt.answer)
            if prompt.inserted.done():
                message = prompt.inserted.result()
                if prompt.is_found:
                    session.stream.show_message(message, shown)
                return message
            if prompt.queue_id:
                with suppress(
                    AgentRefused
                ):  # one that was answered with an error must not run later
                    await self._change_queue("remove", prompt)
            if prompt.answer.result() == "cancelled":
                raise AcpError(CANCELLED, "the prompt was withdrawn")
            session.stream.show_local(message_id, shown)
            return message_id
        finally:
            session.prompts.remove(prompt)

    async def withdraw(self, message_id: str) -> None:
        """Withdraw a prompt that waits in the queue; any other is in the conversation, or will be at once."""
        session = self._session
        for prompt in session.prompts.pending:
            if prompt.message_id == message_id and prompt.queue_id:
                with suppress(AgentRefused):
                    await self._change_queue("remove", prompt)
                    prompt.resolve("cancelled")

    async def _change_queue(self, op: str, prompt: PendingPrompt) -> None:
        ops: list[JsonValue] = [{"op": op, "queueId": prompt.queue_id}]
        params: JsonObject = {"session": self._session.id, "ops": ops}
        _ = await self._session.agent.request("agent/queue/update", params)

    async def go_on(self, run: str) -> bool:
        """Continue a run that the end of its process has interrupted; return False if it has done all it had to."""
        session = self._session
        try:
            retry: JsonObject = {"session": session.id, "run": run}
            _ = await session.agent.request("agent/run/retry", retry)
        except AgentRefused as error:
            return error.data.get("kind") == "SessionBusy"
        return True

    async def cancel(self) -> None:
        """Cancel what is going on in the session; all prompts are answered with `cancelled`."""
        session = self._session
        session.prompts.cancel_all()
        try:
            params: JsonObject = {"session": session.id, "scope": "session", "queue": "return"}
            result = as_object(await session.agent.request("agent/run/cancel", params))
            last = result.get("seq")
            await session.stream.until_seq(last, within_s=IN_ORDER_S)
        except AgentRefused:
            pass  # something did not end in time; it is cut off and sends nothing more
        for prompt in session.prompts.pending:
            # One that is not accepted yet is cancelled when it is.
            if prompt.is_cancelled and prompt.accepted.is_set():
                prompt.resolve("cancelled")

    async def _until(
        self, prompt: PendingPrompt, content: list[JsonValue], *ends: "asyncio.Future[str]"
    ) -> None:
        """Wait until one of the ends has come; after missed events the agent is asked whether it has."""
        while not any(end.done() for end in ends):
            async with asyncio.TaskGroup() as tasks:
                gap = tasks.create_task(prompt.gap.wait())
                _ = await asyncio.wait([gap, *ends], return_when=asyncio.FIRST_COMPLETED)
                _ = gap.cancel()
            if prompt.gap.is_set():
                prompt.gap.clear()
                await self._recover(prompt, content)

    async def _recover(self, prompt: PendingPrompt, content: list[JsonValue]) -> None:
        """Ask the agent for the end of a prompt whose events were missed."""
        params: JsonObject = {
            "session": self._session.id,
            "messageId": prompt.message_id,
            "content": content,
        }
        session = self._session
        try:
            if prompt.is_inserted_only:
                message = await session.exact_message_of(_text_of(content))
                if message is not None and not prompt.inserted.done():
                    prompt.inserted.set_result(message)
                    prompt.is_found = True
                    return
            repeated = as_object(await session.agent.request("agent/prompt", params))
            await self._rejoin(prompt, params, as_text(repeated.get("run")))
        except AgentRefused as error:
            prompt.fail(of_agent(error))

    async def _submit(self, prompt: PendingPrompt, content: list[JsonValue], delivery: str) -> None:
        session = self._session
        params: JsonObject = {
            "session": session.id,
            "messageId": prompt.message_id,
            "content": content,
            "delivery": delivery,
        }
        try:
            if (instructions := compact_instructions(content)) is not None:
                await self._compact(prompt, instructions)
                return
            accepted = as_object(await session.agent.request("agent/prompt", params))
            run, prompt.queue_id = (as_text(accepted.get(one)) for one in ("run", "queueId"))
            if accepted.get("accepted") != "duplicate":
                prompt.accepted.set()
            match accepted.get("accepted"):
                case "held" if prompt.is_inserted_only:
                    # A run that failed has paused the queue; the user goes on.
                    await self._change_queue("sendNow", prompt)
                case "handled" | "held":
                    seq = accepted.get("seq")
                    await session.stream.until_seq(seq, within_s=IN_ORDER_S)
                    prompt.resolve("end_turn")
                case "duplicate" if prompt.is_inserted_only:
                    await self._find(prompt, content, run)
                    prompt.accepted.set()
                case "duplicate":
                    await self._rejoin(prompt, params, run)
                    prompt.accepted.set()
                case _ if run:
                    session.prompts.joined(prompt, run)
                case _:
                    pass  # it waits for the end of a compaction; the start of its run names it
        except AgentRefused as error:
            prompt.accepted.set()
            prompt.fail(of_agent(error))
        if prompt.is_cancelled and not prompt.answer.done():
            await self.cancel()

    async def _compact(self, prompt: PendingPrompt, instructions: str) -> None:
        """Begin a compaction, whose end answers the prompt."""
        session, prompt.is_compaction = self._session, True
        more: JsonObject = {"instructions": instructions} if instructions else {}
        result = as_object(
            await session.agent.request("agent/compact", {"session": session.id, **more})
        )
        prompt.accepted.set()
        await session.stream.until_seq(result.get("seq"), within_s=IN_ORDER_S)
        if result.get("compaction") is None:
            why = as_text(result.get("why")) or "There is nothing to summarise."
            session.stream.show(Notice(level="warning", text=why), session.stream.seq)
            prompt.resolve("end_turn")

    async def _find(self, prompt: PendingPrompt, content: list[JsonValue], run: str) -> None:
        """Find a prompt that was sent before, over another connection, and continue its run."""
        session = self._session
        message = await session.message_of(_text_of(content)) or prompt.message_id
        if not await self.go_on(run):
            session.stream.report_end()
        if not prompt.inserted.done():
            prompt.inserted.set_result(message)
            prompt.is_found = True

    async def _rejoin(self, prompt: PendingPrompt, params: JsonObject, run: str) -> None:
        """Wait for the run of a prompt that was sent before, over another connection."""
        session = self._session
        prompt.run = run  # the end of a run that goes on answers it, as that of any other
        result = as_object(await session.agent.request("agent/prompt", {**params, "wait": True}))
        if "status" in result and result.get("status") != "interrupted":
            await session.stream.until(prompt.answer.done, within_s=IN_ORDER_S)
            end = end_of_result(result)
            if isinstance(end, AcpError):
                prompt.fail(end)
            else:
                prompt.resolve(end)
            return
        try:
            retry: JsonObject = {"session": session.id, "run": run}
            continued = as_object(await session.agent.request("agent/run/retry", retry))
        except AgentRefused as error:
            if error.data.get("kind") not in ENDED:
                raise
            prompt.resolve("end_turn")
        else:
            session.prompts.continued(prompt, run, by=as_text(continued.get("run")))


def _text_of(content: list[JsonValue]) -> str:
    return "\n".join(as_text(as_object(one).get("text")) for one in content)
