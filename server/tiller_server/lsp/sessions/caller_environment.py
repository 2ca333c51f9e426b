"""Whose environment a session works in: that of the connection whose words it works on."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from typing_extensions import override

from agent_core.kernel.environment import CurrentEnvironment
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.prompt_submission import SubmittedPrompt, submit_prompt
from tiller_server.lsp.wire import Block


class CallerEnvironment(CurrentEnvironment):
    """The environment of who spoke last; that of words that wait in the queue counts when they are taken up."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self._waiting: dict[str, Mapping[str, str]] = {}
        self._queue: Callable[[], Iterable[str]] = tuple

    def follow(self, queue: Callable[[], Iterable[str]]) -> None:
        """Look there for the ids of the words that wait."""
        self._queue = queue

    @property
    @override
    def variables(self) -> Mapping[str, str]:
        """Present variables. Read on the event loop's thread only."""
        if self._waiting:
            there = set(self._queue())
            for gone in [one for one in self._waiting if one not in there]:
                self._variables = self._waiting.pop(gone)
        return self._variables

    @contextmanager
    def use_for_submission(self, variables: Mapping[str, str]) -> Generator[None]:
        """Be the environment of who speaks, from now on; as before when their words are not taken."""
        before = self.variables
        self.use(variables)
        try:
            yield
        except BaseException:
            if self._variables is variables:
                self.use(before)
            raise

    def use_when_dequeued(self, queue_id: str, variables: Mapping[str, str]) -> None:
        """Be this one when the words of that id are taken up."""
        self._waiting[queue_id] = variables


async def submit_as_client(
    client: ConnectedClient,
    open_session: Any,
    content: Sequence[Block] | str,
    *,
    delivery: str,
    **more: Any,
) -> SubmittedPrompt:
    """Send a client's prompt to a session, as `say` does; its commands run in the client's environment.

    Raises:
        RpcError: The prompt was not accepted; nothing of it is kept.
    """
    # What the user did to our edits just before is part of what they say.
    await open_session.files.edits.undo_tracker.refresh()
    if open_session.session.models.current is None:
        # The user was told to log in, and may have done so in a terminal.
        await open_session.session.models.refresh()
    environment, env = open_session.environment, client.origin.env
    if delivery == "followUp" and open_session.session.info.snapshot().state != "idle":
        taken = await submit_prompt(open_session, content, delivery=delivery, **more)
    else:
        with environment.use_for_submission(env):
            taken = await submit_prompt(open_session, content, delivery=delivery, **more)
    if taken.receipt.accepted == "queued" and taken.receipt.queue_id is not None:
        environment.use_when_dequeued(taken.receipt.queue_id, env)
    return taken
