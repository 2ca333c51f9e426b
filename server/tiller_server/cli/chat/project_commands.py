"""Commands about the work in the project: `/init`, `/review`, `/diff`, `/copy`, `/tasks`, `/remember`."""

import os
import subprocess
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from agent_core.assembly import SessionRequest
from agent_core.kernel.errors import UsageError
from agent_core.resources.paths import app_paths
from agent_core.workspace.files.paths import relative_name
from agent_core.workspace.permissions.policy.commands.programs import find_outside_program
from tiller_server.cli.chat.context import ChatContext, ChatDialog
from tiller_server.cli.chat.status import task_lines
from tiller_server.cli.terminal.live_view import ADDED, REMOVED
from tiller_server.cli.terminal.run_renderer import DIM, GREEN, YELLOW
from tiller_server.cli.terminal.text import BOLD

INSTRUCTIONS: Final = "AGENTS.md"
WRITE_INSTRUCTIONS: Final = f"""\
Write the file {INSTRUCTIONS} in the root of this project: instructions for coding agents that will work here.
First look at the project: its README, its build and test configuration, its folders, its most important source files, and
existing instructions for agents (CLAUDE.md, .cursorrules, .github/copilot-instructions.md), whose content you carry over.
Then write at most 60 lines:
- one paragraph that says what the project is;
- the exact commands to install, build, run all tests, run one test, lint and format;
- the layout: the folders that matter and what they hold;
- conventions of code and commits that a newcomer would get wrong, as far as the project shows them;
- what must not be touched.
State only what you have seen in the files. Leave out what every developer knows."""
IMPROVE_INSTRUCTIONS: Final = f"""\
Bring the file {INSTRUCTIONS} of this project up to date. Read it, then compare every statement with the project: commands, paths,
conventions. Correct what is wrong, add what is missing and useful to a coding agent, remove what every developer knows, and keep
what the authors wrote on purpose. Report what you changed."""
REVIEW: Final = """\
Review the uncommitted changes of this project (git status, git diff HEAD, and the untracked files). Read the surrounding code
where a change needs it. Do not edit anything. Report only real problems, most severe first: bugs, lost data, security, missing
error handling, broken behaviour of callers, missing tests. For each: file and line, what goes wrong and when, how to correct it.
If there is none, say so in one sentence."""
COPIERS: Final = (
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("xsel", "--clipboard", "--input"),
    ("pbcopy",),
)
COPY_S: Final = 3.0


async def init(chat: ChatContext, wishes: str) -> None:
    """Ask the model to write the project's instructions for agents, or to bring them up to date."""
    there = await anyio.Path(Path(chat.session.info.root) / INSTRUCTIONS).exists()
    chat.tell(f"{INSTRUCTIONS} exists: updating it." if there else f"Writing {INSTRUCTIONS}.")
    await _ask(chat, IMPROVE_INSTRUCTIONS if there else WRITE_INSTRUCTIONS, wishes)


async def review(chat: ChatContext, wishes: str) -> None:
    """Ask the model to review the uncommitted changes."""
    await _ask(chat, REVIEW, wishes)


async def _ask(chat: ChatContext, prompt: str, wishes: str) -> None:
    _ = await chat.session.prompt(with_wishes(prompt, wishes), delivery="auto")


def with_wishes(prompt: str, wishes: str) -> str:
    """Return a prompt of a command with the text that the user typed behind the command."""
    return f"{prompt}\n\n{wishes}" if wishes else prompt


async def diff(chat: ChatContext, _: str) -> None:
    """Show the changes of this session as a diff."""
    changes = chat.session.changes
    show_patch(chat, await changes.patch(), lost=changes.lost())


def show_patch(dialog: ChatDialog, patch: str, *, lost: str | None = None) -> None:
    """Show the changes of a session as a git patch in colours, without the ids of objects.

    Args:
        dialog: Where they are shown.
        patch: The patch; empty: there are no changes.
        lost: Sentence about changes that are not in it.
    """
    if patch:
        shown = (line for line in patch.rstrip("\n").split("\n") if not line.startswith("index "))
        for style, lines in groupby(shown, _style):
            dialog.tell("\n".join(lines), style)
    elif lost is None:
        dialog.tell("No changes in this session.")
    if lost is not None:
        dialog.tell(lost, YELLOW)


def _style(line: str) -> str:
    if line.startswith(("---", "+++", "diff ")):
        return BOLD
    if line.startswith("+"):
        return ADDED
    return REMOVED if line.startswith("-") else DIM


async def copy(chat: ChatContext, _: str) -> None:
    """Copy the last answer to the clipboard: with a program of the desktop, else through the terminal."""
    root = Path(chat.session.info.root)
    await copy_text(chat, chat.session.info.last_answer(), env_path=_path(chat), root=root)


