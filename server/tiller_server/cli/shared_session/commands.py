"""Slash commands of a conversation in a session that the daemon has loaded."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from agent_core.assembly import SessionRequest
from agent_core.events import BackgroundInfo, TaskInfo
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import as_object, is_object
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Text, UserContent, UserMessage
from agent_core.transcript import AnyEntry, MessageEntry, build_context
from tiller_server.agent_client.events import value_of
from tiller_server.cli.chat.account_commands import ask_model
from tiller_server.cli.chat.context import ChatDialog, ChatLineOutcome, Refill, Switch
from tiller_server.cli.chat.project_commands import (
    REVIEW,
    copy_text,
    discarded_message,
    merged_message,
    remember_text,
    show_patch,
    task_action,
    with_wishes,
)
from tiller_server.cli.chat.slash_commands import (
    COMMANDS as LOCAL_COMMANDS,
    CONTESTED,
    FREE,
    HELP_CELLS,
    MOVED,
    NO_PLAN,
    NOT_MOVED,
    OTHER_NAMES,
    REJECTED_PLAN,
    ask_conflict,
    ask_plan,
    background_action,
    choose_level,
    choose_mode,
    undone,
)
from tiller_server.cli.chat.status import (
    StatusSource,
    background_lines,
    cost_lines,
    mode_line,
    shared_status,
    task_lines,
)
from tiller_server.cli.chat.tree import choose_entry, report_move
from tiller_server.cli.stored_sessions.session_choice import (
    choose_prompt,
    choose_session,
    export_session,
)
from tiller_server.cli.stored_sessions.transcript_view import content_text
from tiller_server.cli.terminal.run_renderer import GREEN, YELLOW
from tiller_server.lsp.documents.uris import path_of


class SharedStatus(StatusSource, Protocol):
    """State of the session, with what runs in the background."""

    @property
    def background(self) -> Sequence[BackgroundInfo]:
        """Background commands that run."""
        ...

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        """Tasks that run, were lost or ended last."""
        ...


class SharedActions(Protocol):
    """Actions of commands in the session; each raises AgentRefused when the daemon refuses it."""

    @property
    def id(self) -> str:
        """Id of the session."""
        ...

    @property
    def state(self) -> SharedStatus:
        """State of the session now."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a run, a compaction or a command of the user is active."""
        ...

    async def request(self, method: str, params: JsonObject) -> JsonValue:
        """Send a request about the session and wait for its result."""
        ...

    @property
    def root(self) -> Path:
        """Folder of the session."""
        ...

    async def prompt(self, content: Sequence[UserContent]) -> None:
        """Send a prompt; during a run it steers the run."""
        ...

    async def stored_entries(self) -> Sequence[AnyEntry]:
        """Read the present branch from the file of the session."""
        ...

    async def all_entries(self) -> Sequence[AnyEntry]:
        """Read the entries of all branches from the file of the session."""
        ...

    async def configure(self, changes: JsonObject) -> None:
        """Change the configuration."""
        ...

    async def follow_up(self, text: str) -> None:
        """Send a prompt that starts a run when this one has ended."""
        ...

    async def stop(self) -> str:
        """Stop what is active; return the queued text that the user gets back into the line, empty for none."""
        ...

    def request_for(self, session: str) -> SessionRequest:
        """Return the request that opens another session in this terminal."""
        ...


class SharedCommand(Value, frozen=True, kw_only=True):
    """A command; its hint and its description are those of the command of the same name in any chat."""

    run: Callable[[SharedActions, ChatDialog, str], Awaitable[ChatLineOutcome]]


async def run_command(
    session: SharedActions, dialog: ChatDialog, name: str, arguments: str
) -> ChatLineOutcome:
    """Run a command.

    Raises:
        UsageError: It works only in a session that this terminal has for itself, or its argument is wrong.
        AgentRefused: The daemon refused it.
    """
    command = COMMANDS.get(OTHER_NAMES.get(name, name))
    if command is None:
        message = f"/{name} does not work in a session that the daemon has open; use the panel of the editor, or /new"
        raise UsageError(message)
    return await command.run(session, dialog, arguments)


async def _help(session: SharedActions, dialog: ChatDialog, _: str) -> None:
    del session
    rows = ((name, LOCAL_COMMANDS[name]) for name in COMMANDS)
    dialog.tell(
        "\n".join(f"  {f'/{name} {one.hint}':<{HELP_CELLS}}  {one.about}" for name, one in rows)
    )
    dialog.tell(
        "The daemon has this session open. The other commands work in the panel of the editor."
    )


async def _stop(session: SharedActions, dialog: ChatDialog, _: str) -> Refill | None:
    if not session.is_busy:
        dialog.tell("Nothing is running.")
        return None
    text = await session.stop()
    return Refill(text) if text else None


