"""Tool calls for a runtime that has none: a schema that the answer must fit, and back from the answer. Pure.

The runtime does not turn `tools` into calls, but it holds an answer to a JSON schema. So the model answers with one
object: `{"say": "…"}`, or `{"tool": "…", "arguments": {…}}`.
"""

from collections.abc import Mapping, Sequence

from agent_core.kernel import JsonObject, JsonValue, json

SAY = "say"
TOOL = "tool"
ARGUMENTS = "arguments"
KEPT = ("type", "enum", "const", "minItems", "maxItems")
"""What the runtime's grammar understands, besides objects, lists and choices."""
INTRODUCTION = (
    'Answer with one JSON object. To speak: {"say": "YOUR WORDS"}. '
    'To use a tool: {"tool": "NAME", "arguments": {…}}. The tools:'
)
DESCRIPTION_LENGTH = 120
"""A small model has a small window: of a description the first sentence is enough."""


def local_body(body: JsonObject) -> JsonObject:
    """Give the body for the runtime: without tools as it is, with tools as a task to fit a schema."""
    tools = [
        json.as_object(json.as_object(one).get("function")) for one in _list(body.get("tools"))
    ]
    messages = [_message(json.as_object(one)) for one in _list(body.get("messages"))]
    # The likeliest word each time: a small model wanders enough without chance, and what it did can be shown again.
    made: dict[str, JsonValue] = {"temperature": 0} | {
        key: value for key, value in body.items() if key not in ("tools", "tool_choice", "messages")
    }
    if not tools:
        return {**made, "messages": messages}
    return {
        **made,
        "messages": [{"role": "system", "content": _introduction(tools)}, *messages],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": answer_schema(tools)},
        },
    }


def answer_schema(tools: Sequence[JsonObject]) -> JsonObject:
    """Give the schema of an answer."""
    speech = _object({SAY: {"type": "string"}})
    calls = [
        _object(
            {
                TOOL: {"const": tool.get("name")},
                ARGUMENTS: plain_schema(json.as_object(tool.get("parameters"))),
            }
        )
        for tool in tools
    ]
    return {"anyOf": [speech, *calls]}


def plain_schema(schema: JsonObject) -> JsonObject:
    """Keep of a schema what the runtime understands."""
    plain: dict[str, JsonValue] = {key: schema[key] for key in KEPT if key in schema}
    if json.is_object(properties := schema.get("properties")):
        plain["properties"] = {
            name: plain_schema(json.as_object(one)) for name, one in properties.items()
        }
        plain["required"] = list(_list(schema.get("required")))
        plain["additionalProperties"] = False
    if json.is_object(items := schema.get("items")):
        plain["items"] = plain_schema(items)
    for choice in ("anyOf", "oneOf"):
        if options := _list(schema.get(choice)):
            plain["anyOf"] = [plain_schema(json.as_object(one)) for one in options]
    return plain


def _introduction(tools: Sequence[JsonObject]) -> str:
    lines = [INTRODUCTION]
    for tool in tools:
        described = str(tool.get("description", "")).partition("\n")[0][:DESCRIPTION_LENGTH]
        names = ", ".join(json.as_object(json.as_object(tool.get("parameters")).get("properties")))
        lines.append(f"- {tool.get('name')}({names}): {described}")
    return "\n".join(lines)


def _message(message: JsonObject) -> JsonObject:
    """Say what was called and what came of it in words: the model's template knows neither."""
    match message.get("role"):
        case "developer":
            return {**message, "role": "system"}
        case "tool":
            return {"role": "user", "content": f"Result: {_text(message.get('content'))}"}
        case "assistant" if calls := _list(message.get("tool_calls")):
            said = [_text(message.get("content")), *(_called(json.as_object(one)) for one in calls)]
            return {"role": "assistant", "content": "\n".join(one for one in said if one)}
        case role:
            return {"role": role, "content": _text(message.get("content"))}


def _called(call: JsonObject) -> str:
    function = json.as_object(call.get("function"))
    return f'{{"tool": "{function.get("name")}", "arguments": {function.get("arguments")}}}'


def _text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    parts = (json.as_object(part).get("text") for part in _list(content))
    return "\n".join(part for part in parts if isinstance(part, str))


def _object(properties: Mapping[str, JsonValue]) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()
