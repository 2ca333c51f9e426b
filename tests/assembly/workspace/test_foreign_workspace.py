"""A session whose workspace is not on this machine: it goes through ports that the caller brings."""

from pathlib import Path

from agent_core import Workspace, create_session
from agent_core.messages import ToolResultMessage, text_of
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder, ask
from tests.support.workspace.rooted_workspace import rooted_workspace

INNER = Path("/workspace/project")


async def test_every_tool_of_a_session_works_where_the_ports_lead(
    folder: Folder, lab: LoopbackProvider
) -> None:
    write_config(folder.dirs.config, lab, settings={"permission": {"mode": "yolo"}})
    (folder.root / "sub").mkdir()
    (folder.root / "sub/a.txt").write_text("one needle\n")
    edits = [{"oldText": "one", "newText": "two"}]
    calls = [
        ("read", {"path": "/workspace/project/sub/a.txt"}),
        ("edit", {"path": "sub/a.txt", "edits": edits}),
        ("write", {"path": "new.txt", "content": "made"}),
        ("bash", {"command": "cat new.txt sub/a.txt"}),
        ("grep", {"pattern": "needle"}),
        ("find", {"pattern": "*.txt"}),
        ("ls", {"path": "sub"}),
    ]
    lab.script(
        [
            *({"tool_calls": [{"name": name, "arguments": given}]} for name, given in calls),
            {"text": "done"},
        ]
    )
    ports: Workspace = rooted_workspace(INNER, folder.root, env=folder.env)
    async with create_session(workspace=ports, env=folder.env, trusted=True) as session:
        await ask(session)
        results = [one for one in session.info.messages if isinstance(one, ToolResultMessage)]
    assert [(one.tool_name, text_of(one.content), one.is_error) for one in results] == [
        ("read", "one needle\n", False),
        ("edit", "Successfully replaced 1 block(s) in sub/a.txt.", False),
        ("write", "Successfully wrote 4 bytes to new.txt", False),
        ("bash", "madetwo needle\n", False),
        ("grep", "sub/a.txt:1: two needle", False),
        ("find", "new.txt\nsub/a.txt", False),
        ("ls", "a.txt", False),
    ]
    assert str(folder.root) not in repr(results)
