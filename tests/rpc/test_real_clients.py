"""Clients that were written for pi drive Tiller, started as docs/rpc.md says."""

import json
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from picable import PiClient, PiClientOptions

from tests.support.clients.server import Ground, calls, says
from tests.support.programs.reference_agent import NODE, newest_agent

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENDLESS = {"text": "I ", "deltas": 4, "stall_forever_after_deltas": 3}
SCRIPT = [calls(("bash", {"command": "echo hi"}), text="Look:"), says("Done."), ENDLESS]


def starter(language: str, path: Path) -> Path:
    """Write the program of the page that starts Tiller in the place of pi."""
    page = (ROOT / "docs/rpc.md").read_text("utf-8")
    fences = [code for name, code in FENCE.findall(page) if name == language]
    text = fences[-1]
    path.write_text(text, "utf-8")
    path.chmod(0o700)
    return path


def environment(ground: Ground) -> dict[str, str]:
    """Return an environment with `tiller` and the pinned Node on the PATH."""
    folders = (str(Path(sys.prefix) / "bin"), str(NODE.parent), ground.env.get("PATH", ""))
    return {**ground.env, "PATH": ":".join(folders)}


def test_the_client_of_pi_prompts_aborts_and_counts(ground: Ground, tmp_path: Path) -> None:
    package = newest_agent()
    ground.provider.script(SCRIPT)
    program = ROOT / "tests/support/programs/pi_client.mjs"
    start = starter("js", tmp_path / "start.mjs")
    command = [NODE, program, package / "dist/index.js", start, ground.root]
    ran = subprocess.run(
        [str(one) for one in command], env=environment(ground), capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()
    told = json.loads(ran.stdout)
    assert {"agent_start", "message_update", "tool_execution_end", "agent_settled"} <= set(
        told["types"]
    )
    assert (told["text"], told["disposition"]) == ("Done.", "started")
    assert told["state"]["isStreaming"] is False
    assert told["stats"]["userMessages"] == 2
    assert told["stats"]["toolCalls"] == 1
    assert "lab" in {one["provider"] for one in told["models"]}


@contextmanager
def picable(ground: Ground, program: Path) -> Generator[PiClient]:
    """Connect the client of that name."""
    options = PiClientOptions(
        executable=str(program),
        provider="lab",
        model="m",
        cwd=str(ground.root),
        env=environment(ground),
        startup_timeout=60,
        extra_args=("--in-process", "--compat", "0.73"),
    )
    with PiClient(options) as client:
        yield client


def test_picable_prompts_aborts_and_counts(ground: Ground, tmp_path: Path) -> None:
    ground.provider.script(SCRIPT)
    with picable(ground, starter("sh", tmp_path / "pi")) as client:
        events = client.subscribe_events(maxsize=10_000)
        client.prompt("go")
        types: list[str] = []
        while "agent_end" not in types:
            types.append(events.get(timeout=60).type)
        assert {"agent_start", "message_update", "tool_execution_end"} <= set(types)
        assert client.get_last_assistant_text() == "Done."
        assert [one.role for one in client.get_messages()] == [
            *("user", "assistant", "toolResult", "assistant")
        ]
        client.prompt("again")
        while events.get(timeout=60).type != "message_update":
            pass
        client.abort()
        assert client.get_state().is_streaming is False
        stats = client.get_session_stats()
        assert (stats.user_messages, stats.tool_calls) == (2, 1)
        assert client.bash("echo out").output == "out\n"
        assert client.new_session().cancelled is False
        assert client.get_messages() == []
