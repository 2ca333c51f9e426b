"""A conversation from one session to the next: `/new`, `/resume` and `/fork` open another in the same terminal."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from msgspec.structs import replace

from agent_core.assembly import SessionRequest
from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionLocked, TillerError
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from agent_core.session.input.commands import ResourceView
from agent_core.transcript import AnyEntry
from tiller_server.cli.chat.completion import file_suggestions, suggestions
from tiller_server.cli.chat.context import Switch, is_kept
from tiller_server.cli.chat.file_index import FileIndex
from tiller_server.cli.chat.history_view import show_history
from tiller_server.cli.chat.line_input import ChatInput, ChatKeys, LineCompleter, PromptSurface
from tiller_server.cli.chat.local_session import LocalChatSession
from tiller_server.cli.chat.loop import ChatLoop
from tiller_server.cli.chat.session_switch import arrive
from tiller_server.cli.chat.status import StatusSource, below as status_below
from tiller_server.cli.environment import Environment
from tiller_server.cli.run.session import named, open_or_copy, placed, wanted
from tiller_server.cli.session_options import CHOOSE, Placing
from tiller_server.cli.terminal.extension_keys import ExtensionKeys
from tiller_server.cli.terminal.live_markdown import LiveMarkdown
from tiller_server.cli.terminal.live_view import LiveView, LiveViewOptions
from tiller_server.cli.terminal.pictures import clipboard_picture
from tiller_server.cli.terminal.run_renderer import YELLOW
from tiller_server.cli.terminal.status_line import StatusLine, frames_for
from tiller_server.cli.terminal.text import SHORT_ID

HISTORY: Final = "chat_history"
GREETING: Final = "/help shows what you can type. Ctrl-D quits."
SHARED: Final = "The daemon has this session open. Its editors show the same run; each can prompt, stop and answer."
NOT_ALLOWED: Final = (
    "--allow has no effect here: the rules of the daemon are in force. It counts after /new."
)
PICK: Final = "/resume"
OPEN_S: Final = 10.0
"""How long a daemon may take to open a session that it has loaded."""
NO_MODEL: Final = "No model selected yet."
SETUP: Final = "/setup"


async def converse(options: argparse.Namespace, environment: Environment) -> int:
    """Run conversations until the user quits; return the exit code.

    Raises:
        TillerError: The first session cannot be opened.
    """
    async with placed(options, environment) as place:
        return await _converse(options, environment, place)


async def _converse(options: argparse.Namespace, environment: Environment, place: Placing) -> int:
    prompt = " ".join(options.prompt)
    if options.session == CHOOSE:
        options.session, prompt = None, PICK
    request = replace(place(await wanted(options, environment)), titled=not options.no_session)
    surface = PromptSurface()
    view = _view(environment, surface)
    text, name, before = "", options.name, None
    previous: SessionId | None = None
    copies = False
    while True:
        try:
            async with open_or_copy(request, copies=copies) as session:
                await named(session, name)
                if previous is not None:
                    await arrive(session, request, previous)
                switch = await _talk(
                    session, request, view, surface=surface, text=text, prompt=prompt
                )
            here, is_stored = session.id, await is_kept(session)
        except TillerError as error:
            taken = error.session if isinstance(error, SessionLocked) and not copies else None
            if taken is None:
                if before is None:
                    raise
                view.tell(str(error))
                request, before, previous, copies = before, None, None, False
                continue
            shared = await _share(taken, request, view, surface=surface, text=text, prompt=prompt)
            if shared is None:
                # No daemon has it open: another terminal or a script does.
                copies = True
                continue
            here, is_stored, switch = taken, True, shared
        prompt, copies = "", False
        if switch.request is None:
            if is_stored:
                _tell_where(here)
            return switch.code
        before = replace(request, session=here if is_stored else "new")
        request, text, name, previous = switch.request, switch.text, None, here


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
    root = request.workspace.absolute()
    files = FileIndex(root)
    talk = ChatLoop(
        LocalChatSession(session, request),
        root,
        view,
        env=request.env,
        set_title=surface.title,
        copy=surface.copy,
    )
    line = _line(
        talk,
        request,
        view,
        surface=surface,
        complete=lambda line: suggestions(line, session=session, files=files),
        below=session.info.snapshot,
        resources=session.resources,
    )
    with line.written():
        snapshot = session.info.snapshot()
        view.begin({"model": snapshot.config.model, "cwd": session.info.root})
        show_history(session.info.entries, view, session=session.id, title=session.tree.title)
        view.tell(GREETING)
        if snapshot.config.model is None:
            view.tell(NO_MODEL, YELLOW)
            # The prompt waits in the line until something can answer it.
            text, prompt = prompt or text, SETUP
        return await talk.run(line, text=text, prompt=prompt)


async def _share(
    identity: SessionId,
    request: SessionRequest,
    view: LiveView,
    *,
    surface: PromptSurface,
    text: str,
    prompt: str,
) -> Switch | None:
    """Talk in a session that the daemon has open; None: the daemon does not have it."""
    from tiller_server.agent_client.connection import AgentRefused  # noqa: PLC0415 - seldom needed
    from tiller_server.cli.shared_session.chat import SharedChatSession  # noqa: PLC0415 - seldom needed
    from tiller_server.cli.shared_session.daemon_client import connected  # noqa: PLC0415 - as above

    root = Path(await anyio.Path(request.workspace).resolve())
    files = FileIndex(root)
    async with connected(request.env, root) as connection:
        if connection is None:
            return None
        session = SharedChatSession(connection, request)
        entries: Sequence[AnyEntry] | None = None
        with suppress(AgentRefused), anyio.move_on_after(OPEN_S):
            await session.open(identity, root)
            entries = await session.stored_entries()
        if entries is None:
            return None
        talk = ChatLoop(
            session, root, view, env=request.env, set_title=surface.title, copy=surface.copy
        )
        line = _line(
            talk,
            request,
            view,
            surface=surface,
            complete=lambda line: (
                session.suggestions(line) or file_suggestions(line, root=root, files=files)
            ),
            below=lambda: session.state,
        )
        with line.written():
            view.begin({"model": session.state.config.model, "cwd": str(root)})
            show_history(entries, view, session=identity, title=session.state.title)
            view.tell(SHARED, YELLOW)
            if request.rules:
                view.tell(NOT_ALLOWED, YELLOW)
            view.tell(GREETING)
            return await talk.run(line, text=text, prompt=prompt)


def _line(
    talk: ChatLoop,
    request: SessionRequest,
    view: LiveView,
    *,
    surface: PromptSurface,
    complete: LineCompleter,
    below: Callable[[], StatusSource],
    resources: ResourceView | None = None,
) -> ChatInput:
    return ChatInput(
        surface,
        history=app_paths(request.env).data / HISTORY,
        complete=complete,
        below=lambda: f" {status_below(below(), surface.columns - 1)}",
        keys=ChatKeys(
            stop=talk.stop,
            next_mode=lambda: talk.press("next mode"),
            to_background=lambda: talk.press("to background"),
            show_output=lambda: view.page_outputs(request.env, request.workspace.absolute()),
            read_picture=lambda: clipboard_picture(request.env, request.workspace.absolute()),
            tell=lambda why: view.tell(why, YELLOW),
            extensions=_extension_keys(resources, view),
        ),
        is_asked=lambda: talk.is_asked,
    )


def _extension_keys(resources: ResourceView | None, view: LiveView) -> ExtensionKeys:
    """Return the keys of a session's extensions; a session of the daemon offers none to the terminal."""

    def offered() -> Sequence[str]:
        return () if resources is None else [one.key for one in resources.offered().keys]

    def press(key: str) -> None:
        if resources is not None:
            resources.press(key)

    return ExtensionKeys(offered, press, tell=lambda why: view.tell(why, YELLOW))


def _tell_where(session: SessionId) -> None:
    """Write how to continue a stored session."""
    short = session[-SHORT_ID:]
    _ = sys.stderr.write(f"Session {short} is stored. Continue it with: tiller -r {short}\n")
