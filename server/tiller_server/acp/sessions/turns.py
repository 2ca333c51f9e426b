"""Turns of a session: prompts are sent, steer what runs, and are cancelled."""

from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text
from tiller_server.acp.errors import AcpError, of_agent
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
            return await prompt.answer
        finally:
            session.prompts.remove(prompt)

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

    async def _submit(self, prompt: PendingPrompt, content: list[JsonValue], delivery: str) -> None:
        session = self._session
        params: JsonObject = {
            "session": session.id,
            "messageId": prompt.message_id,
            "content": content,
            "delivery": delivery,
        }
        try:
            accepted = as_object(await session.agent.request("agent/prompt", params))
            run = as_text(accepted.get("run"))
            if accepted.get("accepted") != "duplicate":
                prompt.accepted.set()
            match accepted.get("accepted"):
                case "handled" | "held":
                    seq = accepted.get("seq")
                    await session.stream.until_seq(seq, within_s=IN_ORDER_S)
                    prompt.resolve("end_turn")
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

    async def _rejoin(self, prompt: PendingPrompt, params: JsonObject, run: str) -> None:
        """Wait for the run of a prompt that was sent before, over another connection."""
        session = self._session
        if session.prompts.active_run == run:
            session.prompts.joined(prompt, run)
            return
        result = as_object(await session.agent.request("agent/prompt", {**params, "wait": True}))
        if "status" in result and result.get("status") != "interrupted":
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
            session.prompts.joined(prompt, as_text(continued.get("run")))
