"""The line of a run says what goes on, and what waits for its turn is listed below it."""

from agent_core.events import QueueChanged, QueueItem, RunStarted, ToolRunning
from agent_core.kernel import ItemId, QueueId, RunId
from agent_core.messages import Image, Text, UserContent
from tiller_server.cli.terminal.status_line import StatusLine


def item(name: str, *content: UserContent) -> QueueItem:
    return QueueItem(queue_id=QueueId(name), delivery="steer", content=content, at_ms=0)


def test_queued_prompts_are_listed_until_they_are_delivered() -> None:
    status = StatusLine(now_s=lambda: 75.0)
    status.see(RunStarted(run=RunId("r"), message_id=None, model="lab/m"))
    status.see(
        ToolRunning(run=RunId("r"), turn=None, item=ItemId("i"), title="$ npm test", input={})
    )
    assert list(status.queued()) == []
    picture = Image(mime="image/png", data="aGk=")
    texts = [item(str(number), Text(text=f"wish\n{number}")) for number in range(4)]
    status.see(QueueChanged(queue=(item("p", picture), *texts)))
    assert status.line().endswith("$ npm test · 0 s · 5 queued")
    assert list(status.queued()) == [
        "  queued: an attachment",
        "  queued: wish 0",
        "  queued: wish 1",
        "  and 2 more",
    ]
    status.see(QueueChanged(queue=()))
    assert list(status.queued()) == []
