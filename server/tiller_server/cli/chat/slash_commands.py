"""Slash commands of the conversation itself, as opposed to skills, templates and commands of extensions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar, get_args

import anyio
from msgspec.structs import replace

from agent_core.assembly.library import open_library
from agent_core.assembly.models import keep_first_model
from agent_core.events import PermissionMode, ThinkingLevel
from agent_core.kernel.errors import CheckpointConflict, UsageError
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from agent_core.session.changes.views import RestoreResult
from tiller_server.cli.chat.context import ChatCommand, ChatContext, Switch, is_kept
from tiller_server.cli.chat.line_input import paths_after
from tiller_server.cli.chat.status import session_statistics
from tiller_server.cli.chat.tree import go_to
from tiller_server.cli.stored_sessions.session_files import ENDINGS, export_to, format_of
from tiller_server.cli.terminal.run_renderer import GREEN, YELLOW
from tiller_server.cli.terminal.text import SHORT_ID, one_line

T = TypeVar("T")
MOST_CHOICES: Final = 40
LEVELS: Final[tuple[str, ...]] = get_args(ThinkingLevel)
MODES: Final[tuple[str, ...]] = get_args(PermissionMode)

MOST_TRIED: Final = 1_000


async def export(chat: ChatContext, named: str) -> None:
    """Write it into a new file of the workspace; without a name, into one that is named after the session.

    Raises:
        UsageError: Nothing is kept of the session, the name says no format, or something of that name is there.
        StorageError: The session cannot be read, or the file cannot be written.
    """
    session = chat.session
    if not await is_kept(session):
        message = (
            "there is nothing to export: the session has no messages yet, or it is in memory only"
        )
        raise UsageError(message)
    root = Path(session.info.root)
    path = await anyio.Path(root / named).expanduser() if named else await _unused(root, session.id)
    how = format_of(Path(path))
    if how is None:
        message = f"{named!r} does not say in which format; end it with one of {', '.join(ENDINGS)}"
        raise UsageError(message)
    paths = chat.request.paths or app_paths(chat.request.env)
    async with open_library(paths, clock=chat.request.clock) as library:
        await export_to(library, session.id, how, Path(path))
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    chat.tell(f"the session is in {shown}", GREEN)


async def _unused(root: Path, session: str) -> anyio.Path:
    """Return an unused file name. `export_to` fails, and overwrites nothing, when the file appears in the meantime."""
    stem = f"tiller-{session[-SHORT_ID:]}"
    path = anyio.Path(root / f"{stem}.md")
    for number in range(2, MOST_TRIED):
        if not await path.exists():
            break
        path = anyio.Path(root / f"{stem}-{number}.md")
    return path


async def _help(chat: ChatContext, _: str) -> None:
    rows = [(f"/{name} {one.hint}".rstrip(), one.about) for name, one in COMMANDS.items()]
    rows += [(f"/{one.name}", one.description) for one in await chat.session.resources.refresh()]
    rows += [
        ("!COMMAND", "run a command; the model is told of it"),
        ("!!COMMAND", "run a command that the model is not told of"),
        ("@FILE", "say a file or picture beside your words; Tab completes"),
        ("Enter", "say it; while the model works it is told at its next step"),
        ("Alt-Enter", "begin a new line"),
        ("Esc or Ctrl-C", "stop what goes on"),
        ("Ctrl-D", "leave"),
    ]
    width = max(len(left) for left, _ in rows)
    chat.tell("\n".join(f"{left:<{width}}  {one_line(right)}" for left, right in rows))


async def _model(chat: ChatContext, wanted: str) -> None:
    models = chat.session.models
    before = models.current
    await models.refresh(servers="find")
    if not wanted:
        refs = [one.ref for one in models.available()]
        current = models.current
        chosen = await chat.choose(
            f"the model now is {current.ref if current else 'none'}; a number, or a part of a name",
            refs[:MOST_CHOICES],
        )
        if chosen is None:
            return
        wanted = refs[chosen] if isinstance(chosen, int) else chosen
    facts = await models.choose(wanted)
    paths = chat.request.paths or app_paths(chat.request.env)
    kept = await keep_first_model(facts, before=before, paths=paths)
    scope = ", also in new sessions" if kept else ""
    chat.tell(f"{facts.ref} answers from now on{scope}, thinking {models.thinking}", GREEN)


async def _think(chat: ChatContext, level: str) -> None:
    models = chat.session.models
    if not level:
        _ = await models.cycle_thinking()
    else:
        await models.think(_one_of(level, get_args(ThinkingLevel), what="level"))
    chat.tell(f"thinking is {models.thinking}")


async def _mode(chat: ChatContext, mode: str) -> None:
    info = chat.session.info
    if mode:
        _ = info.configure(mode=_one_of(mode, get_args(PermissionMode), what="mode"))
    chat.tell(f"permission is {info.config.mode}; containment is {info.snapshot().sandbox}")


async def _tools(chat: ChatContext, names: str) -> None:
    tools = chat.session.tools
    if names:
        await tools.activate(names)
    rest = [one for one in tools.all if one not in tools.active]
    more = f"; not active: {', '.join(rest)}" if rest else ""
    chat.tell(f"tools: {', '.join(tools.active)}{more}")


async def _compact(chat: ChatContext, instructions: str) -> None:
    receipt = await chat.session.compact(instructions or None)
    if receipt.compaction is None:
        chat.tell(receipt.why or "there is nothing to compact", YELLOW)


async def _name(chat: ChatContext, title: str) -> None:
    if title:
        await chat.session.tree.rename(title)
    chat.tell(f"the session is called {one_line(chat.session.tree.title or '') or 'nothing yet'}")


async def _session(chat: ChatContext, _: str) -> None:
    chat.tell(session_statistics(chat.session))


async def _next(chat: ChatContext, user_input: str) -> None:
    if not user_input:
        message = "/next needs words: they are said when the run going on has nothing left to do"
        raise UsageError(message)
    _ = await chat.session.follow_up(user_input)


async def _stop(chat: ChatContext, _: str) -> None:
    stopped = await chat.session.abort(queue="keep")
    if stopped.status == "alreadyEnded":
        chat.tell("nothing goes on")


async def _changes(chat: ChatContext, _: str) -> None:
    changes = chat.session.changes
    patch, lost = (await changes.patch()).rstrip("\n"), changes.lost()
    if patch or lost is None:
        chat.tell(patch or "nothing was changed")
    if lost is not None:
        chat.tell(lost, YELLOW)


async def _undo(chat: ChatContext, _: str) -> None:
    checkpoints = chat.session.checkpoints
    latest = checkpoints.latest_run
    if latest is None:
        none_left = "no run is left to take back"
        chat.tell(none_left if checkpoints.all else "no run of this session changed a file")
        return
    while latest is not None:
        try:
            restored = await checkpoints.restore(latest.checkpoint)
        except CheckpointConflict as error:
            chat.tell(str(error), YELLOW)
            return
        if restored.restored or restored.skipped:
            chat.tell(_undone(restored, Path(chat.session.info.root)), GREEN)
            return
        latest = checkpoints.latest_run
    chat.tell("the files are as they were: there was nothing left to take back")


def _undone(restored: RestoreResult, root: Path) -> str:
    names = [
        str(path.relative_to(root) if path.is_relative_to(root) else path)
        for path in restored.restored
    ]
    more = len(names) - MOST_CHOICES
    shown = ", ".join(names[:MOST_CHOICES]) + (f" and {more} more" if more > 0 else "")
    whys = dict.fromkeys(one.why for one in restored.skipped)
    return "\n".join([f"taken back: {shown or 'nothing'}", *(f"left: {why}" for why in whys)])


async def _reload(chat: ChatContext, _: str) -> None:
    loaded = await chat.session.resources.reload()
    lines = [f"{len(loaded.resources)} read", *(str(one) for one in loaded.problems)]
    chat.tell("\n".join(lines))


async def _new(chat: ChatContext, _: str) -> Switch:
    return Switch(request=replace(chat.request, session="new"))


async def _resume(chat: ChatContext, wanted: str) -> Switch | None:
    from agent_core.assembly.library import open_library  # noqa: PLC0415 - opens a database

    paths = app_paths(chat.request.env)
    async with open_library(paths, clock=chat.request.clock) as library:
        if wanted:
            return Switch(
                request=replace(chat.request, session=(await library.find(wanted)).session)
            )
        page = await library.list(chat.session.info.root, limit=MOST_CHOICES)
        others = [one for one in page.sessions if one.session != chat.session.id]
        rows = [one_line(one.title or one.preview) for one in others]
        chosen = await chat.choose(
            "which session? a number, or the beginning or end of an id", rows
        )
        if chosen is None:
            return None
        found = others[chosen] if isinstance(chosen, int) else await library.find(chosen)
    return Switch(request=replace(chat.request, session=found.session))


async def _fork(chat: ChatContext, _: str) -> Switch | None:
    said = [
        one for one in chat.session.tree.nodes() if one.kind == "message" and one.role == "user"
    ][-MOST_CHOICES:]
    rows = [one_line(one.preview) for one in said]
    chosen = await chat.choose("go on from before which of your words? a number", rows)
    if not isinstance(chosen, int):
        return None
    copy = await chat.session.tree.fork(said[chosen].entry)
    return Switch(request=replace(chat.request, session=copy.session or "new"), text=copy.text)


async def _key(chat: ChatContext, key: str) -> None:
    keys = chat.session.resources.offered().keys
    if key:
        chat.session.resources.press(key)
        return
    rows = [f"{one.key}  {one_line(one.description)} ({one.extension})" for one in keys]
    chat.tell("\n".join(rows) or "no extension offers a key")


async def _quit(chat: ChatContext, arguments: str) -> Switch:
    _ = chat, arguments
    return Switch(request=None)


COMMANDS: Final[Mapping[str, ChatCommand]] = {
    "help": ChatCommand(hint="", about="say what can be typed", run=_help),
    "model": ChatCommand(hint="[MODEL]", about="choose who answers", run=_model),
    "think": ChatCommand(
        hint="[LEVEL]", about="choose how hard the model thinks", run=_think, values=LEVELS
    ),
    "permission": ChatCommand(
        hint="[MODE]", about="choose what runs without being asked", run=_mode, values=MODES
    ),
    "tools": ChatCommand(
        hint="[SET]", about="choose the tools: a preset, +name, -name", run=_tools
    ),
    "next": ChatCommand(hint="WORDS", about="say it when the run is over", run=_next),
    "stop": ChatCommand(hint="", about="stop what goes on", run=_stop),
    "compact": ChatCommand(hint="[WHAT]", about="sum up the older part", run=_compact),
    "changes": ChatCommand(hint="", about="show what was changed", run=_changes),
    "undo": ChatCommand(
        hint="", about="take back what the last run changed; again: the run before", run=_undo
    ),
    "name": ChatCommand(hint="[TITLE]", about="name the session", run=_name),
    "session": ChatCommand(hint="", about="say what the session holds and cost", run=_session),
    "export": ChatCommand(
        hint="[FILE]", about="write it as .md, .html or .jsonl", run=export, takes_file=True
    ),
    "new": ChatCommand(hint="", about="begin a new session", run=_new, at_rest=True),
    "resume": ChatCommand(
        hint="[ID]", about="go on with another session", run=_resume, at_rest=True
    ),
    "tree": ChatCommand(
        hint="[WORDS]", about="go on from another place, here", run=go_to, at_rest=True
    ),
    "fork": ChatCommand(hint="", about="go on from earlier, in a copy", run=_fork, at_rest=True),
    "reload": ChatCommand(hint="", about="read instructions and settings anew", run=_reload),
    "key": ChatCommand(
        hint="[KEY]", about="do what a key of an extension does: a terminal binds none", run=_key
    ),
    "quit": ChatCommand(hint="", about="leave", run=_quit),
}


def completed(line: str, *, session: AgentSession) -> list[str]:
    """Return the ways in which a line goes on that begins with a slash."""
    if not line.startswith("/") or "\n" in line:
        return []
    name, blank, typed = line[1:].partition(" ")
    if not blank:
        names = [*COMMANDS, *(one.name for one in session.resources.commands())]
        return [f"/{one} " for one in names if one.startswith(name)]
    if name == "model":
        refs = (one.ref for one in session.models.available())
        return [f"/model {ref}" for ref in refs if typed.lower() in ref.lower()][:MOST_CHOICES]
    command = COMMANDS.get(name)
    if command is None:
        return []
    if command.takes_file:
        return paths_after(f"/{name} ", typed, root=Path(session.info.root))
    return [f"/{name} {one}" for one in command.values if one.startswith(typed)]


def _one_of(word: str, choices: Sequence[T], *, what: str) -> T:
    for one in choices:
        if one == word:
            return one
    message = f"{word!r} is no {what}; it is one of {', '.join(map(str, choices))}"
    raise UsageError(message)