async def _background(session: SharedActions, dialog: ChatDialog, wanted: str) -> None:
    match background_action(wanted):
        case "move":
            result = as_object(await session.request("agent/background/move", {}))
            dialog.tell(MOVED if result.get("moved") is True else NOT_MOVED)
        case "list":
            dialog.tell(background_lines(session.state.background))
        case id_:
            _ = await session.request("agent/background/stop", {"id": id_})
            dialog.tell(f"Stopped {id_}.")


async def _tasks(session: SharedActions, dialog: ChatDialog, wanted: str) -> None:
    action, id_, force = task_action(wanted)
    if action == "list":
        dialog.tell(task_lines(session.state.tasks))
        return
    params: JsonObject = {"id": id_}
    if action == "diff":
        params = {"id": id_, "format": "gitPatch"}
    elif force:
        params = {"id": id_, "force": True}
    method = "changes" if action == "diff" else action
    result = as_object(await session.request(f"agent/task/{method}", params))
    match action:
        case "diff":
            show_patch(dialog, str(result.get("patch") or ""))
        case "merge":
            paths = _paths(result.get("written"))
            dialog.tell(merged_message(id_, paths, root=session.root), GREEN)
        case "discard":
            dialog.tell(discarded_message(id_, str(result.get("keptRef"))))
        case _:
            dialog.tell(task_lines([value_of(result, TaskInfo)]))


async def _plan(session: SharedActions, dialog: ChatDialog, wanted: str) -> None:
    from agent_core.session.history.plans import open_plan  # noqa: PLC0415 - at first use

    plan = open_plan(build_context(await session.stored_entries()).messages)
    if plan is None:
        dialog.tell(NO_PLAN)
    elif (meant := await ask_plan(dialog, plan.markdown, plan.revision, wanted)) is not None:
        answer, text = meant
        params: JsonObject = {"sha256": plan.sha256, "answer": answer}
        if text is not None:
            params = {**params, "text": text}
        _ = await session.request("agent/plan/respond", params)
        if answer == "reject":
            dialog.tell(REJECTED_PLAN)


async def _diff(session: SharedActions, dialog: ChatDialog, _: str) -> None:
    listed = as_object(await session.request("agent/changes/list", {"format": "gitPatch"}))
    show_patch(dialog, str(listed.get("patch") or ""))


async def _undo(session: SharedActions, dialog: ChatDialog, _: str) -> None:
    """Undo the newest run that changed something and was not undone yet."""
    latest: JsonValue = None
    while True:
        listed = as_object(await session.request("agent/checkpoint/list", {}))
        before, latest = latest, listed.get("latestRun")
        if latest is None or latest == before:
            dialog.tell("Nothing left to undo.")
            return
        params: JsonObject = {"checkpoint": latest, "scope": "files"}
        preview = as_object(await session.request("agent/checkpoint/preview", params))
        files = [as_object(one) for one in _listed(preview.get("files"))]
        contested = [
            one.get("uri")
            for one in files
            if one.get("status") in CONTESTED and one.get("why") is None
        ]
        free = any(one.get("status") == FREE for one in files)
        paths = _paths(contested)
        on_conflict = await ask_conflict(dialog, paths, free=free, root=session.root)
        if on_conflict is None:
            return
        params = {**params, "onConflict": on_conflict}
        result = as_object(await session.request("agent/checkpoint/restore", params))
        restored, skipped = result.get("restored"), _listed(result.get("skipped"))
        if restored or skipped:
            whys = [str(as_object(each).get("why")) for each in skipped]
            dialog.tell(undone(_paths(restored), whys, root=session.root), GREEN)
            return


def _paths(uris: JsonValue) -> Sequence[Path]:
    return [path for uri in _listed(uris) if (path := path_of(str(uri))) is not None]


