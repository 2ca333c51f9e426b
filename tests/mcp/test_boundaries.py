"""What holds a server in, what it is not told, and what a project may start."""

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent_core.events import PermissionRequested, TrustSubject
from tests.support.mcp.mcp_office import McpOffice, call, rogue
from tests.support.workspace.contained import require_full

pytestmark = [pytest.mark.timeout(60)]
SECRET = "tiller-secret-4711"
PROBE = """
import json, os, socket, sys
def reaches():
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2).close()
        return True
    except OSError:
        return False
def writes(path):
    try:
        open(path, "w").close()
        return True
    except OSError:
        return False
for line in sys.stdin:
    message = json.loads(line)
    answer = None
    if message["method"] == "initialize":
        answer = {"protocolVersion": message["params"]["protocolVersion"],
                  "capabilities": {"tools": {}}, "serverInfo": {"name": "probe", "version": "0"}}
    elif message["method"] == "tools/list":
        answer = {"tools": [{"name": "probe", "inputSchema": {"type": "object"}}]}
    elif message["method"] == "tools/call":
        home = os.environ.get("HOME", "/nowhere")
        writes(sys.argv[2])
        found = {"network": reaches(), "inside": writes("made.txt"),
                 "environment": dict(os.environ)}
        answer = {"content": [{"type": "text", "text": json.dumps(found)}]}
    if answer is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""


@pytest.fixture
def held() -> None:
    """Skip, saying why, where nothing is contained."""
    require_full()


async def probed(office: McpOffice, tmp_path: Path, **more: Any) -> dict[str, Any]:
    """Let a server say what it can do."""
    (office.folder.root / "probe.py").write_text(PROBE, "utf-8")
    outside = str(tmp_path / "outside.txt")
    port = str(urlsplit(office.lab.origin).port)
    command = {"command": "/usr/bin/python3", "args": ["-I", "probe.py", port, outside]}
    office.servers(probe={**command, **more})
    office.folder.env |= {
        "MY_API_KEY": SECRET,
        "GITHUB_TOKEN": SECRET,
        "TZ": "UTC",
        "UNKNOWN": SECRET,
    }
    async with office.session() as session:
        (found,) = await office.run(
            session, call("mcp__probe__probe"), servers="allowSession", calls="allowOnce"
        )
    return json.loads(found)


@pytest.mark.usefixtures("held")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python of the system")
async def test_a_server_is_held_in_like_a_command(office: McpOffice, tmp_path: Path) -> None:
    office.configure(sandbox="auto")
    found = await probed(office, tmp_path, env={"GIVEN_TOKEN": "given"})
    assert (found["network"], found["inside"]) == (False, True)
    assert (office.folder.root / "made.txt").exists()
    assert not (tmp_path / "outside.txt").exists()
    assert SECRET not in json.dumps(found)
    environment = found["environment"]
    assert (environment["TZ"], environment["GIVEN_TOKEN"]) == ("UTC", "given")
    assert "contained like commands, without the network" in office.asked()[0].way


@pytest.mark.usefixtures("held")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python of the system")
async def test_the_network_is_given_and_being_let_out_is_said(
    office: McpOffice, tmp_path: Path
) -> None:
    office.configure(sandbox="auto")
    found = await probed(office, tmp_path, needs=["network"])
    assert found["network"]
    assert not (tmp_path / "outside.txt").exists()
    found = await probed(office, tmp_path, sandbox="off")
    assert found["network"]
    assert (tmp_path / "outside.txt").exists()
    assert SECRET not in json.dumps(found)
    assert "not contained: your mcp.json says so" in office.asked()[1].way


async def test_a_project_that_is_not_trusted_starts_nothing(
    office: McpOffice, tmp_path: Path
) -> None:
    marker = tmp_path / "started"
    touching = {"command": "/usr/bin/touch", "args": [str(marker)]}
    office.project(".mcp.json", evil=touching)
    office.project(".tiller/mcp.json", worse=touching)
    async with office.session(trusted=False) as session:
        await office.run(session)
    assert not marker.exists()
    assert not any(name.startswith("mcp__") for name in office.declared(-1))
    async with office.session(trusted=True) as session:
        await office.run(session)
    assert marker.exists()


async def test_a_project_changed_after_trust_is_one_question(office: McpOffice) -> None:
    office.configure(defaultProjectTrust="ask")
    office.project(shop=rogue("none"))
    asked: list[str] = []

    async def run() -> bool:
        office.lab.script([{"text": "done"}])
        reader = session.subscribe()
        await session.prompt("go")
        async for stamped in reader:
            event = stamped.event
            if isinstance(event, PermissionRequested):
                is_trust = isinstance(event.request.subject, TrustSubject)
                asked.append("trust" if is_trust else "server")
                session.permissions.answer(event.request.request, "allowProject")
            if type(event).__name__ == "RunEnded":
                break
        reader.close()
        return "mcp__shop__echo" in office.declared(-1)

    async with office.session() as session:
        assert await run()
        assert asked == ["trust", "server"]
        assert await run()
        office.project(shop=rogue("none", "/nowhere"))
        assert await run()
        assert asked == ["trust", "server", "trust"]


async def test_a_server_that_goes_takes_its_tools_along_and_one_that_comes_brings_them(
    office: McpOffice,
) -> None:
    office.servers(one=rogue("none"))
    async with office.session() as session:
        await office.run(session, servers="allowSession")
        assert "mcp__one__echo" in office.declared(-1)
        office.servers(two=rogue("none"))
        await office.run(session, servers="allowSession")
        assert "mcp__one__echo" not in office.declared(-1)
        assert "mcp__two__echo" in office.declared(-1)


async def test_a_server_that_is_switched_off_is_stopped_and_is_not_started(
    office: McpOffice, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    office.servers(one=rogue("none"), two={**rogue("none", str(started)), "disabled": True})
    async with office.session() as session:
        await office.run(session, servers="allowSession")
        assert "mcp__one__echo" in office.declared(-1)
        assert "mcp__two__echo" not in office.declared(-1)
        office.servers(one={**rogue("none"), "disabled": True})
        await office.run(session, servers="allowSession")
        assert "mcp__one__echo" not in office.declared(-1)
    assert not started.exists()


async def test_whoever_chose_tools_without_servers_gets_none(office: McpOffice) -> None:
    office.servers(one=rogue("none"))
    for tools, there in (
        ("readonly", False),
        ("+mcp__one__echo", True),
        ("read,mcp__one__echo", True),
    ):
        async with office.session(tools=tools) as session:
            await office.run(session, servers="allowSession")
        assert ("mcp__one__echo" in office.declared(-1)) is there, tools


async def test_where_nobody_is_asked_nothing_new_is_used_but_for_who_lets_all_run(
    office: McpOffice, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    office.servers(one=rogue("none", str(said)))
    office.configure(permission={"fallback": "deny"})
    async with office.session() as session:
        await office.run(session)
    assert "mcp__one__echo" not in office.declared(-1)
    assert "nobody approved them" in office.notices()
    office.configure(permission={"mode": "yolo", "fallback": "deny"})
    async with office.session() as session:
        await office.run(session)
        assert "mcp__one__echo" in office.declared(-1)
        said.write_text("Something else.", "utf-8")
    office.configure()
    async with office.session() as session:
        await office.run(session, servers="allowProject")
    said.write_text("Something else again.", "utf-8")
    office.configure(permission={"mode": "yolo", "fallback": "deny"})
    async with office.session() as session:
        await office.run(session)
    assert "mcp__one__echo" not in office.declared(-1)


async def test_a_server_that_failed_is_tried_anew_when_all_is_read_again(
    office: McpOffice, tmp_path: Path
) -> None:
    program = tmp_path / "later"
    office.servers(one={**rogue("none"), "command": str(program)})
    async with office.session() as session:
        await office.run(session)
        assert "Program not found" in office.notices()
        program.symlink_to(sys.executable)
        office.servers(one={**rogue("none"), "command": str(program), "timeoutS": -1})
        loaded = await session.resources.reload()
        assert "a number of seconds" in str(loaded.problems)
        office.servers(one={**rogue("none"), "command": str(program)})
        await office.run(session, servers="allowSession")
        assert "mcp__one__echo" in office.declared(-1)


async def test_refusing_servers_does_not_end_a_run(office: McpOffice) -> None:
    office.servers(**{f"s{number}": rogue("none") for number in range(4)})
    async with office.session() as session:
        await office.run(session, servers="rejectOnce")
        result = await session.wait_idle()
    assert len(office.asked()) == 4
    assert result is None or result.status == "completed"


async def test_a_rule_for_a_server_answers_for_its_tools(office: McpOffice) -> None:
    office.servers(one=rogue("none"))
    echo = call("mcp__one__echo", word="hi", path="/etc/passwd", command="rm -rf /")
    async with office.session() as session:
        first, second = await office.run(
            session, echo, echo, servers="allowSession", calls="allowSession"
        )
    assert (first, second) == ("it was hi", "it was hi")
    (asked,) = office.asked_calls()
    assert (asked.type, asked.path) == ("mcp", None)
