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
from tiller_server.cli.chat.completion import suggestions
from tiller_server.cli.chat.context import Switch, is_kept
from tiller_server.cli.chat.file_index import FileIndex
from tiller_server.cli.chat.history_view import show_history
from tiller_server.cli.chat.line_input import ChatInput, ChatKeys, PromptSurface
from tiller_server.cli.chat.loop import ChatLoop
from tiller_server.cli.chat.session_switch import arrive
from tiller_server.cli.chat.status import below
from tiller_server.cli.environment import Environment
from tiller_server.cli.run.session import named, open_or_copy, wanted
from tiller_server.cli.session_options import CHOOSE
from tiller_server.cli.terminal.live_markdown import LiveMarkdown
from tiller_server.cli.terminal.live_view import LiveView, LiveViewOptions
from tiller_server.cli.terminal.run_renderer import YELLOW
from tiller_server.cli.terminal.status_line import StatusLine, frames_for
from tiller_server.cli.terminal.text import SHORT_ID

HISTORY: Final = "chat_history"
GREETING: Final = "/help shows what you can type. Ctrl-D quits."
PICK: Final = "/resume"
NO_MODEL: Final = (
    "No model selected yet.\n"
    "  /login  sign in to a provider\n"
    "  /model  choose a model, also of a server on this machine such as Ollama"
)


async def converse(options: argparse.Namespace, environment: Environment) -> int:
    """Run conversations until the user quits; return the exit code.

    Raises:
        TillerError: The first session cannot be opened.
    """
    prompt = " ".join(options.prompt)
    if options.session == CHOOSE:
        options.session, prompt = None, PICK
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
                switch = await _talk(
                    session, request, view, surface=surface, text=text, prompt=prompt
                )
        except TillerError as error:
            if before is None:
                raise
            view.tell(str(error))
            request, before, previous = before, None, None
            continue
        prompt = ""
        if switch.request is None:
            await _tell_where(session)
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
    prompt: str,
) -> Switch:
    files = FileIndex(request.workspace.absolute())
    talk = ChatLoop(session, request, view, set_title=surface.title, copy=surface.copy)
    line = ChatInput(
        surface,
        history=app_paths(request.env).data / HISTORY,
        complete=lambda line: suggestions(line, session=session, files=files),
        below=lambda: f" {below(session.info.snapshot(), surface.columns - 1)}",
        keys=ChatKeys(
            stop=talk.stop,
            next_mode=talk.next_mode,
            show_output=lambda: view.page_outputs(request.env, request.workspace.absolute()),
        ),
        is_asked=lambda: talk.is_asked,
    )
    with line.written():
        snapshot = session.info.snapshot()
        view.begin({"model": snapshot.config.model, "cwd": session.info.root})
        show_history(session, view)
        view.tell(GREETING)
        if snapshot.config.model is None:
            view.tell(NO_MODEL, YELLOW)
        return await talk.run(line, text=text, prompt=prompt)


async def _tell_where(session: AgentSession) -> None:
    """Write how to continue the session, if it was stored."""
    if await is_kept(session):
        short = session.id[-SHORT_ID:]
        _ = sys.stderr.write(f"Session {short} is stored. Continue it with: tiller -r {short}\n")
