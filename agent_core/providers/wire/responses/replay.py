"""Codec of the parts of an answer that must be sent back to the model that produced it. Pure."""

from collections.abc import Sequence

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import AssistantMessage, Text, Thinking, ToolCall

ID_LIMIT = 64
SIGNATURE_VERSION = 1
PHASES = ("commentary", "final_answer")
CUSTOM = "ctc_"
"""How the item of a call begins whose input is plain text."""
CUSTOM_INPUT = "input"
_Json = dict[str, JsonValue]


def thought_signature(item: JsonObject) -> str | None:
    """Keep a reasoning item whole; None: it holds nothing that a server which stored nothing would take back."""
    if not _can_go_back(item):
        return None
    keys = ("type", "id", "summary", "encrypted_content", "content")
    return json.encode({key: item[key] for key in keys if item.get(key) is not None}).decode()


def text_signature(item: JsonObject) -> str | None:
    """Keep a message's id and phase."""
    item_id = item.get("id")
    if not isinstance(item_id, str) or not item_id:
        return None
    kept: _Json = {"v": SIGNATURE_VERSION, "id": item_id}
    phase = item.get("phase")
    if phase in PHASES:
        kept["phase"] = phase
    return json.encode(kept).decode()


def is_custom(call: ToolCall) -> bool:
    """Return whether a call's input was plain text."""
    text = call.arguments.get(CUSTOM_INPUT)
    return (call.signature or "").startswith(CUSTOM) and isinstance(text, str)


def answer_items(answer: AssistantMessage, *, with_thought_ids: bool) -> list[JsonObject]:
    """Return the items that stand for an earlier answer.

    A reasoning item is refused without the item that followed it, and so is the id of an item whose reasoning is not
    there: both are left out.
    """
    with_ids = not any(
        isinstance(part, Thinking) and _thought(part, with_id=True) is None
        for part in answer.content
    )
    items: list[JsonObject] = []
    followed = False
    for part in reversed(answer.content):
        if isinstance(part, Thinking):
            item = _thought(part, with_id=with_thought_ids) if followed else None
        else:
            item = _item(part, with_id=with_ids)
            followed = followed or item is not None
        if item is not None:
            items.append(item)
    return items[::-1]


def _can_go_back(item: JsonObject) -> bool:
    return bool(item.get("encrypted_content") or item.get("content"))


def _thought(thought: Thinking, *, with_id: bool) -> JsonObject | None:
    item = _decoded(thought.signature or "")
    if item.get("type") != "reasoning" or not _can_go_back(item):
        return None
    summary = item.get("summary")
    sent: _Json = {**item, "summary": summary if isinstance(summary, Sequence) else []}
    if not with_id:
        sent.pop("id", None)
    return sent


def _item(part: Text | ToolCall, *, with_id: bool) -> JsonObject | None:
    match part:
        case Text():
            return _message(part, with_id=with_id) if part.text else None
        case ToolCall():
            return _call(part, with_id=with_id)


def _message(part: Text, *, with_id: bool) -> JsonObject:
    kept = _decoded(part.signature or "")
    phase: _Json = {"phase": kept["phase"]} if kept.get("phase") in PHASES else {}
    item_id = kept.get("id")
    if not with_id or not isinstance(item_id, str) or not _is_id(item_id, "msg"):
        # The short form: every server takes it, whoever gave the answer.
        return {"role": "assistant", "content": part.text, **phase}
    block: _Json = {"type": "output_text", "text": part.text, "annotations": []}
    return {
        "type": "message",
        "role": "assistant",
        "id": item_id,
        "status": "completed",
        "content": [block],
        **phase,
    }


def _call(call: ToolCall, *, with_id: bool) -> JsonObject:
    item_id = call.signature or ""
    custom = is_custom(call)
    own: _Json = {"id": item_id} if with_id and _is_id(item_id, CUSTOM if custom else "fc_") else {}
    if custom:
        return {
            "type": "custom_tool_call",
            "call_id": call.id,
            "name": call.name,
            "input": call.arguments[CUSTOM_INPUT],
            **own,
        }
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": json.encode(call.arguments).decode(),
        **own,
    }


def _is_id(text: str, kind: str) -> bool:
    return text.startswith(kind) and len(kind) < len(text) <= ID_LIMIT


def _decoded(signature: str) -> JsonObject:
    if not signature.startswith("{"):
        return {}
    try:
        return json.as_object(json.decode(signature))
    except ValueError:
        return {}
