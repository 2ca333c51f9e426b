"""Conversation of a session as items of the wire protocol, read from its entries; pure.

An item has the id of its entry; a thought inside an answer has that id and its index, a tool call the id of its live events.
"""

from collections.abc import Iterator, Mapping, Sequence

from agent_core.events.codec import STOP_REASONS, block, cost
from agent_core.kernel import JsonValue, call_item, rfc3339
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    MessageEntry,
)

HistoryItem = dict[str, JsonValue]
END = "end"
"""The cursor behind the newest item."""
SHOWN_CHARS = 16_384
"""How much of one text is given unless all of it is asked for."""
CUT = '\n[… {left} more characters; read the item with part "full" or a range]'


class EntryItem(Value, frozen=True, kw_only=True):
    """An item, and the entry that it was made of."""

    entry: str
    item: HistoryItem


def items(
    entries: Sequence[AnyEntry], *, branch: Sequence[AnyEntry] | None = None
) -> Iterator[EntryItem]:
    """Return the items of entries that follow one another.

    Args:
        entries: Entries to read.
        branch: Branch that contains the entries; None: they are the whole branch.
    """
    results = _results(entries)
    newest = _newest_run(branch or entries)
    begun = _runs_of_prompts(branch or entries)
    for entry in entries:
        run = begun.get(entry.id)
        began: HistoryItem = {} if run is None else {"run": run}
        for item in _items(entry, results, newest=newest):
            yield EntryItem(entry=entry.id, item={**item, **began, "at": rfc3339(entry.at_ms)})


def of_run(entries: Sequence[AnyEntry], run: str) -> Sequence[AnyEntry]:
    """Return the entries of one run: from the words that began it to its end."""
    begun: int | None = None
    for place, entry in enumerate(entries):
        match entry:
            case CustomEntry(
                custom_type="tiller.run", data={"run": str(of), "status": str(status)}
            ):
                if of == run and status == "started":
                    begun = place
                elif of == run and begun is not None:
                    return entries[_prompt_index(entries, begun) : place + 1]
            case _:
                pass
    return () if begun is None else entries[_prompt_index(entries, begun) :]


def cursor_before(entries: Sequence[AnyEntry], run: str | None) -> str | None:
    """Return the cursor from which the past of a snapshot is read backwards; None: there is none.

    Args:
        entries: The present branch.
        run: The run that goes on, whose items the snapshot has itself.
    """
    if not entries:
        return None
    own = () if run is None else of_run(entries, run)
    first = next(items(own), None)
    return END if first is None else str(first.item["item"])


def shortened(item: HistoryItem, *, part: str | None) -> HistoryItem:
    """Return an item as it was asked for: `full`, `meta` without its texts, else with long texts cut."""
    if part == "full":
        return item
    if part == "meta":
        return {key: one for key, one in item.items() if key not in {"content", "text", "summary"}}
    out = dict(item)
    for key in ("text", "summary"):
        text = out.get(key)
        if isinstance(text, str):
            out[key] = _cut(text)
    content = out.get("content")
    if isinstance(content, list):
        out["content"] = [_cut_block(one) for one in content]
    return out


def ranged(item: HistoryItem, *, start: int, end: int) -> HistoryItem:
    """Return a part of an item's text, in characters, end exclusive; pictures are left out."""
    content = item.get("content")
    if isinstance(content, list):
        texts = [one["text"] for one in content if isinstance(one, Mapping) and "text" in one]
        whole = "".join(text for text in texts if isinstance(text, str))
        return {**item, "content": [block(Text(text=whole[start:end]))]}
    text = item.get("text")
    return {**item, "text": text[start:end]} if isinstance(text, str) else item


def _prompt_index(entries: Sequence[AnyEntry], place: int) -> int:
    """Step back over the words that were written just before a run's beginning."""
    match entries[place - 1] if place > 0 else None:
        case MessageEntry(message=UserMessage()):
            return place - 1
        case _:
            return place


def _items(
    entry: AnyEntry,
    results: Mapping[tuple[str, str], ToolResultMessage],
    *,
    newest: str | None,
) -> Iterator[HistoryItem]:
    match entry:
        case MessageEntry(message=UserMessage(content=content)):
            yield _message(entry.id, "user", [block(part) for part in content])
        case MessageEntry(message=AssistantMessage() as said):
            yield from _answer(entry.id, said, results)
        case MessageEntry(message=BashMessage() as ran):
            yield _command(entry.id, ran)
        case CustomMessageEntry(display=True, content=content):
            yield _message(entry.id, "custom", [block(part) for part in content])
        case CompactionEntry():
            yield {
                "item": entry.id,
                "kind": "summary",
                "summary": entry.summary,
                "tokensBefore": entry.tokens_before,
            }
        case CustomEntry(
            custom_type="tiller.run", data={"run": str(run), "status": str(status), **more}
        ) if status not in {"started", "completed"}:
            # A run that failed or lost its process can be gone on with; each later one leaves that behind.
            resumable = run == newest and (status == "failed" or more.get("resumable") is True)
            yield {
                "item": entry.id,
                "kind": "end",
                "run": run,
                "status": status,
                "resumable": resumable,
            }
        case BranchSummaryEntry():
            yield {"item": entry.id, "kind": "summary", "summary": entry.summary}
        case _:
            return


