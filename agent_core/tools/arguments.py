"""The arguments of a tool as a pydantic class: its JSON Schema, forgiving coercion, errors that teach."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Annotated, ClassVar, Generic, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import override

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ArgumentsInvalid
from agent_core.kernel.json import as_object, decode_exact
from agent_core.kernel.values import Value
from agent_core.tools.port import CheckedCall, ToolContext, ToolResult, ToolSpec
from agent_core.tools.runner import scrub_json

SHOWN_STRING_CHARS = 200
SHOWN_CHARS = 4_000
MAX_PROBLEMS = 20


class ToolArguments(BaseModel):
    """Base of all arguments classes; field names are the tool's public schema.

    Forgives what models often do: numbers as strings, one value where a list is wanted, JSON in a string where
    a list or an object is wanted, null for what is optional, keys that nobody knows.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    other_names: ClassVar[Mapping[str, str]] = {}
    """Aliases that models use for fields: alias to field name."""

    @model_validator(mode="before")
    @classmethod
    def _forgive(cls, given: object) -> object:
        if isinstance(given, str):
            given = _parsed(given)
        if not isinstance(given, Mapping):
            return given
        # Keys of JSON are strings.
        arguments = _renamed(cast("JsonObject", given), cls.other_names)
        fields = _fields_of(cls)
        return {
            name: _shaped(value, fields[name]) if name in fields else value
            for name, value in arguments.items()
            if value is not None or name not in fields or fields[name].is_required
        }


class _WantedField(Value, frozen=True, kw_only=True):
    """The wanted form of a field of an arguments class."""

    is_required: bool
    is_list: bool
    is_object: bool


@cache
def _fields_of(model: type[ToolArguments]) -> Mapping[str, _WantedField]:
    """Return what the fields of a class want, by the name that models use."""
    fields: dict[str, _WantedField] = {}
    for name, field in model.model_fields.items():
        is_list, is_object = _wants(field.annotation)
        fields[field.alias or name] = _WantedField(
            is_required=field.is_required(), is_list=is_list, is_object=is_object
        )
    return fields


def _no_truth(value: object) -> object:
    """Refuse true and false, which pydantic takes for 1 and 0."""
    if isinstance(value, bool):
        message = "Input should be a number"
        raise ValueError(message)  # noqa: TRY004 - pydantic wants this class
    return value


ArgumentCount = Annotated[int, Field(ge=1), BeforeValidator(_no_truth)]
"""A whole number from 1."""
MAX_SECONDS = 2_147_483.647
ArgumentSeconds = Annotated[float, Field(gt=0, le=MAX_SECONDS), BeforeValidator(_no_truth)]
"""A length of time that timers can take."""

ToolArgumentsT = TypeVar("ToolArgumentsT", bound=ToolArguments)


class ModelTool(Value, Generic[ToolArgumentsT], frozen=True, kw_only=True):
    """A tool made of a declaration, a pydantic class for its arguments, and two functions."""

    spec: ToolSpec
    arguments: type[ToolArgumentsT]
    titled: Callable[[JsonObject], str]
    """Returns the title of a call; accepts any arguments, under their current names."""
    execute: Callable[[ToolArgumentsT, ToolContext], Awaitable[ToolResult]]
    reaches: Callable[[Mapping[str, object], Mapping[str, JsonValue]], str] | None = None
    """Returns the host that a call reaches, by its checked arguments and the options of the tool; None: it reaches none."""

    def title(self, arguments: JsonObject) -> str:
        """Describe in a few words what a call does."""
        return self.titled(_renamed(arguments, self.arguments.other_names))

    def check(self, arguments: JsonObject) -> CheckedCall:
        """Coerce and check the arguments of a call."""
        typed = validated(self.spec.name, self.arguments, arguments)
        return CheckedCall(arguments=dumped(typed), run=partial(self.execute, typed))


def validated(tool: str, model: type[ToolArgumentsT], arguments: JsonObject) -> ToolArgumentsT:
    """Make typed arguments of what a model wrote.

    Raises:
        ArgumentsInvalid: They do not fit; the text lists every problem and shows what came.
    """
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        problems = [
            _problem(each["type"], each["loc"], each["msg"])
            for each in error.errors(include_url=False)
        ]
        raise _refusal(tool, problems, arguments) from error


def dumped(arguments: ToolArguments, *, with_defaults: bool = False) -> JsonObject:
    """Return typed arguments as JSON, without what the model left out unless the defaults are asked for."""
    left_out = not with_defaults
    said = arguments.model_dump(
        mode="json", by_alias=True, exclude_none=left_out, exclude_unset=left_out
    )
    return cast("JsonObject", said)