async def copy_text(dialog: ChatDialog, text: str | None, *, env_path: str, root: Path) -> None:
    """Copy an answer; None: there is none yet."""
    if not text:
        dialog.tell("There is no answer to copy yet.", YELLOW)
        return
    if not await to_thread.run_sync(_copied, text, env_path, root):
        dialog.to_clipboard(text)
    dialog.tell(f"Copied the last answer ({len(text):,} characters).", GREEN)


def _path(chat: ChatContext) -> str:
    return chat.request.env.get("PATH", os.defpath)


def _copied(text: str, env_path: str, root: Path) -> bool:
    """Return whether a program of the desktop took the text. Blocking."""
    for argv in COPIERS:
        program = find_outside_program(argv[0], env_path=env_path, roots=(root,))
        if program is None:
            continue
        try:
            # Its output is closed: it stays in the background and would keep a pipe open.
            _ = subprocess.run(  # noqa: S603 - a fixed program
                [program, *argv[1:]],
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=COPY_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return True
    return False


ACTIONS: Final = frozenset({"stop", "resume", "diff", "merge", "discard"})
FORCE: Final = "force"


async def tasks(chat: ChatContext, wanted: str) -> None:
    """Carry out `/tasks` in a session of this process."""
    session = chat.session
    match task_action(wanted):
        case "list", _, _:
            chat.tell(task_lines(session.info.snapshot().tasks))
        case "stop", id_, _:
            chat.tell(task_lines([await session.tasks.stop_for_user(id_)]))
        case "resume", id_, _:
            chat.tell(task_lines([await session.tasks.resume(id_)]))
        case "diff", id_, _:
            show_patch(chat, await session.tasks.merges.patch(id_))
        case "merge", id_, _:
            merged = await session.tasks.merges.merge(id_)
            root = Path(session.info.root)
            chat.tell(merged_message(id_, merged.written, root=root), GREEN)
        case _, id_, force:
            removed = await session.tasks.merges.discard(id_, force=force)
            chat.tell(discarded_message(id_, removed.kept_ref))


def task_action(wanted: str) -> tuple[str, str, bool]:
    """Return what to do, `list` for nothing, the id of the task, and whether unmerged changes may be removed.

    Raises:
        UsageError: It is none of the actions.
    """
    match wanted.split():
        case [] | ["list"]:
            return "list", "", False
        case ["discard", id_, word] if word == FORCE:
            return "discard", id_, True
        case [action, id_] if action in ACTIONS:
            return action, id_, False
        case _:
            message = f"/tasks takes nothing, or stop, resume, diff, merge or discard and an id such as t1; not {wanted!r}"
            raise UsageError(message)


def merged_message(id_: str, written: Sequence[Path], *, root: Path) -> str:
    """Return the result of a merge."""
    if not written:
        return f"The workspace had all changes of {id_} already."
    names = ", ".join(relative_name(one, root) for one in written)
    return f"Merged {id_}: {names}. /undo takes it back, /tasks discard {id_} removes the worktree."


def discarded_message(id_: str, kept_ref: str) -> str:
    """Return the result of the removal of a worktree."""
    return f"Removed the worktree of {id_}; {kept_ref} keeps its content."


SWITCH_ON: Final = ("Yes, use memory in this project", "No")
NOT_REMEMBERED: Final = "Nothing was stored."


async def remember(chat: ChatContext, wanted: str) -> None:
    """Carry out `/remember` in a session of this process."""
    await remember_text(chat, wanted, request=chat.request, session=chat.session.id)


async def remember_text(
    dialog: ChatDialog, wanted: str, *, request: SessionRequest, session: str | None
) -> None:
    """Store a text of the user in the memory; switch memory on first if they want that.

    Args:
        dialog: Where they are asked.
        wanted: The text, behind `--user` if it is for all their projects.
        request: How the session was opened.
        session: Id of the session; None: it is not known.

    Raises:
        UsageError: There is no text, or it cannot be stored.
        ConfigError: A memory file cannot be read or written.
    """
    from agent_core.memory.access import open_memory  # noqa: PLC0415 - only this needs it
    from agent_core.memory.command import remember as store  # noqa: PLC0415 - as above

    paths = request.paths or app_paths(request.env)
    memory = await open_memory(
        paths.memory,
        request.workspace,
        env=request.env,
        clock=request.clock,
        redactor=request.redactor,
    )
    if wanted.strip() and not await memory.is_on():
        title = "Memory is off in this project. Switch it on?"
        if await dialog.choose(title, SWITCH_ON) != 0:
            dialog.tell(NOT_REMEMBERED)
            return
        await memory.switch(on=True)
    dialog.tell(await store(memory, wanted, session=session), GREEN)
