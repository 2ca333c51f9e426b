"""Conversations made up at random, as a transcript may hold them: every kind of part, tidy or not."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from agent_core.kernel import ToolCallId
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.providers import ModelInfo, ModelRequest, ToolDeclaration

WORDS = (
    "hello",
    "look: ä",
    "日本語",
    "",
    " ",
    'a "quoted" \\ line\n',
    "🙂",
    "\ud800 half",
    "x" * 300,
)
PICTURE = Image(mime="image/png", data="aWs=")
FOREIGN_IDS = (
    "call_1",
    "toolu_01" + "A" * 60,
    "call_9|fc_9",
    "call_" + "b" * 500 + "|fc_" + "c" * 400,
    "functions.read:0",
    "",
    "ä ö",
)
TOOLS = (
    ToolDeclaration(
        name="read",
        description="Reads a file.",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"],
        },
    ),
    ToolDeclaration(
        name="ls", description="Lists.", parameters={"type": "object", "properties": {}}
    ),
)
Sign = Callable[[int], str | None]


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What the model under test puts on its own parts; each gets a number that is new."""

    text: Sign = lambda _: None
    thought: Sign = lambda _: None
    call: Sign = lambda _: None
    call_id: Callable[[int], str] = lambda number: f"call_{number}"


def made_up_request(seed: int, facts: ModelInfo, signs: Signs) -> ModelRequest:
    """Make a request up; the same seed makes the same one."""
    random = Random(seed)  # noqa: S311 - it must be the same each time
    story = _Story(random, facts, signs)
    for _ in range(random.randint(1, 6)):
        story.go_on()
    return ModelRequest(
        system=random.choice(("", "Be brief.")),
        # It ends as a conversation does that a model is asked to go on with.
        messages=(*story.messages, UserMessage(content=(Text(text="go on"),), at_ms=0)),
        tools=random.choice(((), TOOLS)),
        thinking=random.choice(("off", "minimal", "low", "high")),
        max_tokens=random.choice((None, 1, 1000)),
        session=random.choice((None, "s", "s" * 100)),
        without_thoughts=random.random() < 0.1,
    )


class _Story:
    def __init__(self, random: Random, facts: ModelInfo, signs: Signs) -> None:
        self.messages: list[Message] = []
        self._random = random
        self._facts = facts
        self._signs = signs
        self._count = 0

    def go_on(self) -> None:
        random = self._random
        self.messages.append(UserMessage(content=self._shown(), at_ms=0))
        for _ in range(random.randint(0, 3)):
            answer = self._answer()
            self.messages.append(answer)
            for call in answer.tool_calls:
                if random.random() < 0.85:
                    self.messages.append(self._result(call))
                if random.random() < 0.05:
                    self.messages.append(UserMessage(content=(Text(text="wait"),), at_ms=0))

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _shown(self) -> tuple[UserContent, ...]:
        def one() -> UserContent:
            if self._random.random() < 0.3:
                return PICTURE
            return Text(text=self._random.choice(WORDS))

        return tuple(one() for _ in range(self._random.randint(0, 3)))

    def _answer(self) -> AssistantMessage:
        random, facts = self._random, self._facts
        own = random.random() < 0.6
        content = tuple(self._part(own=own) for _ in range(random.randint(0, 5)))
        return AssistantMessage(
            content=content,
            api=facts.api if own else "anthropic-messages",
            provider=facts.provider if own else "elsewhere",
            model=facts.id,
            stop_reason=random.choice(("stop", "tool_use", "length", "tool_use", "error")),
            at_ms=0,
        )

    def _part(self, *, own: bool) -> AssistantContent:
        number = self._number()
        signs = self._signs if own else Signs(thought=lambda _: "EqQB", call=lambda _: "sig")
        match self._random.randrange(4):
            case 0:
                return Text(text=self._random.choice(WORDS), signature=signs.text(number))
            case 1:
                text = self._random.choice(("hm", ""))
                return Thinking(text=text, signature=signs.thought(number))
            case _:
                call_id = signs.call_id(number) if own else self._random.choice(FOREIGN_IDS)
                return ToolCall(
                    id=ToolCallId(call_id),
                    name=self._random.choice(("read", "ls")),
                    arguments=self._random.choice(({}, {"path": "ä", "limit": 3})),
                    signature=signs.call(number),
                )

    def _result(self, call: ToolCall) -> ToolResultMessage:
        return ToolResultMessage(
            call_id=call.id,
            tool_name=call.name,
            content=self._shown(),
            is_error=self._random.random() < 0.2,
            at_ms=0,
        )