@lru_cache(maxsize=64)
def schema_of(model: type[ToolArguments]) -> JsonObject:
    """Return the JSON Schema of an arguments class, plain enough for every provider.

    No references, no titles, no null for what is optional.
    """
    schema = cast("JsonObject", model.model_json_schema(schema_generator=_Schema))
    definitions = as_object(schema.get("$defs"))
    return as_object(_plain(schema, definitions))


class _Schema(GenerateJsonSchema):
    @override
    def encode_default(self, dft: object) -> object:
        # pydantic would make a validator for each, and look for plugins in every installed package before the first.
        if dft == ():
            return []
        return dft if dft is None or isinstance(dft, str | int) else super().encode_default(dft)


def _plain(value: JsonValue, definitions: JsonObject) -> JsonValue:
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return [_plain(item, definitions) for item in value]
    if not isinstance(value, Mapping):
        return value
    if isinstance(reference := value.get("$ref"), str):
        return _plain(definitions[reference.rpartition("/")[2]], definitions)
    rest = dict(value)
    rest.pop("$defs", None)
    if isinstance(rest.get("title"), str):
        del rest["title"]
    if "properties" in rest and isinstance(rest.get("description"), str):
        del rest["description"]  # a docstring, which speaks to programmers
    if "default" in rest and rest["default"] is None:
        del rest["default"]
    match rest.pop("anyOf", None):
        case [Mapping() as only, {"type": "null"}]:
            return _plain({**rest, **only}, definitions)
        case None:
            pass
        case several:
            rest["anyOf"] = several
    return {name: _plain(item, definitions) for name, item in rest.items()}


def _shaped(value: JsonValue, field: _WantedField) -> JsonValue:
    """Bring a value nearer to what is wanted: JSON out of a string, a list around a single value."""
    if isinstance(value, str) and (field.is_list or field.is_object):
        parsed = _parsed(value)
        if isinstance(parsed, Mapping) or (field.is_list and isinstance(parsed, Sequence)):
            value = parsed
    if field.is_list and (isinstance(value, str | Mapping) or not isinstance(value, Sequence)):
        return [value]
    return value


def _parsed(text: str) -> JsonValue:
    """Read a text as JSON, if it is that."""
    try:
        return decode_exact(text)
    except ValueError:
        return text


def _wants(annotation: object) -> tuple[bool, bool]:
    """Return whether a field is a list, and whether it is an object."""
    kinds = cast("Sequence[object]", get_args(annotation))
    if get_origin(annotation) in {list, tuple}:
        return True, False
    if kinds:
        several = [_wants(each) for each in kinds]
        return any(each[0] for each in several), any(each[1] for each in several)
    return False, isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _renamed(arguments: JsonObject, names: Mapping[str, str]) -> JsonObject:
    """Move values to their right names, unless something is there already."""
    moved = dict(arguments)
    for other, right in names.items():
        if other in moved and moved.get(right) is None:
            moved[right] = moved.pop(other)
    return moved


def _problem(kind: str, place: Sequence[int | str], message: str) -> str:
    if kind == "model_type":
        message = "Input should be an object"
    message = message.removeprefix("Value error, ")
    return f"  - {'.'.join(str(step) for step in place) or 'root'}: {message}"


def _refusal(tool: str, problems: Sequence[str], arguments: JsonObject) -> ArgumentsInvalid:
    bullets = "\n".join(problems[:MAX_PROBLEMS])
    if len(problems) > MAX_PROBLEMS:
        bullets += f"\n  - and {len(problems) - MAX_PROBLEMS} more"
    received = json.dumps(_shortened(scrub_json(arguments)), indent=2, ensure_ascii=False)
    if len(received) > SHOWN_CHARS:
        received = f"{received[:SHOWN_CHARS]}…"
    message = f'Validation failed for tool "{tool}":\n{bullets}'
    return ArgumentsInvalid(message, advice=f"\n\nReceived arguments:\n{received}")


def _shortened(value: JsonValue) -> JsonValue:
    """Shorten long strings: the model knows what it wrote, and must not pay for it twice."""
    if isinstance(value, str):
        if len(value) <= SHOWN_STRING_CHARS:
            return value
        return f"{value[:SHOWN_STRING_CHARS]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {name: _shortened(item) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [_shortened(item) for item in value]
    return value