def _listed(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


async def _review(session: SharedActions, dialog: ChatDialog, wishes: str) -> None:
    del dialog
    await session.prompt([Text(text=with_wishes(REVIEW, wishes))])


async def _remember(session: SharedActions, dialog: ChatDialog, wanted: str) -> None:
    request = session.request_for("new")
    await remember_text(dialog, wanted, request=request, session=None)


async def _next(session: SharedActions, dialog: ChatDialog, text: str) -> None:
    del dialog
    if not text:
        message = "/next needs a text; it is sent when this run has ended"
        raise UsageError(message)
    await session.follow_up(text)


async def _model(session: SharedActions, dialog: ChatDialog, wanted: str) -> None:
    if not wanted:
        listed = as_object(await session.request("agent/model/list", {})).get("models")
        rows = [one for one in (listed if isinstance(listed, list) else []) if is_object(one)]
        refs = [str(one.get("model")) for one in rows if one.get("auth") != "missing"]
        chosen = await ask_model(dialog, refs, current=session.state.config.model)
        if chosen is None:
            return
        wanted = chosen
    await session.configure({"model": wanted})
    dialog.tell(f"Using {wanted}", GREEN)


async def _think(session: SharedActions, dialog: ChatDialog, wanted: str) -> None:
    current = session.state.config.thinking
    level = await choose_level(dialog, wanted, current=current)
    if level is not None:
        await session.configure({"thinking": level})
    dialog.tell(f"Thinking: {level or current}")


async def _mode(session: SharedActions, dialog: ChatDialog, wanted: str) -> None:
    current = session.state.config.mode
    mode = await choose_mode(dialog, wanted, current=current)
    if mode is not None:
        await session.configure({"mode": mode})
    dialog.tell(mode_line(mode or current))


async def _compact(session: SharedActions, dialog: ChatDialog, instructions: str) -> None:
    params: JsonObject = {"instructions": instructions} if instructions else {}
    result = as_object(await session.request("agent/compact", params))
    if result.get("compaction") is None:
        dialog.tell(str(result.get("why") or "Nothing to compact."), YELLOW)


async def _name(session: SharedActions, dialog: ChatDialog, title: str) -> None:
    if title:
        _ = await session.request("agent/session/rename", {"title": title})
    dialog.tell(f"Title: {title or session.state.title or 'none'}")


async def _new(session: SharedActions, dialog: ChatDialog, _: str) -> Switch:
    del dialog
    return Switch(request=session.request_for("new"))


async def _resume(session: SharedActions, dialog: ChatDialog, wanted: str) -> Switch | None:
    here = session.request_for(session.id)
    chosen = await choose_session(dialog, here, wanted, root=session.root, current=session.id)
    return None if chosen is None else Switch(request=session.request_for(chosen))


async def _tree(session: SharedActions, dialog: ChatDialog, query: str) -> Refill | None:
    _check_rest(session, "tree")
    node = await choose_entry(dialog, await session.all_entries(), query)
    if node is None:
        return None
    moved = as_object(await session.request("agent/session/navigate", {"target": node.last}))
    text = moved.get("editorText")
    return report_move(
        dialog,
        node,
        is_moved=moved.get("cancelled") is not True,
        text=text if isinstance(text, str) else None,
    )


async def _fork(session: SharedActions, dialog: ChatDialog, _: str) -> Switch | None:
    _check_rest(session, "fork")
    prompts = [
        (entry.id, content_text(entry.message.content))
        for entry in await session.stored_entries()
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
    ]
    entry = await choose_prompt(dialog, prompts)
    if entry is None:
        return None
    first, text = prompts[0]
    if entry == first:  # there is nothing to copy
        return Switch(request=session.request_for("new"), text=text)
    copy = as_object(await session.request("agent/session/fork", {"atEntry": entry}))
    request = session.request_for(str(copy.get("session")))
    return Switch(request=request, text=str(copy.get("editorText") or ""))


def _check_rest(session: SharedActions, name: str) -> None:
    if session.is_busy:
        message = f"a run is active; press Esc to stop it, then type /{name} again"
        raise UsageError(message)


async def _status(session: SharedActions, dialog: ChatDialog, _: str) -> None:
    dialog.tell(shared_status(session.state, session=session.id, root=session.root))


async def _cost(session: SharedActions, dialog: ChatDialog, _: str) -> None:
    dialog.tell(cost_lines(session.state.usage.tokens))


async def _copy(session: SharedActions, dialog: ChatDialog, _: str) -> None:
    messages = [
        entry.message
        for entry in await session.stored_entries()
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
    ]
    texts = [said.text.strip() for said in messages if said.text.strip()]
    env_path = session.request_for(session.id).env.get("PATH", os.defpath)
    await copy_text(dialog, texts[-1] if texts else None, env_path=env_path, root=session.root)


async def _export(session: SharedActions, dialog: ChatDialog, named: str) -> None:
    here = session.request_for(session.id)
    await export_session(dialog, here, named, root=session.root, session=session.id)


async def _quit(session: SharedActions, dialog: ChatDialog, _: str) -> Switch:
    del session, dialog
    return Switch(request=None)


COMMANDS: Final[Mapping[str, SharedCommand]] = {
    "help": SharedCommand(run=_help),
    "status": SharedCommand(run=_status),
    "cost": SharedCommand(run=_cost),
    "model": SharedCommand(run=_model),
    "think": SharedCommand(run=_think),
    "plan": SharedCommand(run=_plan),
    "permission": SharedCommand(run=_mode),
    "next": SharedCommand(run=_next),
    "stop": SharedCommand(run=_stop),
    "diff": SharedCommand(run=_diff),
    "undo": SharedCommand(run=_undo),
    "copy": SharedCommand(run=_copy),
    "review": SharedCommand(run=_review),
    "remember": SharedCommand(run=_remember),
    "background": SharedCommand(run=_background),
    "tasks": SharedCommand(run=_tasks),
    "compact": SharedCommand(run=_compact),
    "name": SharedCommand(run=_name),
    "new": SharedCommand(run=_new),
    "resume": SharedCommand(run=_resume),
    "tree": SharedCommand(run=_tree),
    "fork": SharedCommand(run=_fork),
    "export": SharedCommand(run=_export),
    "quit": SharedCommand(run=_quit),
}
