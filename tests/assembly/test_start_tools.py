"""Which tools a session begins with, and which of those that servers bring later it wants."""

from collections.abc import Sequence

import pytest

from agent_core import create_session
from agent_core.assembly.builder import choose_tools
from agent_core.tools.builtin import builtin_tools
from tests.support.session.folders import Folder
from tests.support.workspace.default_tools import DEFAULT_TOOLS

ECHO = "mcp__s__echo"


@pytest.mark.parametrize(
    ("asked", "active", "wants"),
    [
        (None, ("default",), True),
        ("default", ("default",), True),
        ("readonly", ("readonly",), False),
        ("read, ls", ("read", "ls"), False),
        (("read", ECHO), ("read",), True),
        (("read", "mcp__s__other"), ("read",), False),
        ("+ls", ("+ls",), True),
        (f"+{ECHO}", ("default",), True),
        (f"-{ECHO}", ("default",), False),
        (f"-{ECHO} -bash", ("default", "-bash"), False),
        (f"readonly +{ECHO}", ("readonly",), True),
        (f"default -{ECHO}", ("default",), False),
    ],
)
def test_a_choice_of_tools_says_what_becomes_of_those_of_servers(
    asked: str | Sequence[str] | None, active: tuple[str, ...], wants: bool
) -> None:
    chosen = choose_tools(asked, own=(), built_in=builtin_tools(), settings="default", path=())
    assert chosen.active == active
    assert chosen.wants(ECHO) is wants


async def test_a_session_begins_with_the_default_tools(folder: Folder) -> None:
    async with create_session(workspace=folder.root, env=folder.env, store="memory") as session:
        assert session.tools.active == DEFAULT_TOOLS