def _runs_of_prompts(entries: Sequence[AnyEntry]) -> Mapping[str, str]:
    """Return the run that each prompt began, by the id of the prompt's entry."""
    found: dict[str, str] = {}
    for place, entry in enumerate(entries):
        match entry:
            case CustomEntry(custom_type="tiller.run", data={"run": str(run), "status": "started"}):
                prompt = _prompt_index(entries, place)
                if prompt != place:
                    found[entries[prompt].id] = run
            case _:
                pass
    return found


def _newest_run(entries: Sequence[AnyEntry]) -> str | None:
    for entry in reversed(entries):
        match entry:
            case CustomEntry(custom_type="tiller.run", data={"run": str(run)}):
                return run
            case _:
                pass
    return None


def _message(entry: str, role: str, content: list[JsonValue]) -> HistoryItem:
    return {"item": entry, "kind": "message", "role": role, "content": content}


def _answer(
    entry: str, said: AssistantMessage, results: Mapping[tuple[str, str], ToolResultMessage]
) -> Iterator[HistoryItem]:
    for place, part in enumerate(said.content):
        if isinstance(part, Thinking) and part.text.strip():
            yield {"item": f"{entry}:{place}", "kind": "thought", "text": part.text}
    content: list[JsonValue] = [
        block(part) for part in said.content if isinstance(part, Text | Image)
    ]
    if content or said.stop_reason != "tool_use":
        yield {
            **_message(entry, "assistant", content),
            "model": f"{said.provider}/{said.model}",
            "usage": _usage(said.usage),
            "stopReason": STOP_REASONS.get(said.stop_reason, said.stop_reason),
        }
    for number, call in enumerate(said.tool_calls):
        yield _call(call_item(entry, number), call, results.get((entry, call.id)))


def _call(item: str, call: ToolCall, result: ToolResultMessage | None) -> HistoryItem:
    out: HistoryItem = {
        "item": item,
        "kind": "tool",
        "call": call.id,
        "name": call.name,
        "input": dict(call.arguments),
    }
    if result is None:
        return out
    return {
        **out,
        "status": result.unfinished or ("error" if result.is_error else "ok"),
        "content": [block(part) for part in result.content],
        "details": result.details,
    }


def _command(entry: str, ran: BashMessage) -> HistoryItem:
    failed = ran.exit_code not in {0, None}
    return {
        "item": entry,
        "kind": "tool",
        "call": entry,
        "name": "bash",
        "title": f"! {ran.command}",
        "input": {"command": ran.command},
        "status": "cancelled" if ran.cancelled else "error" if failed else "ok",
        "content": [block(Text(text=ran.output))],
    }


def _usage(used: Usage) -> JsonValue:
    out: dict[str, JsonValue] = {
        "tokens": {
            "in": used.input,
            "out": used.output,
            "cacheRead": used.cache_read,
            "cacheWrite": used.cache_write,
            "reasoning": used.reasoning,
        }
    }
    money = cost(used)
    return out if money is None else {**out, "cost": money}


def _results(entries: Sequence[AnyEntry]) -> Mapping[tuple[str, str], ToolResultMessage]:
    """Find the result of each call: ids are unique within one answer only."""
    found: dict[tuple[str, str], ToolResultMessage] = {}
    answer = ""
    for entry in entries:
        match entry:
            case MessageEntry(message=AssistantMessage()):
                answer = entry.id
            case MessageEntry(message=ToolResultMessage() as result):
                _ = found.setdefault((answer, result.call_id), result)
            case _:
                pass
    return found


def _cut(text: str) -> str:
    if len(text) <= SHOWN_CHARS:
        return text
    return text[:SHOWN_CHARS] + CUT.format(left=len(text) - SHOWN_CHARS)


def _cut_block(one: JsonValue) -> JsonValue:
    if not isinstance(one, Mapping):
        return one
    text = one.get("text")
    return {**one, "text": _cut(text)} if isinstance(text, str) else one
