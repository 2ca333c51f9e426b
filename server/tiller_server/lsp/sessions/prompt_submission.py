"""Words from a client into a session, and the wait for what becomes of them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import cast

from agent_core.kernel import JsonObject, JsonValue, MessageId, RunId, SystemClock, uuid7
from agent_core.kernel.errors import TillerError
from agent_core.kernel.values import Value
from agent_core.messages import Text, UserContent
from agent_core.session import AgentSession, Receipt
from agent_core.session.input.submission import Deliver, IfIdle
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.encode.content import to_content
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.events.run_progress import SHOWN, follow
from tiller_server.lsp.events.subscription import Subscription, of_run
from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, REQUEST_FAILED, RpcError
from tiller_server.lsp.methods import MAX_PROMPT_BYTES
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.transport.progress import ProgressToken, WorkDone
from tiller_server.lsp.wire.blocks import Block


class SubmittedPrompt(Value, frozen=True):
    """Words that are safe, with what the client is told of them."""

    receipt: Receipt
    message_id: str | None

    @property
    def run(self) -> RunId | None:
        """The run that they began or joined."""
        return self.receipt.run

    def answer(self) -> JsonObject:
        """Return the acknowledgement."""
        out: dict[str, JsonValue] = {"accepted": self.receipt.accepted, "seq": self.receipt.seq}
        if self.receipt.run is not None:
            out["run"] = self.receipt.run
        if self.receipt.queue_id is not None:
            out["queueId"] = self.receipt.queue_id
        if self.message_id is not None:
            out["messageId"] = self.message_id
        return out


async def submit_as_client(
    client: ConnectedClient,
    open_session: OpenSession,
    content: Sequence[Block] | str,
    *,
    delivery: str,
    message_id: str | None = None,
    if_idle: str | None = None,
    expected_run: str | None = None,
) -> SubmittedPrompt:
    """Send a client's prompt to a session, as `submit_prompt` does; its commands run in the client's environment.

    Raises:
        RpcError: The prompt was not accepted; nothing of it is kept.
    """
    # What the user did to our edits just before is part of what they say.
    await open_session.files.edits.undo_tracker.refresh()
    if open_session.session.models.current is None:
        # The user was told to log in, and may have done so in a terminal.
        await open_session.session.models.refresh()
    environment, env = open_session.environment, client.origin.env
    submit = partial(
        submit_prompt,
        open_session,
        content,
        delivery=delivery,
        message_id=message_id,
        if_idle=if_idle,
        expected_run=expected_run,
    )
    if delivery == "followUp" and open_session.session.info.snapshot().state != "idle":
        taken = await submit()
    else:
        with environment.use_for_submission(env):
            taken = await submit()
    if taken.receipt.accepted == "queued" and taken.receipt.queue_id is not None:
        environment.use_when_dequeued(taken.receipt.queue_id, env)
    return taken


async def submit_prompt(
    open_session: OpenSession,
    content: Sequence[Block] | str,
    *,
    delivery: str,
    message_id: str | None = None,
    if_idle: str | None = None,
    expected_run: str | None = None,
) -> SubmittedPrompt:
    """Send a prompt to a session.

    Raises:
        RpcError: The prompt was not accepted; nothing of it is kept.
    """
    parts: Sequence[UserContent] = (
        (Text(text=content),) if isinstance(content, str) else to_content(content)
    )
    check_size(parts)
    session = open_session.session
    # Minted here when the client left it out: the answer and the events name the same words.
    prompt_id = MessageId(message_id or uuid7(SystemClock().now_ms()))
    try:
        receipt = await session.prompt(
            parts,
            # The shape lets words of vendors pass; to the core they mean the default.
            delivery=cast("Deliver", delivery),
            message_id=prompt_id,
            if_idle=cast("IfIdle", if_idle or "start"),
            expected_run=RunId(expected_run) if expected_run else None,
        )
    except TillerError as error:
        raise to_rpc_error(
            error, session=session.id, expected=expected_run, actual=running(session)
        ) from error
    return SubmittedPrompt(receipt, prompt_id)


def check_size(parts: Sequence[UserContent]) -> None:
    """Check the size of a prompt.

    Raises:
        RpcError: It has more than `MAX_PROMPT_BYTES`.
    """
    size = sum(len(part.text if isinstance(part, Text) else part.data) for part in parts)
    if size > MAX_PROMPT_BYTES:
        message = (
            f"the prompt has {size} bytes, and {MAX_PROMPT_BYTES} is the most; name a file instead"
        )
        raise RpcError(INVALID_PARAMS, message)


def running(session: AgentSession) -> RunId | None:
    """Return the run that is going on."""
    return session.info.snapshot().activity.run


async def wait_for(
    client: ConnectedClient,
    open_session: OpenSession,
    run: RunId,
    *,
    work_done: ProgressToken | None = None,
    partial: ProgressToken | None = None,
) -> JsonObject:
    """Wait for a run's end and give its result; a client that cancels the request cancels the run."""
    with client.waits_for(run):
        return await _wait_for(client, open_session, run, work_done=work_done, partial=partial)


async def _wait_for(
    client: ConnectedClient,
    open_session: OpenSession,
    run: RunId,
    *,
    work_done: ProgressToken | None,
    partial: ProgressToken | None,
) -> JsonObject:
    async with asyncio.TaskGroup() as tasks:
        if work_done is not None:
            line = client.connection.protocol.work_done.open(
                work_done, on_cancel=lambda: cancel_soon(open_session, run, tasks)
            )
            _ = tasks.create_task(_follow_line(open_session, run, line))
        ends = _follow_events(client, open_session, run, partial, tasks)
        try:
            result = await result_of(client, open_session, run)
        except asyncio.CancelledError:
            if client.connection.is_closing:
                raise
            _ = await open_session.session.abort(run=run)
            result = await result_of(client, open_session, run)
        finally:
            for end in ends:
                await end()
    await client.flush()
    return result


def _follow_events(
    client: ConnectedClient,
    open_session: OpenSession,
    run: RunId,
    token: ProgressToken | None,
    tasks: asyncio.TaskGroup,
) -> list[Callable[[], Awaitable[None]]]:
    if token is None:
        return []
    subscription = Subscription(client.connection, open_session, token=token, only=of_run(run))
    _ = tasks.create_task(subscription.run())

    async def end() -> None:
        await subscription.flush()
        subscription.close()

    return [end]


async def _follow_line(open_session: OpenSession, run: RunId, line: WorkDone) -> None:
    reader = open_session.session.subscribe(only=SHOWN)
    try:
        await follow(open_session.session, run, line, reader=reader)
    finally:
        reader.close()


async def result_of(client: ConnectedClient, open_session: OpenSession, run: RunId) -> JsonObject:
    """Wait for a run and give what it came to."""
    outcome = await open_session.session.wait(run)
    if outcome is None:
        message = f"run {run!r} is not known any more; read the session instead"
        raise RpcError(REQUEST_FAILED, message, {"kind": "RunNotActive", "retryable": False})
    return serializer.result(outcome, await client.change_display.of_run(open_session, run))


def cancel_soon(open_session: OpenSession, run: RunId, tasks: asyncio.TaskGroup) -> None:
    """Cancel a run because its user pressed stop on the progress line."""
    _ = tasks.create_task(open_session.session.abort(run=run))
