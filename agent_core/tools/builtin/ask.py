"""The tool `ask`: questions of the model that only the user can answer."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agent_core.events import Answer, Answers, QuestionLine, QuestionOption
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError, UsageError
from agent_core.kernel.json import as_object, scrub
from agent_core.kernel.text import one_line
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result

MOST_QUESTIONS: Final = 5
MOST_OPTIONS: Final = 10
TITLE_CHARS: Final = 80
UNASKED: Final[Mapping[str, str]] = {
    "policy": "Nobody can be asked here.",
    "unshown": "No client can show a question now.",
    "timeout": "Nobody answered in time.",
}
"""Reasons why there is no answer of a person, by the source of the answers."""
GO_ON: Final = "Decide yourself, go on, and name what you assumed in your last answer."
DECLINED: Final = (
    "The user did not want to answer. Go on without the answer, or end and say what you need."
)

YES_NO: Final[Mapping[str, bool]] = {"yes": True, "true": True, "no": False, "false": False}

AskKind = Literal["choice", "text", "confirm"]


def _as_text(given: object) -> object:
    """Convert true and false to yes and no."""
    return ("yes" if given else "no") if isinstance(given, bool) else given


class AskOption(BaseModel):
    """One thing to choose."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    label: str = Field(description="A few words; the answer is this text")
    description: str | None = Field(default=None, description="What follows from it")


class AskQuestion(BaseModel):
    """One question."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question: str = Field(description="The question, complete in itself")
    options: list[AskOption] = Field(
        default=[],
        description=f"At most {MOST_OPTIONS} options to choose from; without them a text is asked for",
    )
    kind: AskKind | None = Field(
        default=None, description="confirm asks for yes or no; else it follows from the options"
    )
    default: Annotated[str, BeforeValidator(_as_text)] | None = Field(
        default=None,
        description="The answer when nobody can be asked: the label of an option, a text, or yes or no",
    )


class AskArguments(ToolArguments):
    """Arguments of `ask`."""

    other_names: ClassVar[Mapping[str, str]] = {"question": "questions"}

    questions: list[AskQuestion] = Field(
        description=f"One form with at most {MOST_QUESTIONS} questions"
    )


def ask_tool() -> ModelTool[AskArguments]:
    """Make the tool."""
    return ModelTool(
        spec=ToolSpec(
            name="ask",
            description=(
                "Ask the user what only they can decide: a choice between real alternatives, a missing fact, a confirmation. "
                "It waits for the answer. Not for what the files can tell, and not for permission: that is asked for you."
            ),
            parameters=schema_of(AskArguments),
            kind="read",
            snippet="Ask the user a question",
        ),
        arguments=AskArguments,
        titled=_title,
        execute=_ask,
    )


def _title(arguments: JsonObject) -> str:
    questions = arguments.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else None
    text = as_object(first).get("question")
    return f"ask {one_line(text)[:TITLE_CHARS]}" if isinstance(text, str) else "ask"


async def _ask(arguments: AskArguments, context: ToolContext) -> ToolResult:
    questions = arguments.questions
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        message = f"One call asks 1 to {MOST_QUESTIONS} questions, this one has {len(questions)}."
        raise ToolError(message)
    lines = [_line(number, one) for number, one in enumerate(questions)]
    try:
        answers = await context.ask(lines)
    except UsageError as error:
        raise ToolError(str(error)) from error
    return _result(lines, answers)


def _line(number: int, asked: AskQuestion) -> QuestionLine:
    options = tuple(
        QuestionOption(
            id=str(at),
            label=one_line(scrub(one.label)),
            description=None if one.description is None else one_line(scrub(one.description)),
        )
        for at, one in enumerate(asked.options)
    )
    if len(options) > MOST_OPTIONS:
        message = f"Question {number + 1} has {len(options)} options, at most {MOST_OPTIONS} can be shown: offer the best."
        raise ToolError(message)
    kind = asked.kind or ("choice" if options else "text")
    return QuestionLine(
        id=str(number),
        text=scrub(asked.question),
        kind=kind,
        options=options if kind == "choice" else (),
        default=_default(number, asked, kind, options),
    )


def _default(
    number: int, asked: AskQuestion, kind: AskKind, options: Sequence[QuestionOption]
) -> Answer | None:
    match kind, asked.default:
        case _, None:
            return None
        case "confirm", str() as default if default.lower() in YES_NO:
            return YES_NO[default.lower()]
        case "text", str() as default:
            return scrub(default)
        case "choice", str() as default:
            label = one_line(scrub(default))
            if (option := next((one for one in options if one.label == label), None)) is not None:
                return option.id
        case _:
            pass
    message = f"The default of question {number + 1} is no answer to it: use the label of an option, a text, or yes or no."
    raise ToolError(message)


def _result(lines: Sequence[QuestionLine], answers: Answers) -> ToolResult:
    if answers.answers is None:
        why = UNASKED.get(answers.by)
        return text_result(DECLINED if why is None else f"{why} {GO_ON}")
    given = [(line.text, _shown(line, answers.answers.get(line.id))) for line in lines]
    text = "\n".join(f"{question}\n→ {answer}" for question, answer in given)
    if why := UNASKED.get(answers.by):
        text = f"{why} The defaults count:\n{text}"
    details: list[JsonValue] = [
        {"question": question, "answer": answer} for question, answer in given
    ]
    return text_result(text, details={"answers": details})


def _shown(line: QuestionLine, answer: Answer | None) -> str:
    match answer:
        case bool():
            return "yes" if answer else "no"
        case str() if line.kind == "text":
            return answer or "(empty)"
        case str():
            return _label(line, answer)
        case tuple():
            return ", ".join(_label(line, one) for one in answer)
        case None:
            return "(no answer)"


def _label(line: QuestionLine, chosen: str) -> str:
    return next((one.label for one in line.options if one.id == chosen), chosen)
