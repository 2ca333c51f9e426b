"""`tiller memory`: entries that Tiller keeps between sessions, for this project and for you in all projects."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio

from agent_core.kernel import JsonObject, SystemClock
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import encode
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.text import one_line
from agent_core.memory.access import FolderMemory, open_memory
from agent_core.memory.values import KINDS, USER, MemoryDraft, MemoryEntry, MemoryFile
from agent_core.resources.paths import app_paths
from tiller_server.cli.environment import CommandParsers, Environment
from tiller_server.cli.exit_codes import DONE, code_of_error, complain
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.cli.terminal.text import safe

EXAMPLE: Final = "example: tiller memory add 'Integration tests need the staging database'"
SHOWN_CHARS: Final = 100
PROPOSALS: Final = frozenset({"consolidate", "review", "accept", "drop"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    parser.set_defaults(json=False, workspace=".")
    verbs: CommandParsers = parser.add_subparsers(
        dest="verb",
        required=True,
        metavar="on|off|list|add|show|forget|export|undo|consolidate|review|accept|drop",
    )
    on = verbs.add_parser("on", help="use memory in this project")
    off = verbs.add_parser("off", help="stop using it; the entries stay")
    listing = verbs.add_parser("list", help="list the entries, or find some")
    _ = listing.add_argument(
        "query", metavar="TEXT", nargs="*", help="find entries with these words"
    )
    adding = verbs.add_parser("add", help="remember a text", epilog=EXAMPLE)
    _ = adding.add_argument("text", metavar="TEXT", nargs="+", help="at most 500 characters")
    _ = adding.add_argument("--user", action="store_true", help="for all your projects")
    _ = adding.add_argument(
        "--kind", choices=[one for one in KINDS if one != "rejected-finding"], default="fact", help="[fact]"
    )  # fmt: skip
    _ = adding.add_argument("--path", metavar="GLOB", help="the files that it is about")
    show = verbs.add_parser("show", help="show entries with all their fields")
    forget = verbs.add_parser("forget", help="remove entries")
    for one in (show, forget):
        _ = one.add_argument(
            "ids", metavar="ID", nargs="+", help="the id of an entry as it is listed"
        )
    export = verbs.add_parser(
        "export", help="print the memory files as Markdown, or all entries as JSON"
    )
    undo = verbs.add_parser("undo", help="take back the last change; again: restore it")
    proposals = _add_consolidation(verbs)
    for one in (on, off, listing, adding, show, forget, export, undo, *proposals):
        add = one.add_argument
        add(
            "-C",
            "--workspace",
            metavar="DIR",
            default=argparse.SUPPRESS,
            help="a folder of the project [.]",
        )
        if one in {listing, show, export}:
            add("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON")


def _add_consolidation(verbs: CommandParsers) -> Sequence[argparse.ArgumentParser]:
    consolidate = verbs.add_parser(
        "consolidate",
        help="have a model propose entries from your prompts in earlier sessions",
        epilog="example: tiller memory consolidate --if-idle 30",
    )
    _ = consolidate.add_argument(
        "--model", metavar="PROVIDER/ID", help="the model to ask [the cheapest with a price]"
    )
    _ = consolidate.add_argument(
        "--if-idle",
        type=int,
        default=0,
        metavar="MINUTES",
        help="do nothing if a session of this folder changed since then",
    )
    review = verbs.add_parser("review", help="show proposed entries as a diff")
    accept = verbs.add_parser("accept", help="store proposed entries")
    drop = verbs.add_parser("drop", help="remove proposed entries")
    for one in (accept, drop):
        _ = one.add_argument("ids", metavar="ID", nargs="*", help="the ids of entries [all]")
    return consolidate, review, accept, drop


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; return the exit code."""
    try:
        return anyio.run(_run, options, environment)
    except TillerError as error:
        complain("memory", str(error))
        return code_of_error(error)


async def _run(options: argparse.Namespace, environment: Environment) -> int:
    redactor = Redactor()
    redactor.hold_environment(environment.variables)
    memory = await open_memory(
        app_paths(environment.variables).memory,
        Path(await anyio.Path(options.workspace).expanduser()),
        env=environment.variables,
        clock=SystemClock(),
        redactor=redactor,
    )
    if options.verb in PROPOSALS:
        from tiller_server.cli.memory_proposals import proposals  # noqa: PLC0415 - it loads the models

        return await proposals(memory, options, environment)
    return await _run_verb(memory, options)


