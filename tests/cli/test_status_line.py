"""The line of a run says what goes on, and what waits for its turn is listed below it."""

from msgspec.structs import replace

from agent_core.events import (
    Question,
    QuestionRequested,
    QuestionResolved,
    QueueChanged,
    QueueItem,
    RunStarted,
    ToolEnded,
    ToolInputDelta,
    ToolRunning,
    ToolStarted,
)
from agent_core.kernel import ItemId, JsonObject, QueueId, RunId, SessionId, ToolCallId
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


def test_a_call_that_the_model_writes_shows_its_path_or_command_at_80_columns() -> None:
    status = StatusLine(now_s=lambda: 75.0)
    run, one = RunId("r"), ItemId("i")
    lines: list[str] = []

    def arguments(partial: JsonObject | None) -> None:
        status.see(ToolInputDelta(run=run, turn=None, item=one, text="x", partial=partial))
        lines.append(status.line().partition(" ")[2])

    def call(name: str) -> None:
        status.see(
            ToolStarted(run=run, turn=None, item=one, call=ToolCallId("c"), name=name, title=name)
        )
        arguments(None)

    status.see(RunStarted(run=run, message_id=None, model="lab/m"))
    call("write")
    arguments({"path": "src/ma", "content": ""})
    arguments(None)
    call("bash")
    arguments({"command": "npm\ttest &&\n\x1b[31m"})
    arguments({"command": "echo " + "x" * 200 + " the end"})
    status.see(ToolRunning(run=run, turn=None, item=one, title="$ npm", input={}))
    lines.append(status.line().partition(" ")[2])
    status.see(
        ToolEnded(
            run=run, turn=None, item=one, call=ToolCallId("c"), name="bash", status="ok",
            content=(), details=None, duration_ms=1,
        )
    )  # fmt: skip
    lines.append(status.line().partition(" ")[2])
    assert lines == [
        "preparing write · 0 s",
        "preparing write src/ma · 0 s",
        "preparing write src/ma · 0 s",
        "preparing bash · 0 s",
        "preparing $ npm test && <U+001B>[31m · 0 s",
        f"preparing $ echo {'x' * 17}…{'x' * 16} the end · 0 s",
        "$ npm · 0 s",
        "waiting for the model · 0 s",
    ]
    assert max(map(len, lines)) < 78


def test_an_open_question_is_waited_for_and_not_the_model() -> None:
    status = StatusLine(now_s=lambda: 75.0)
    run = RunId("r")
    status.see(RunStarted(run=run, message_id=None, model="lab/m"))
    question = Question(
        request="q",
        session=SessionId("s"),
        run=run,
        questions=(),
        blocking=True,
        since_ms=0,
        expires_ms=None,
    )
    status.see(QuestionRequested(run=run, request=replace(question, blocking=False)))
    assert status.line().endswith(" waiting for the model · 0 s")
    status.see(QuestionRequested(run=run, request=question))
    assert status.line().endswith(" waiting for your answer · 0 s")
    status.see(QuestionResolved(run=run, request="q", by="cli"))
    assert status.line().endswith(" waiting for the model · 0 s")
