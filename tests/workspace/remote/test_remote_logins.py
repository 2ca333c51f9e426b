"""Scripts reach `sh` unchanged, whatever the login shell is and writes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agent_core.workspace import FileText
from agent_core.workspace.remote.transport import one_argument
from tests.support.remote.ssh_server import SshServer
from tests.workspace.remote.conftest import behind

ODD = "a 'b' \"c\" $d `e` \\ \\n %s !x ~ * é \x01 \n\ttail"


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "tcsh", "busybox"])
def test_a_login_shell_passes_a_script_on(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    words = (program, "sh") if shell == "busybox" else (program,)
    line = one_argument('printf "%s|" "$@"; cat', (ODD, "", "-n"))
    ran = subprocess.run([*words, "-c", line], input=b"input", capture_output=True, check=True)
    assert ran.stdout.decode() == f"{ODD}||-n|input"


async def test_text_that_a_login_writes_is_no_answer(own_server: SshServer, folder: Path) -> None:
    own_server.stop()
    with (own_server.folder / "sshd_config").open("a") as config:
        _ = config.write('ForceCommand echo welcome; eval "$SSH_ORIGINAL_COMMAND"\n')
    own_server.start()
    async with behind(own_server, folder) as (workspace, _):
        path = workspace.root / "a.txt"
        _ = await workspace.files.write(path, "ok 1\n", base=None)
        read = await workspace.files.read(path)
        assert isinstance(read, FileText)
        assert read.text == "ok 1\n"
        process = await workspace.processes.start(
            ("echo", "there"), cwd=workspace.root, env=workspace.env
        )
        output = b""
        while data := await process.read():
            output += data
        _ = await process.end(grace_s=0.15)
        assert output == b"welcome\nthere\n"
