"""A conversation from one session to the next: `/new`, `/resume` and `/fork` open another in the same terminal."""

import argparse
import sys
import time
from typing import Final

from msgspec.structs import replace

from agent_core.assembly import SessionRequest
from agent_core.kernel import SessionId
from agent_core.kernel.errors import TillerError
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from tiller_server.cli.chat.context import Switch
from tiller_server.cli.chat.line_input import ChatInput, PromptSurface, paths_completed
from tiller_server.cli.chat.loop import ChatLoop
from tiller_server.cli.chat.session_switch import arrive
from tiller_server.cli.chat.slash_commands import completed
from tiller_server.cli.chat.status import below
from tiller_server.cli.environment import Environment
from tiller_server.cli.run.session import named, open_or_copy, wanted
from tiller_server.cli.terminal.live_markdown import LiveMarkdown
from tiller_server.cli.terminal.live_view import LiveView, LiveViewOptions
from tiller_server.cli.terminal.run_renderer import YELLOW
from tiller_server.cli.terminal.status_line import StatusLine, frames_for

HISTORY: Final = "chat_history"
GREETING: Final = "/help says what can be typed; Ctrl-D leaves"
NO_MODEL: Final = (
    "No model is chosen yet.\n"
    "  /model             choose one of a server on this machine, such as Ollama\n"
    "  tiller auth login  sign in to a provider, in another terminal"
)


async def converse(options: argparse.Namespace, environment: Environment) -> int:
    """Talk until the user leaves; gives the exit code.

    Raises:
        TillerError: The first session cannot be opened.
    """
    request = await wanted(options, environment)
    surface = PromptSurface()
    view = _view(environment, surface)
    text, name, before = "", options.name, None
    previous: SessionId | None = None
    while True:
        try:
            async with open_or_copy(request) as session:
                await named(session, name)
                if previous is not None:
                    await arrive(session, request, previous)
                switch = await _talk(session, request, view, surface=surface, text=text)
        except TillerError as error:
            if before is None:
                raise
            view.tell(str(error))
            request, before, previous = before, None, None
            continue
        if switch.request is None:
            _tell_where(session)
            return switch.code
        before = replace(request, session=session.id if session.info.location else "new")
        request, text, name, previous = switch.request, switch.text, None, session.id


def _view(environment: Environment, surface: PromptSurface) -> LiveView:
    colour = environment.colour(sys.stdout)
    return LiveView(
        screen=surface,
        status=StatusLine(now_s=time.monotonic, frames=frames_for(sys.stdout.encoding)),
        markdown=LiveMarkdown(surface, colour=colour),
        shape=LiveViewOptions(colour=colour, you="shown"),
    )


async def _talk(
    session: AgentSession,
    request: SessionRequest,
    view: LiveView,
    *,
    surface: PromptSurface,
    text: str,
) -> Switch:
    def complete(line: str) -> list[str]:
        return completed(line, session=session) or paths_completed(line, root=root)

    root = request.workspace.absolute()
    talk = ChatLoop(session, request, view, set_title=surface.title)
    line = ChatInput(
        surface,
        history=app_paths(request.env).data / HISTORY,
        complete=complete,
        below=lambda: f" {below(session.info.snapshot())}",
        on_escape=talk.stop,
    )
    with line.written():
        snapshot = session.info.snapshot()
        view.begin({"model": snapshot.config.model, "cwd": session.info.root})
        view.tell(GREETING)
        if snapshot.config.model is None:
            view.tell(NO_MODEL, YELLOW)
        return await talk.run(line, text=text)


def _tell_where(session: AgentSession) -> None:
    location = session.info.location
    if location is not None:
        _ = sys.stderr.write(f"session: {location}\ngo on with: tiller chat --continue\n")
