"""A message of a chat, the run that it starts, and its answer."""

from tests.support.channels.bridges import bridged
from tests.support.clients.server import Ground, says


async def test_a_message_is_answered_once_and_whole(ground: Ground) -> None:
    ground.provider.script([says("It is done.")])
    async with bridged(ground) as chat:
        message = chat.platform.write("do it")
        await chat.until(
            lambda: chat.platform.messages[message.key].reactions[-1:] == ["completed"]
        )
        (answer,) = chat.platform.ours()
        assert (answer.text, answer.outcome, answer.kind) == ("It is done.", "completed", "answer")
        assert chat.platform.messages[message.key].reactions == ["started", "completed"]
