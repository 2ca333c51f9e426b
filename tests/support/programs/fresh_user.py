"""A user who has nothing but a home, and who installs Tiller as the page says."""

import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.support.clients.server import Ground
from tests.support.harness.shared import ROOT
from tests.support.programs.pages import block, write_block
from tests.support.programs.real_editors import Name, Neovim, neovim_of
from tests.support.programs.real_emacs import Emacs, emacs_of

NEOVIM: Final = "neovim.md"
NEOVIM_PLUGIN: Final = "Plugin"
NEOVIM_BEFORE: Final = "Neovim 0.7 to 0.10"
EMACS: Final = "emacs.md"
EMACS_PACKAGE: Final = "Package"
INSTALL_S: Final = 60.0
_ATTACHED: Final = "return #vim.lsp.get_clients({ name = 'tiller', bufnr = 0 }) == 1"
_ATTACHED_BEFORE: Final = """
    local one = vim.lsp.buf_get_clients(0)[1]
    return one ~= nil and one.initialized == true
"""


def installed(ground: Ground, home: Path) -> dict[str, str]:
    """Follow the part of the page that installs, and give the environment of the user's editor.

    `make setup` has been done where tests run; here it does nothing.
    """
    stand_in = home / "stand-in"
    stand_in.mkdir(parents=True, exist_ok=True)
    if not (stand_in / "make").exists():
        (stand_in / "make").symlink_to(shutil.which("true") or "/bin/true")
    env = {**ground.env, "HOME": str(home)}
    env["PATH"] = f"{stand_in}:{home}/.local/bin:{env['PATH']}"
    follow(block("README.md", "Install", language="sh").text, env=env)
    return env


def follow(lines: str, *, env: Mapping[str, str]) -> None:
    """Type lines of a page into a shell, in the checkout."""
    done = subprocess.run(
        ["sh", "-euc", lines],
        cwd=ROOT,
        env=env,
        capture_output=True,
        timeout=INSTALL_S,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


@asynccontextmanager
async def neovim_user(
    ground: Ground, home: Path, path: Path, *, name: Name, section: str = "Settings"
) -> AsyncGenerator[Neovim]:
    """Start Neovim on a file for a user who has followed the page; the profile may be there already.

    Args:
        section: The part of the page that the settings are from.
    """
    env = installed(ground, home)
    _ = write_block(block(NEOVIM, section, language="lua"), home)
    if section == NEOVIM_PLUGIN:
        follow(block(NEOVIM, section, language="sh").text, env=env)
    async with neovim_of(name, env=env, root=ground.root, home=home) as editor:
        await editor.open(path)
        await editor.until(_ATTACHED if name == "neovim 0.11.4" else _ATTACHED_BEFORE)
        yield editor


@asynccontextmanager
async def emacs_user(
    ground: Ground, home: Path, path: Path, *, section: str = "Settings"
) -> AsyncGenerator[Emacs]:
    """Start Emacs with eglot on a file for a user who has followed the page; the profile may be there already.

    Args:
        section: The part of the page that the settings are from.
    """
    env = installed(ground, home)
    _ = write_block(block(EMACS, section, language="elisp"), home)
    if section == EMACS_PACKAGE:
        follow(block(EMACS, section, language="sh").text, env=env)
    async with emacs_of(env=env, root=ground.root, home=home) as editor:
        await editor.open(path)
        await editor.ask("(progn (call-interactively 'eglot) t)")
        await editor.until("(if (eglot-current-server) t :false)")
        yield editor
