"""Turns as server-sent events, or as lines of JSON for Ollama, in the shape of each API."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tests.support.provider.asked import Api, Asked
from tests.support.provider.script import Json, ToolCall, Turn

CREATED = 1_700_000_000
USUAL_PIECES = 3
USUAL_TEXT = "word "
ANTHROPIC_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


@dataclass(frozen=True, slots=True)
class Sse:
    """One event of the stream, blank line included, or one line."""

    raw: bytes
    is_delta: bool = False


def render(turn: Turn, asked: Asked) -> list[Sse]:
    """Give the whole stream of a turn."""
    events = list(RENDERERS[asked.api](turn, asked))
    if turn.malformed is not None:
        events.insert(len(events) // 2, Sse(turn.malformed.encode("utf-8", "surrogateescape")))
    return events


def default_error(status: int, asked: Asked, message: str = "") -> Json:
    """Give the error body that a provider of this API sends with a status."""
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "api_error")
    message = message or f"scripted failure with status {status}"
    if asked.api == "ollama":
        return {"error": message}
    if asked.api == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _openai(turn: Turn, asked: Asked) -> Iterator[Sse]:
    chunk = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": asked.model,
    }

    def choice(delta: Json, finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return _data({**chunk, "choices": choices})

    yield Sse(choice({"role": "assistant", "content": ""}))
    for piece in _pieces(turn.thinking, USUAL_PIECES):
        yield Sse(choice({"reasoning_content": piece}), is_delta=True)
    # Long answers repeat one piece: encode each distinct piece once.
    encoded: dict[str, Sse] = {}
    for piece in text_pieces(turn):
        if piece not in encoded:
            encoded[piece] = Sse(choice({"content": piece}), is_delta=True)
        yield encoded[piece]
    for index, call in enumerate(turn.tool_calls):
        name = {"name": call.name, "arguments": ""}
        first = {"index": index, "id": _call_id(call, asked, index), "type": "function"}
        yield Sse(choice({"tool_calls": [{**first, "function": name}]}), is_delta=True)
        for piece in _pieces(call.arguments, call.pieces):
            more = {"index": index, "function": {"arguments": piece}}
            yield Sse(choice({"tool_calls": [more]}), is_delta=True)
    yield Sse(choice({}, _stop(turn)))
    if asked.include_usage and turn.usage is not None:
        yield Sse(_data({**chunk, "choices": [], "usage": _openai_usage(turn, asked)}))
    yield Sse(b"data: [DONE]\n\n")


def _responses(turn: Turn, asked: Asked) -> Iterator[Sse]:
    response = {"id": f"resp_{asked.number}", "object": "response", "model": asked.model}
    yield _typed("response.created", {"response": {**response, "status": "in_progress"}})
    items: list[Json] = []
    pieces = text_pieces(turn)
    if pieces:
        item = {"type": "message", "id": f"msg_{asked.number}", "role": "assistant"}
        started = {**item, "status": "in_progress", "content": []}
        yield _typed("response.output_item.added", {"output_index": 0, "item": started})
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        # As above: each distinct piece is encoded once.
        encoded: dict[str, Sse] = {}
        for piece in pieces:
            if piece not in encoded:
                fields = {**place, "delta": piece}
                encoded[piece] = _typed("response.output_text.delta", fields, is_delta=True)
            yield encoded[piece]
        content = [{"type": "output_text", "text": "".join(pieces), "annotations": []}]
        items.append({**item, "status": "completed", "content": content})
        yield _typed("response.output_item.done", {"output_index": 0, "item": items[-1]})
    for index, call in enumerate(turn.tool_calls):
        item = {"type": "function_call", "id": f"fc_{asked.number}_{index}", "name": call.name}
        item |= {"call_id": _call_id(call, asked, index), "status": "completed"}
        place = {"output_index": len(items)}
        items.append({**item, "arguments": call.arguments})
        added = {**item, "status": "in_progress", "arguments": ""}
        yield _typed("response.output_item.added", {**place, "item": added})
        fields = {**place, "item_id": item["id"], "delta": call.arguments}
        yield _typed("response.function_call_arguments.delta", fields, is_delta=True)
        yield _typed("response.output_item.done", {**place, "item": items[-1]})
    fresh, output, *_ = _counts(turn, asked)
    usage = {"input_tokens": fresh, "output_tokens": output, "total_tokens": fresh + output}
    usage |= {"input_tokens_details": {"cached_tokens": 0}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    done = {**response, "status": "completed", "output": items, "usage": usage}
    yield _typed("response.completed", {"response": done})


def _anthropic(turn: Turn, asked: Asked) -> Iterator[Sse]:
    usage = _anthropic_usage(turn, asked)
    message = {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield _typed("message_start", {"message": message})
    yield _typed("ping", {})
    index = 0
    if turn.thinking:
        deltas = [
            {"type": "thinking_delta", "thinking": one}
            for one in _pieces(turn.thinking, USUAL_PIECES)
        ]
        deltas.append({"type": "signature_delta", "signature": f"signed-{asked.number}"})
        yield from _block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
        index += 1
    pieces = text_pieces(turn)
    if pieces:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        yield from _block(index, {"type": "text", "text": ""}, deltas)
        index += 1
    for place, call in enumerate(turn.tool_calls):
        start = {"type": "tool_use", "id": _call_id(call, asked, place), "name": call.name}
        deltas = [{"type": "input_json_delta", "partial_json": ""}]
        if call.arguments != "{}":
            deltas += [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in _pieces(call.arguments, call.pieces)
            ]
        yield from _block(index, {**start, "input": {}}, deltas)
        index += 1
    stop = {"stop_reason": ANTHROPIC_STOPS.get(_stop(turn), _stop(turn)), "stop_sequence": None}
    yield _typed("message_delta", {"delta": stop, "usage": usage})
    yield _typed("message_stop", {})


def _ollama(turn: Turn, asked: Asked) -> Iterator[Sse]:
    def line(message: Json, **more: object) -> bytes:
        said = {"role": "assistant", "content": "", **message}
        value = {"model": asked.model, "message": said, "done": False, **more}
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    for piece in _pieces(turn.thinking, USUAL_PIECES):
        yield Sse(line({"thinking": piece}), is_delta=True)
    for piece in text_pieces(turn):
        yield Sse(line({"content": piece}), is_delta=True)
    for call in turn.tool_calls:
        function = {"name": call.name, "arguments": json.loads(call.arguments)}
        yield Sse(line({"tool_calls": [{"function": function}]}), is_delta=True)
    fresh, output, *_ = _counts(turn, asked)
    counts = {"prompt_eval_count": fresh, "eval_count": output}
    reason = "length" if turn.stop == "length" else "stop"
    yield Sse(line({}, done=True, done_reason=reason, **counts))


RENDERERS: Mapping[Api, Callable[[Turn, Asked], Iterator[Sse]]] = {
    "openai": _openai,
    "responses": _responses,
    "anthropic": _anthropic,
    "ollama": _ollama,
}


def _block(index: int, start: Json, deltas: list[Json]) -> Iterator[Sse]:
    yield _typed("content_block_start", {"index": index, "content_block": start})
    for delta in deltas:
        yield _typed("content_block_delta", {"index": index, "delta": delta}, is_delta=True)
    yield _typed("content_block_stop", {"index": index})


def text_pieces(turn: Turn) -> list[str]:
    """Cut the text of a turn into its deltas."""
    if turn.deltas is None:
        return _pieces(turn.text, USUAL_PIECES)
    text = turn.text or USUAL_TEXT
    repeats = not turn.text or len(text) < turn.deltas
    return [text] * turn.deltas if repeats else _pieces(text, turn.deltas)


def _pieces(text: str, count: int) -> list[str]:
    """Cut a text into `count` parts, as even as can be; shorter texts give fewer."""
    count = min(count, len(text))
    cuts = [len(text) * index // count for index in range(count + 1)] if count else []
    return [text[start:end] for start, end in pairwise(cuts)]


def _stop(turn: Turn) -> str:
    return turn.stop or ("tool_calls" if turn.tool_calls else "stop")


def _call_id(call: ToolCall, asked: Asked, index: int) -> str:
    prefix = "toolu" if asked.api == "anthropic" else "call"
    return call.id or f"{prefix}_{asked.number}_{index}"


def _counts(turn: Turn, asked: Asked) -> tuple[int, int, int, int, int]:
    given = turn.usage or {}
    said = sum(map(len, text_pieces(turn))) + len(turn.thinking)
    said += sum(len(call.arguments) for call in turn.tool_calls)
    return (
        given.get("input", asked.prompt_tokens),
        given.get("output", said // 4 + 1),
        given.get("cacheRead", 0),
        given.get("cacheWrite", 0),
        given.get("reasoning", 0),
    )


def _openai_usage(turn: Turn, asked: Asked) -> Json:
    fresh, output, cache_read, cache_write, reasoning = _counts(turn, asked)
    prompt = fresh + cache_read + cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cache_read},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _anthropic_usage(turn: Turn, asked: Asked) -> Json:
    if turn.usage is None:
        return {}
    fresh, output, cache_read, cache_write, _ = _counts(turn, asked)
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cache_read,
        "output_tokens": output,
    }


def _typed(kind: str, fields: Json, *, is_delta: bool = False) -> Sse:
    body = json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
    raw = f"event: {kind}\ndata: {body}\n\n".encode("utf-8", "surrogatepass")
    return Sse(raw, is_delta=is_delta)


def _data(value: Json) -> bytes:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + body.encode("utf-8", "surrogatepass") + b"\n\n"
