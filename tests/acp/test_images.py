"""Images and files over ACP: a client that sends and shows images by their bytes gets them, though sessions store them elsewhere."""

from base64 import b64encode

from tests.support.acp.client import acp_client
from tests.support.clients.server import Ground, calls, says
from tests.support.provider.images import PNG, PNG_BASE64

IMAGE = {"type": "image", "data": PNG_BASE64, "mimeType": "image/png"}


async def test_images_of_prompts_and_tools_are_shown_live_and_when_a_session_is_loaded(
    ground: Ground,
) -> None:
    ground.show_images()
    (ground.root / "dot.png").write_bytes(PNG)
    ground.provider.script([calls(("read", {"path": "dot.png"})), says("A dot.")])
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        content = [{"type": "text", "text": "look"}, IMAGE]
        await client.request("session/prompt", {"sessionId": session, "prompt": content})
        live = [one for one in client.updates if one.get("status") == "completed"]
        seen = len(client.updates)
        params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
        await client.request("session/load", params)
        replayed = client.updates[seen:]
    said = [one["content"] for one in replayed if one["sessionUpdate"] == "user_message_chunk"]
    assert said == [{"type": "text", "text": "look"}, IMAGE]
    again = [one for one in replayed if one.get("status") == "completed"]
    assert {"type": "content", "content": IMAGE} in live[-1]["content"]
    assert {"type": "content", "content": IMAGE} in again[-1]["content"]
    (path,) = ground.sessions()
    assert PNG_BASE64 not in path.read_text("utf-8")


def embedded(name: str, mime: str, data: bytes) -> dict[str, object]:
    """Return a block with the bytes of a file."""
    blob = b64encode(data).decode()
    resource = {"uri": f"file:///else%20where/{name}", "mimeType": mime, "blob": blob}
    return {"type": "resource", "resource": resource}


async def test_embedded_files_reach_the_model_as_text_and_pdf(ground: Ground) -> None:
    ground.show_images()
    ground.provider.script([says("Read.")])
    pdf = b"%PDF-1.7"
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        content = [
            embedded("notes.md", "text/markdown", b"Mind the gap."),
            embedded("plan.pdf", "application/pdf", pdf),
        ]
        await client.request("session/prompt", {"sessionId": session, "prompt": content})
        seen = len(client.updates)
        params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
        await client.request("session/load", params)
        replayed = client.updates[seen:]
    url = f"data:application/pdf;base64,{b64encode(pdf).decode()}"
    assert ground.provider.requests[-1]["body"]["messages"][-1]["content"] == [
        {"type": "text", "text": '<file name="notes.md">\nMind the gap.\n</file>'},
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": url}},
    ]
    said = [one["content"] for one in replayed if one["sessionUpdate"] == "user_message_chunk"]
    assert [one["text"] for one in said] == ["(file notes.md)", "(file plan.pdf)"]
