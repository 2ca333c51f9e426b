"""A folder to open sessions in, with a user's configuration of its own."""

import json
import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from agent_core import AgentSession, Hook, HookTable, create_session
from agent_core.events import Notice
from agent_core.hooks import InputHandled, InputTyped
from tests.support.harness.isolation import TillerDirs

PATH = "/usr/bin:/bin"
OF_MACHINE = re.compile(r"commands are (only partly|not) contained here: (?!the workspace)")


class Folder:
    """A workspace and the environment in which sessions are opened there."""

    def __init__(self, root: Path, dirs: TillerDirs) -> None:
        self.root = root
        self.dirs = dirs
        self.env = {"PATH": PATH, **dirs.variables()}

    def open(self, **options: Any) -> AbstractAsyncContextManager[AgentSession]:
        """Open a session of the embedded model, unless told otherwise."""
        given: dict[str, Any] = {
            "workspace": self.root,
            "env": self.env,
            "model": "embedded/repair",
            "trusted": True,
        }
        return create_session(**(given | options))

    def write(self, name: str, text: str) -> None:
        """Write a file of the user's configuration."""
        self.dirs.config.joinpath(name).write_text(text, encoding="utf-8")

    def settings(self, **values: Any) -> None:
        """Write the user's settings."""
        self.write("settings.json", json.dumps(values))

    @property
    def files(self) -> list[Path]:
        """The session files."""
        return sorted(self.dirs.data.glob("sessions/*/*.jsonl"))


def notices(session: AgentSession, *, of_machine: bool = False) -> list[str]:
    """Return the notices that the first subscriber gets.

    Args:
        session: The session.
        of_machine: Whether to include that this machine contains commands only in part, or not at all.
    """
    reader = session.subscribe()
    texts = [one.event.text for one in reader.take_now() if isinstance(one.event, Notice)]
    reader.close()
    return [text for text in texts if of_machine or not is_of_machine(text)]


def is_of_machine(notice: str) -> bool:
    """Check whether a notice names what the machine lacks for containment, and not what the workspace lacks."""
    return bool(OF_MACHINE.match(notice))


async def ask(session: AgentSession, words: str = "go") -> None:
    """Say something and wait for the end, which must be a good one."""
    await session.prompt(words)
    result = await session.wait_idle()
    assert result is not None
    assert result.status == "completed", result.error


def handled() -> HookTable:
    """Deal with every prompt, so that a session gets words without a model."""

    async def deal(_: object, __: object) -> InputHandled:
        return InputHandled()

    table = HookTable()
    table.add(Hook("deal", deal), at=InputTyped)
    return table
