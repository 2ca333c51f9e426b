"""Files of a new extension package. Blocking."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import ExtensionBroken
from tiller_server.cli.extension_packages.project import NAME

PYPROJECT: Final = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "@name@"
version = "0.1.0"
description = "An extension of Tiller"
requires-python = ">=3.11"

[project.entry-points."tiller.extensions"]
@name@ = "@module@:extension"

[tool.setuptools]
packages = ["@module@"]

[tool.tiller]
name = "@name@"
extensions = ["@module@"]
"""
SOURCE: Final = '''\
"""Counts words: a tool for the model, a command, and a view of the tool calls."""

from pydantic import Field

from agent_core.extensions import (
    CommandContext,
    Context,
    ExtensionApi,
    ListView,
    Row,
    ToolArguments,
    ToolCallContext,
)
from agent_core.hooks import ToolOver


class CountArguments(ToolArguments):
    text: str = Field(description="Text whose words are counted")


def count_words(text: str) -> int:
    """Return the number of words of a text."""
    return len(text.split())


def extension(api: ExtensionApi) -> None:
    """Register the parts."""
    calls: dict[str, int] = {}

    @api.tool(name="@module@_count", kind="read")
    async def count(arguments: CountArguments, ctx: ToolCallContext) -> str:
        """Count the words of a text."""
        return f"{count_words(arguments.text)} words"

    @api.command(name="@name@")
    async def show(text: str, ctx: CommandContext) -> None:
        """Show how many words follow the command."""
        ctx.ui.notify(f"{count_words(text)} words")

    @api.on(ToolOver)
    async def show_calls(event: ToolOver, ctx: Context) -> None:
        calls[event.tool] = calls.get(event.tool, 0) + 1
        rows = [Row(text=f"{name}: {number}") for name, number in sorted(calls.items())]
        ctx.ui.widget("@name@", ListView(title="Tool calls", rows=rows))
'''
TEST: Final = '''\
"""Run with: python -m unittest discover tests."""

import asyncio
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from agent_core import create_session
from agent_core.events import UiNotify
from @module@ import count_words, extension


class ExtensionTest(unittest.TestCase):
    def test_words_are_counted(self) -> None:
        self.assertEqual(count_words("one two"), 2)

    def test_a_session_has_the_command(self) -> None:
        asyncio.run(self.call_command())

    async def call_command(self) -> None:
        async with create_session(
            workspace=".", store="memory", extensions=[extension]
        ) as session:
            reader = session.subscribe()
            async with asyncio.timeout(5):
                await session.prompt("/@name@ one two")
                async for published in reader:
                    if isinstance(published.event, UiNotify):
                        self.assertEqual(published.event.view["text"], "2 words")
                        return
'''


def package_files(name: str) -> Mapping[str, str]:
    """Return the texts of a new package by their relative paths.

    Raises:
        ExtensionBroken: The name cannot be used.
    """
    module = name.replace("-", "_")
    if not NAME.fullmatch(name) or not module.isidentifier():
        message = f"a package cannot be named {name!r}; use 1 to 64 of a-z, 0-9 and -, beginning with a letter"
        raise ExtensionBroken(message)
    files = {
        "pyproject.toml": PYPROJECT,
        f"{module}/__init__.py": SOURCE,
        f"tests/test_{module}.py": TEST,
    }
    return {
        path: text.replace("@name@", name).replace("@module@", module)
        for path, text in files.items()
    }


def write_package(name: str, folder: Path) -> None:
    """Write a new package into a folder that is missing or empty.

    Raises:
        ExtensionBroken: The name cannot be used, or the folder holds something.
        OSError: The folder cannot be written.
    """
    files = package_files(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = f"{folder} is there and is not empty; name another folder"
        raise ExtensionBroken(message)
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        _ = target.write_text(text, encoding="utf-8")
