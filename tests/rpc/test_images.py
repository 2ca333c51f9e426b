"""Images over RPC: records hold their bytes, though sessions store them elsewhere."""

from tests.support.clients.rpc import rpc_client
from tests.support.clients.server import Ground, says
from tests.support.provider.images import PNG_BASE64

IMAGE = {"type": "image", "data": PNG_BASE64, "mimeType": "image/png"}


async def test_records_of_a_run_and_of_the_session_hold_images(ground: Ground) -> None:
    ground.show_images()
    ground.provider.script([says("A dot.")])
    async with rpc_client(ground) as peer:
        await peer.data("prompt", message="look", images=[IMAGE])
        await peer.event("agent_settled")
        stored = await peer.data("get_messages")
    (end,) = peer.of("agent_end")
    content = [{"type": "text", "text": "look"}, IMAGE]
    assert end["messages"][0]["content"] == content
    assert stored["messages"][0]["content"] == content
