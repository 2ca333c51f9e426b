"""On machines that contain less, or nothing, sessions work, say which rung holds and why, and ask instead."""

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core import AgentSession
from agent_core.assembly.factory import open_session
from agent_core.assembly.request import SessionRequest
from agent_core.events import CommandSubject, PermissionRequested
from agent_core.messages import ToolResultMessage, text_of
from agent_core.workspace.sandbox import Prober, SandboxCapability
from agent_core.workspace.sandbox.selection import on_linux
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder, notices

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the ladder is that of Linux")
REFUSED = "bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces."


def missing(folder: Path) -> SandboxCapability:
    _ = folder
    return on_linux(None, landlock=lambda: None)


def refused(folder: Path) -> SandboxCapability:
    """As stock runners of CI are: bubblewrap can be installed, and the kernel does not let it work."""
    return on_linux(_refusing(folder), landlock=lambda: None)


def landlock_only(folder: Path) -> SandboxCapability:
    return on_linux(_refusing(folder))


def _refusing(folder: Path) -> str:
    program = folder / "bwrap"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "bubblewrap 0.8.0" && exit\n'
        f'echo "{REFUSED}" >&2; exit 1\n'
    )
    program.chmod(0o755)
    return str(program)


MACHINES = {
    "no bubblewrap": (missing, "none", "bubblewrap is not installed: install it"),
    "no user namespaces": (refused, "none", f"bubblewrap does not work here ({REFUSED})"),
    "Landlock alone": (landlock_only, "partial", f"bubblewrap does not work here ({REFUSED})"),
}


def opened(folder: Folder, found: SandboxCapability) -> AbstractAsyncContextManager[AgentSession]:
    return open_session(
        SessionRequest(workspace=folder.root, env=folder.env, prober=Prober(found), trusted=True)
    )


@pytest.mark.parametrize("machine", MACHINES)
async def test_a_session_works_says_why_and_asks(
    folder: Folder, lab: LoopbackProvider, tmp_path: Path, machine: str
) -> None:
    find_out, level, why = MACHINES[machine]
    found = await to_thread.run_sync(find_out, tmp_path)
    if machine == "Landlock alone" and found.level == "none":
        pytest.skip("this kernel has no Landlock")
    assert (found.level, found.why_not_full is not None) == (level, True)
    write_config(folder.dirs.config, lab, settings={"permission": {"mode": "auto"}})
    call = {"name": "bash", "arguments": {"command": "echo on >> made && cat made"}}
    lab.script([{"tool_calls": [call]}, {"text": "done"}])
    async with opened(folder, found) as session:
        assert session.info.snapshot().sandbox == level
        (notice,) = notices(session, of_machine=True)
        assert why in notice
        reader = session.subscribe()
        await session.prompt("go")
        requests: list[PermissionRequested] = []
        while not requests:
            told = [one.event for one in await reader.take()]
            requests = [one for one in told if isinstance(one, PermissionRequested)]
        (asked,) = requests
        assert isinstance(asked.request.subject, CommandSubject)
        assert asked.request.subject.sandbox == level
        session.permissions.answer(asked.request.request, "allowOnce")
        await session.wait_idle()
        (result,) = [m for m in session.info.messages if isinstance(m, ToolResultMessage)]
        assert text_of(result.content) == "on\n"
        reader.close()


def test_a_kernel_that_makes_no_namespaces_is_found_out(tmp_path: Path) -> None:
    """For real: inside of a namespace that forbids further ones, as a container does."""
    import subprocess  # noqa: PLC0415 - here alone

    from agent_core.workspace.sandbox.selection import find_program  # noqa: PLC0415 - as above

    bwrap = find_program("bwrap")
    if bwrap is None:
        pytest.skip("bubblewrap is not installed")
    code = "from agent_core.workspace.sandbox import probe; f = probe(); print(f.level, f.how, f.why_not_full, sep='|')"
    around = [bwrap, "--dev-bind", "/", "/", "--unshare-user", "--disable-userns"]
    done = subprocess.run(
        [*around, sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no namespace to try it in: {done.stderr}")
    level, how, why = done.stdout.strip().split("|")
    assert level in {"partial", "none"}
    assert how.startswith("Landlock") == (level == "partial")
    assert "does not work here" in why or "not installed" in why
