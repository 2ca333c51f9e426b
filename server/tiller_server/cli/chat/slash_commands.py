"""Slash commands of the conversation itself, as opposed to skills, templates and commands of extensions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar, get_args

from msgspec.structs import replace

from agent_core.events import PermissionMode, ThinkingLevel
from agent_core.kernel.errors import CheckpointConflict, UsageError
from agent_core.messages import Text, text_of
from agent_core.session import AgentSession
from agent_core.session.changes.checkpoints import OnConflict
from agent_core.session.history.plans import OFFERED, PlanAnswer, answer_plan, open_plan
from agent_core.workspace.files.paths import relative_name
from tiller_server.cli.chat.account_commands import choose_model, login, logout, setup
from tiller_server.cli.chat.context import (
    ChatCommand,
    ChatContext,
    ChatDialog,
    Refill,
    Switch,
    is_kept,
)
from tiller_server.cli.chat.project_commands import copy, diff, init, remember, review, tasks
from tiller_server.cli.chat.status import (
    MODE_MEANINGS,
    background_lines,
    mode_line,
    session_cost,
    session_status,
)
from tiller_server.cli.chat.tree import go_to
from tiller_server.cli.stored_sessions.session_choice import (
    MOST_CHOICES,
    choose_prompt,
    choose_session,
    export_session,
)
from tiller_server.cli.terminal.run_renderer import GREEN, YELLOW
from tiller_server.cli.terminal.text import BOLD, one_line

T = TypeVar("T")
LEVELS: Final[tuple[ThinkingLevel, ...]] = get_args(ThinkingLevel)
MODES: Final[tuple[PermissionMode, ...]] = get_args(PermissionMode)
"""From the strictest to the loosest."""
NO_PLAN: Final = (
    "No plan waits for an answer. /permission plan makes the next prompt one that is only planned."
)
REJECTED_PLAN: Final = "The plan is rejected. The mode stays plan."
MOVED: Final = "The command goes on in the background."
NOT_MOVED: Final = "No command is running that could go on in the background."
NO_TRUST: Final = "Read only for now"
TRUST_CHOICES: Final = ("Trust this folder", "Trust it in this session", NO_TRUST)
HELP_CELLS: Final = 22
FREE: Final = "agentOnly"
"""State of files that an undo restores without a question."""
CONTESTED: Final = frozenset({"userEdited", "missing"})
"""States of files that somebody else changed or deleted as well."""
CONFLICT_CHOICES: Final[Mapping[OnConflict, str]] = {
    "merge": "Yes, and keep the other changes where they are in other lines",
    "skip": "Yes, but leave these files as they are",
    "overwrite": "Yes, and discard the other changes in these files",
}
"""Handling of files that somebody else changed as well."""


async def _help(chat: ChatContext, _: str) -> None:
    offered = await chat.session.resources.refresh()
    groups = [
        (
            title,
            [(f"/{name} {COMMANDS[name].hint}".rstrip(), COMMANDS[name].about) for name in names],
        )
        for title, names in GROUPS.items()
    ]
    groups.append(
        (
            "Skills, templates and extensions",
            [(f"/{one.name}", one.description) for one in offered if one.name not in COMMANDS],
        )
    )
    groups.append(("Keys and other input", [*KEYS]))
    width = min(max(len(left) for _, rows in groups for left, _ in rows), HELP_CELLS)
    for title, rows in groups:
        if rows:
            chat.tell(title, BOLD)
            lines = (f"  {left:<{width}}  {one_line(right)}" for left, right in rows)
            chat.tell("\n".join(lines))


async def _think(chat: ChatContext, wanted: str) -> None:
    models = chat.session.models
    level = await choose_level(chat, wanted, current=models.thinking)
    if level is not None:
        await models.think(level)
    chat.tell(f"Thinking: {models.thinking}")


async def choose_level(
    dialog: ChatDialog, wanted: str, *, current: ThinkingLevel
) -> ThinkingLevel | None:
    """Return the thinking level that was typed, else the one that the user chooses; None: they chose none.

    Raises:
        UsageError: There is no such level.
    """
    rows = dict.fromkeys(LEVELS, "")
    return await _choose_value(dialog, wanted, rows, current=current, of="thinking", what="level")


async def choose_mode(
    dialog: ChatDialog, wanted: str, *, current: PermissionMode
) -> PermissionMode | None:
    """Return the permission mode that was typed, else the one that the user chooses; None: they chose none.

    Raises:
        UsageError: There is no such mode.
    """
    rows: Mapping[PermissionMode, str] = {mode: MODE_MEANINGS[mode] for mode in MODES}
    return await _choose_value(dialog, wanted, rows, current=current, of="permission", what="mode")


async def _choose_value(
    dialog: ChatDialog, wanted: str, rows: Mapping[T, str], *, current: T, of: str, what: str
) -> T | None:
    values = list(rows)
    if not wanted:
        width = max(len(str(value)) for value in values)
        lines = [f"{value!s:<{width}}  {about}".rstrip() for value, about in rows.items()]
        chosen = await dialog.choose(
            f"{of.capitalize()} {what}?", lines, marked=values.index(current)
        )
        if not isinstance(chosen, str):
            return None if chosen is None else values[chosen]
        wanted = chosen
    return one_of(wanted, values, what=what)


async def _mode(chat: ChatContext, wanted: str) -> None:
    info = chat.session.info
    mode = await choose_mode(chat, wanted, current=info.config.mode)
    if mode is not None:
        _ = info.configure(mode=mode)
    chat.tell(f"{mode_line(info.config.mode)} Containment: {info.snapshot().sandbox}.")


async def _trust(chat: ChatContext, _: str) -> None:
    permissions = chat.session.permissions
    root = Path(chat.session.info.root)
    if permissions.trust.trusted:
        chat.tell(f"{root} is trusted. `tiller trust rm {root}` takes that back.")
        return
    chat.tell(one_line(await permissions.describe_trust()))
    chosen = await chat.choose(f"Trust {root.name or root}?", TRUST_CHOICES)
    if isinstance(chosen, int) and chosen < TRUST_CHOICES.index(NO_TRUST):
        trust = await permissions.decide_trust(trusted=True, lasting=chosen == 0)
        chat.tell(f"{trust.folder} is trusted.", GREEN)
    else:
        chat.tell(f"{root} is not trusted: it is only read.")


async def _tools(chat: ChatContext, names: str) -> None:
    tools = chat.session.tools
    if names:
        await tools.activate(names)
    rest = [one for one in tools.all if one not in tools.active]
    more = f". Not active: {', '.join(rest)}" if rest else ""
    chat.tell(f"Tools: {', '.join(tools.active)}{more}")


async def _compact(chat: ChatContext, instructions: str) -> None:
    receipt = await chat.session.compact(instructions or None)
    if receipt.compaction is None:
        chat.tell(receipt.why or "Nothing to compact.", YELLOW)


async def _name(chat: ChatContext, title: str) -> None:
    if title:
        await chat.session.tree.rename(title)
    chat.tell(f"Title: {one_line(chat.session.tree.title or '') or 'none'}")


async def _status(chat: ChatContext, _: str) -> None:
    chat.tell(session_status(chat.session))


async def _cost(chat: ChatContext, _: str) -> None:
    chat.tell(session_cost(chat.session))


async def _next(chat: ChatContext, user_input: str) -> None:
    if not user_input:
        message = "/next needs a text; it is sent when this run has ended"
        raise UsageError(message)
    _ = await chat.session.follow_up(user_input)


async def _stop(chat: ChatContext, _: str) -> Refill | None:
    text = await stop_session(chat.session)
    if text is None:
        chat.tell("Nothing is running.")
    return Refill(text) if text else None


async def stop_session(session: AgentSession) -> str | None:
    """Stop what is active; return the queued text that the user gets back into the line, None if nothing was active."""
    waiting = session.info.snapshot().queue
    # A picture could not be given back.
    is_text = all(isinstance(part, Text) for item in waiting for part in item.content)
    stopped = await session.abort(queue="return" if is_text else "keep")
    if stopped.status == "alreadyEnded" and not stopped.returned:
        return None
    return "\n\n".join(text_of(item.content) for item in stopped.returned)


async def _background(chat: ChatContext, wanted: str) -> None:
    session = chat.session
    match background_action(wanted):
        case "move":
            chat.tell(MOVED if session.move_to_background() else NOT_MOVED)
        case "list":
            chat.tell(background_lines(session.info.snapshot().background))
        case id_:
            chat.tell(f"Stopped {(await session.stop_background(id_)).id}.")


def background_action(wanted: str) -> str:
    """Return `list`, `move`, or the id of the command that is to be stopped.

    Raises:
        UsageError: It is none of them.
    """
    match wanted.split():
        case [] | ["list"]:
            return "list"
        case ["move"]:
            return "move"
        case ["stop", id_]:
            return id_
        case _:
            message = (
                f"/background takes nothing, move, or stop and an id such as bg1; not {wanted!r}"
            )
            raise UsageError(message)


async def _plan(chat: ChatContext, wanted: str) -> None:
    session = chat.session
    plan = open_plan(session.info.messages)
    if plan is None:
        chat.tell(NO_PLAN)
    elif (meant := await ask_plan(chat, plan.markdown, plan.revision, wanted)) is not None:
        answer, text = meant
        _ = await answer_plan(session, answer, sha256=plan.sha256, text=text)
        if answer == "reject":
            chat.tell(REJECTED_PLAN)


async def ask_plan(
    dialog: ChatDialog, markdown: str, revision: int, wanted: str
) -> tuple[PlanAnswer, str | None] | None:
    """Ask the user for the answer to a plan; None: they did not answer.

    Args:
        dialog: Where they are asked.
        markdown: The plan.
        revision: Its revision.
        wanted: The change that was typed with the command; empty: there is none.

    Returns:
        The answer, and for a change the wishes of the user.
    """
    if wanted:
        return "change", wanted
    dialog.tell_markdown(markdown)
    title = f"Carry out revision {revision} of the plan? Other text asks for a change."
    chosen = await dialog.choose(title, list(OFFERED.values()))
    if isinstance(chosen, str):
        return "change", chosen
    return None if chosen is None else (list(OFFERED)[chosen], None)


async def _undo(chat: ChatContext, _: str) -> None:
    checkpoints = chat.session.checkpoints
    latest = checkpoints.latest_run
    if latest is None:
        none_left = "Nothing left to undo."
        chat.tell(
            none_left
            if checkpoints.all
            else "Nothing to undo: no run of this session changed a file."
        )
        return
    root = Path(chat.session.info.root)
    while latest is not None:
        files = await checkpoints.preview(latest.checkpoint)
        free = any(one.status == FREE for one in files)
        contested = [one.path for one in files if one.status in CONTESTED and one.why is None]
        on_conflict = await ask_conflict(chat, contested, free=free, root=root)
        if on_conflict is None:
            return
        try:
            restored = await checkpoints.restore(latest.checkpoint, on_conflict=on_conflict)
        except CheckpointConflict as error:
            chat.tell(str(error), YELLOW)
            return
        if restored.restored or restored.skipped:
            whys = [one.why for one in restored.skipped]
            chat.tell(undone(restored.restored, whys, root=root), GREEN)
            return
        latest = checkpoints.latest_run
    chat.tell("Nothing left to undo: the files are as they were.")


async def ask_conflict(
    dialog: ChatDialog, contested: Sequence[Path], *, free: bool, root: Path
) -> OnConflict | None:
    """Ask the user what an undo does with files that somebody else changed as well; None: they cancelled.

    Args:
        dialog: Where they are asked; not at all if there is no such file.
        contested: These files.
        free: Whether the undo changes other files, so that these may be left.
        root: Folder of the session.
    """
    if not contested:
        return "skip"
    names = _listed(contested, root)
    title = f"Changed or deleted since by somebody else: {names}. Undo the run?"
    offered: list[OnConflict] = [one for one in CONFLICT_CHOICES if free or one != "skip"]
    chosen = await dialog.choose(title, [CONFLICT_CHOICES[one] for one in offered])
    if isinstance(chosen, int):
        return offered[chosen]
    dialog.tell("Nothing was restored.")
    return None


def undone(restored: Sequence[Path], whys: Sequence[str], *, root: Path) -> str:
    """Describe a restore: the files, and why others were left as they are."""
    lines = (f"Not restored: {why}" for why in dict.fromkeys(whys))
    return "\n".join([f"Restored: {_listed(restored, root) or 'nothing'}", *lines])


def _listed(paths: Sequence[Path], root: Path) -> str:
    """Return the first names of files, and how many more there are."""
    names = [relative_name(path, root) for path in paths]
    more = len(names) - MOST_CHOICES
    return ", ".join(names[:MOST_CHOICES]) + (f" and {more} more" if more > 0 else "")


async def _reload(chat: ChatContext, _: str) -> None:
    loaded = await chat.session.resources.reload()
    names = ", ".join(sorted({Path(one.path).name for one in loaded.resources if one.path}))
    count = len(loaded.resources)
    files = f"{count} file{'' if count == 1 else 's'}"
    lines = [f"Reloaded {files}{': ' if names else ''}{names}", *map(str, loaded.problems)]
    chat.tell("\n".join(lines))


async def _new(chat: ChatContext, _: str) -> Switch:
    return Switch(request=replace(chat.request, session="new"))


async def _resume(chat: ChatContext, wanted: str) -> Switch | None:
    root, current = Path(chat.session.info.root), chat.session.id
    chosen = await choose_session(chat, chat.request, wanted, root=root, current=current)
    return None if chosen is None else Switch(request=replace(chat.request, session=chosen))


async def _export(chat: ChatContext, named: str) -> None:
    session = chat.session
    if not await is_kept(session):
        message = "nothing to export: the session has no messages yet, or it is in memory only"
        raise UsageError(message)
    root = Path(session.info.root)
    await export_session(chat, chat.request, named, root=root, session=session.id)


async def _fork(chat: ChatContext, _: str) -> Switch | None:
    said = [
        (one.entry, one.preview)
        for one in chat.session.tree.nodes()
        if one.kind == "message" and one.role == "user"
    ]
    entry = await choose_prompt(chat, said)
    if entry is None:
        return None
    copy = await chat.session.tree.fork(entry)
    return Switch(request=replace(chat.request, session=copy.session or "new"), text=copy.text)


async def _key(chat: ChatContext, key: str) -> None:
    keys = chat.session.resources.offered().keys
    if key:
        chat.session.resources.press(key)
        return
    rows = [f"{one.key}  {one_line(one.description)} ({one.extension})" for one in keys]
    chat.tell("\n".join(rows) or "No extension offers a key.")


async def _quit(chat: ChatContext, arguments: str) -> Switch:
    _ = chat, arguments
    return Switch(request=None)


COMMANDS: Final[Mapping[str, ChatCommand]] = {
    "help": ChatCommand(hint="", about="show this help", run=_help),
    "status": ChatCommand(hint="", about="show session, model, mode, folder", run=_status),
    "cost": ChatCommand(hint="", about="show tokens and cost of this session", run=_cost),
    "setup": ChatCommand(hint="", about="sign in and choose a model, step by step", run=setup),
    "login": ChatCommand(hint="[PROVIDER]", about="sign in to a model provider", run=login),
    "logout": ChatCommand(hint="[PROVIDER]", about="remove a stored key or login", run=logout),
    "model": ChatCommand(hint="[MODEL]", about="choose the model", run=choose_model),
    "think": ChatCommand(hint="[LEVEL]", about="set the thinking level", run=_think, values=LEVELS),
    "plan": ChatCommand(hint="[CHANGE]", about="answer the plan that waits", run=_plan),
    "permission": ChatCommand(
        hint="[MODE]",
        about="set what runs without asking (Shift-Tab: next)",
        run=_mode,
        values=MODES,
    ),
    "trust": ChatCommand(hint="", about="trust the folder of the session", run=_trust),
    "tools": ChatCommand(hint="[SET]", about="set the tools: a preset, +name, -name", run=_tools),
    "next": ChatCommand(hint="TEXT", about="send a prompt after this run", run=_next),
    "stop": ChatCommand(hint="", about="stop the run", run=_stop),
    "background": ChatCommand(
        hint="[stop ID]", about="show or stop background commands", run=_background
    ),
    "tasks": ChatCommand(
        hint="[ACTION ID]", about="list tasks; stop, resume, diff, merge, discard one", run=tasks
    ),
    "compact": ChatCommand(hint="[WHAT]", about="summarize the older part", run=_compact),
    "diff": ChatCommand(hint="", about="show the changes of this session", run=diff),
    "undo": ChatCommand(
        hint="", about="revert the last run's changes; again: the run before", run=_undo
    ),
    "copy": ChatCommand(hint="", about="copy the last answer", run=copy),
    "remember": ChatCommand(
        hint="[--user] TEXT", about="keep a text for later sessions", run=remember
    ),
    "init": ChatCommand(hint="[TEXT]", about="write or update AGENTS.md", run=init),
    "review": ChatCommand(hint="[TEXT]", about="review uncommitted changes", run=review),
    "new": ChatCommand(hint="", about="start a new session (also /clear)", run=_new, at_rest=True),
    "resume": ChatCommand(
        hint="[TEXT]", about="continue another session", run=_resume, at_rest=True
    ),
    "name": ChatCommand(hint="[TITLE]", about="name this session", run=_name),
    "tree": ChatCommand(
        hint="[TEXT]", about="continue from an earlier entry", run=go_to, at_rest=True
    ),
    "fork": ChatCommand(hint="", about="continue from earlier in a copy", run=_fork, at_rest=True),
    "export": ChatCommand(
        hint="[FILE]", about="save as .md, .html or .jsonl", run=_export, takes_file=True
    ),
    "reload": ChatCommand(hint="", about="reload instructions and settings", run=_reload),
    "key": ChatCommand(hint="[KEY]", about="run the action of an extension's key", run=_key),
    "quit": ChatCommand(hint="", about="quit (also Ctrl-D)", run=_quit),
}
OTHER_NAMES: Final[Mapping[str, str]] = {
    "changes": "diff", "clear": "new", "exit": "quit", "session": "status"
}  # fmt: skip
"""Further names of commands, as other agents have them."""
GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Work": (
        "init",
        "plan",
        "review",
        "diff",
        "undo",
        "copy",
        "remember",
        "next",
        "stop",
        "background",
        "tasks",
        "compact",
    ),
    "Model and rights": (
        "setup",
        "login",
        "logout",
        "model",
        "think",
        "permission",
        "trust",
        "tools",
    ),
    "Sessions": ("new", "resume", "name", "tree", "fork", "export"),
    "This conversation": ("help", "status", "cost", "reload", "key", "quit"),
}
KEYS: Final = (
    ("Enter", "send; in a run, for its next step (stops a command)"),
    ("Alt-Enter", "new line"),
    ("Esc, Ctrl-C", "stop the run"),
    ("Ctrl-B", "move the running command or task to the background"),
    ("Ctrl-O", "show the output of the last tool calls"),
    ("Shift-Tab", "next permission mode"),
    ("Ctrl-V", "attach the picture of the clipboard"),
    ("Ctrl-G", "edit the text in $EDITOR"),
    ("Ctrl-Z", "suspend; fg continues"),
    ("Ctrl-D", "quit"),
    ("@FILE", "attach a file or picture"),
    ("!COMMAND", "run a command; the model sees the output"),
    ("!!COMMAND", "run a command the model does not see"),
)


def one_of(word: str, choices: Sequence[T], *, what: str) -> T:
    """Return the choice that a word names.

    Raises:
        UsageError: It names none.
    """
    for one in choices:
        if one == word:
            return one
    message = f"unknown {what} {word!r}: use one of {', '.join(map(str, choices))}"
    raise UsageError(message)