async def _run_verb(memory: FolderMemory, options: argparse.Namespace) -> int:
    match options.verb:
        case "on" | "off":
            return await _switch(memory, on=options.verb == "on")
        case "add":
            return await _add(memory, options)
        case "show":
            return await _show(memory, options)
        case "export":
            return await _export(memory, as_json=options.json)
        case "forget" | "undo":
            return await _take_back(memory, options)
        case _:
            return await _list(memory, options)


async def _switch(memory: FolderMemory, *, on: bool) -> int:
    await memory.switch(on=on)
    name, path = memory.project.name, memory.store.path(memory.project.scope)
    if not on:
        return _print([f"memory is off in {name}; its entries stay in {path}"])
    return _print(
        [
            f"memory is on in {name}, from the next session",
            f"its entries: {path}; those for all your projects: {memory.store.path(USER)}",
        ]
    )


async def _add(memory: FolderMemory, options: argparse.Namespace) -> int:
    draft = MemoryDraft(text=" ".join(options.text), kind=options.kind, path=options.path)
    entry = await memory.remember(draft, USER if options.user else memory.project.scope)
    return _print([f"remembered {entry.id}: {_short(entry)}"])


async def _take_back(memory: FolderMemory, options: argparse.Namespace) -> int:
    if options.verb == "undo":
        undone = await memory.store.undo()
        return _print([f"taken back: {undone}" if undone else "memory was never changed"])
    entries = await memory.store.find(options.ids, memory.scopes)
    await memory.store.forget(entries)
    return _print([f"removed {one.id}: {_short(one)}" for one in entries])


async def _list(memory: FolderMemory, options: argparse.Namespace) -> int:
    file = await memory.store.read(*memory.scopes)
    if query := " ".join(options.query):
        found = await memory.search(query, limit=max(len(file.entries), 1))
        file = MemoryFile(entries=tuple(found), problems=file.problems)
    if options.json:
        return _write_json(memory, file, is_on=await memory.is_on())
    if not await memory.is_on():
        complain("memory", "memory is off in this project, so no session uses the entries")
    _tell_problems(file)
    if not file.entries:
        _ = sys.stderr.write("there are no entries\n")
    today = memory.store.today
    lines: list[str] = []
    for entry in file.entries:
        state = " (expired)" if entry.is_expired(today) else ""
        about = f"{entry.scope.name} {entry.kind}{state}"
        lines.append(f"{entry.id}  {entry.created or '-':10}  {about:20}  {_short(entry)}")
    return _print(lines)


async def _show(memory: FolderMemory, options: argparse.Namespace) -> int:
    entries = await memory.store.find(options.ids, memory.scopes)
    if options.json:
        return _write_json(memory, MemoryFile(entries=tuple(entries)), is_on=await memory.is_on())
    lines: list[str] = []
    for entry in entries:
        place = f"{memory.store.path(entry.scope)}:{entry.line}"
        fields = {**as_json(entry), "file": place}
        lines += [f"{name}: {value}" for name, value in fields.items() if name != "text"]
        lines += ["", *entry.text.splitlines(), ""]
    return _print(lines)


async def _export(memory: FolderMemory, *, as_json: bool) -> int:
    file = await memory.store.read(*memory.scopes)
    if as_json:
        return _write_json(memory, file, is_on=await memory.is_on())
    _tell_problems(file)
    for scope in memory.scopes:
        path = anyio.Path(memory.store.path(scope))
        if await path.exists():
            _ = sys.stdout.write(
                await path.read_text(encoding="utf-8-sig", errors="replace") + "\n"
            )
    return DONE


def as_json(entry: MemoryEntry) -> JsonObject:
    """Return an entry with the names of its fields in its file, those without a value left out."""
    return {"scope": entry.scope.name, "text": entry.text, **entry.header()}


def _write_json(memory: FolderMemory, file: MemoryFile, *, is_on: bool) -> int:
    speak_json()
    body: JsonObject = {
        "project": memory.project.name,
        "on": is_on,
        "entries": [as_json(one) for one in file.entries],
        "problems": [str(one) for one in file.problems],
    }
    _ = sys.stdout.write(encode(body).decode() + "\n")
    return DONE


def _tell_problems(file: MemoryFile) -> None:
    for problem in file.problems:
        complain("memory", str(problem))


def _short(entry: MemoryEntry) -> str:
    text = one_line(entry.text)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _print(lines: Sequence[str]) -> int:
    for line in lines:
        _ = sys.stdout.write(safe(line) + "\n")
    return DONE
