"""Cards as JSON 2.0; pure.

Rules of the format (page "Card JSON 2.0 structure" of the open platform): an unknown property is an error, the elements
`action` and `note` do not exist, an `element_id` is a letter with up to 19 letters, digits and underscores, unique.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from agent_core.channels.messaging.port import ApprovalPrompt, Settlement
from agent_core.kernel.clock import rfc3339
from agent_core.kernel.json import JsonObject, JsonValue
from tiller_server.channels.lark.cards.markdown import Piece, inert, pages

AnswerState = Literal["running", "completed", "aborted", "failed", "continued"]
"""`continued`: the text goes on in another card."""
BUTTONS: Final = 6
"""Most options that are buttons; more are a list."""
SUMMARY_CHARS: Final = 80
TITLE_CHARS: Final = 120
_HEADS: Final[Mapping[AnswerState, tuple[str, str]]] = {
    "running": ("Working", "blue"),
    "completed": ("Done", "green"),
    "aborted": ("Stopped", "grey"),
    "failed": ("Failed", "red"),
    "continued": ("Continued below", "grey"),
}
_MARKS: Final = re.compile(r"[*`]+|^\s*(?:#+|[-+>]|```\w*)\s")
"""Marks of Markdown, which the list of chats shows as they are."""
_RISKS: Final[Mapping[str, tuple[str, str]]] = {
    "low": ("blue", ""),
    "medium": ("orange", "Medium risk"),
    "high": ("red", "High risk"),
}
EMPTY_TEXTS: Final[Mapping[AnswerState, str]] = {
    "running": "…",
    "completed": "The run ended without a text.",
    "aborted": "The run was stopped before it had a text.",
    "failed": "The run failed before it had a text.",
    "continued": "…",
}


def answer_card(
    pieces: Sequence[Piece], state: AnswerState, *, mark: str = "", is_streaming: bool | None = None
) -> JsonObject:
    """Return the card of an answer.

    Args:
        pieces: One page of its text.
        state: Its state.
        mark: Invisible text by which the message is found again.
        is_streaming: Whether texts of elements can be set alone; None: while the answer runs.
    """
    label, colour = _HEADS[state]
    texts = [inert(piece.content) for piece in pieces]
    if not any(text.strip() for text in texts):
        texts = [EMPTY_TEXTS[state]]
    elements = [_markdown(element_id(place), text) for place, text in enumerate(texts)]
    config: dict[str, JsonValue] = {
        "update_multi": True,
        "summary": {"content": _summary(texts[0] if state != "running" else "", label)},
    }
    if state == "running" if is_streaming is None else is_streaming:
        config["streaming_mode"] = True
        config["streaming_config"] = {
            "print_frequency_ms": {"default": 50},
            "print_step": {"default": 4},
            "print_strategy": "fast",
        }
    return _card(config, _header(label + mark, colour), elements)


def element_id(place: int) -> str:
    """Return the id of the element of a piece, counted from 0."""
    return f"text_{place}"


def approval_card(prompt: ApprovalPrompt, *, mark: str = "") -> JsonObject:
    """Return the card of an approval with its buttons."""
    colour, risk = _RISKS[prompt.risk]
    options = "|".join(option.id for option in prompt.options)
    hint = f"Or send `/approve {prompt.code} {options}`"
    elements = [
        *_prompt_elements(prompt),
        _choice(prompt),
        _markdown("hint", hint, text_size="notation"),
    ]
    header = _header(prompt.title + mark, colour, detail=prompt.detail, tag=(risk, colour))
    return _card(_still(f"Answer needed: {prompt.title}"), header, elements)


def settled_card(prompt: ApprovalPrompt, settlement: Settlement) -> JsonObject:
    """Return the card of an approval that was answered: the same text without buttons."""
    colour = "green" if settlement.allowed else "grey"
    by = f" by {inert(settlement.by)}" if settlement.by else ""
    at = rfc3339(settlement.at_ms)[:16].replace("T", " ")
    line = f"**{inert(settlement.label)}**{by} · {at} UTC"
    elements = [*_prompt_elements(prompt), {"tag": "hr"}, _markdown("outcome", line)]
    header = _header(prompt.title, colour, detail=prompt.detail, tag=(settlement.label, colour))
    return _card(_still(f"{settlement.label}: {prompt.title}"), header, elements)


def _prompt_elements(prompt: ApprovalPrompt) -> list[JsonObject]:
    texts = [inert(piece.content) for piece in pages(prompt.body)[0] if piece.content.strip()]
    if len(pages(prompt.body)) > 1:
        texts.append("*The text is longer than a card and is cut here.*")
    return [_markdown(f"body_{place}", text) for place, text in enumerate(texts)]


def _choice(prompt: ApprovalPrompt) -> JsonObject:
    base = {"r": prompt.request, "h": prompt.digest}
    if len(prompt.options) > BUTTONS:
        return {
            "tag": "select_static",
            "element_id": "choice",
            "placeholder": _plain("Choose"),
            "options": [
                {"text": _plain(option.label), "value": option.id} for option in prompt.options
            ],
            "behaviors": [{"type": "callback", "value": base}],
        }
    columns: list[JsonObject] = [
        {
            "tag": "column",
            "width": "auto",
            "elements": [
                {
                    "tag": "button",
                    "element_id": f"option_{place}",
                    "text": _plain(option.label),
                    "type": option.style,
                    "behaviors": [{"type": "callback", "value": {**base, "o": option.id}}],
                }
            ],
        }
        for place, option in enumerate(prompt.options)
    ]
    return {
        "tag": "column_set",
        "element_id": "choice",
        "flex_mode": "flow",
        "horizontal_spacing": "8px",
        "columns": columns,
    }


def _card(config: JsonObject, header: JsonObject, elements: Sequence[JsonObject]) -> JsonObject:
    return {
        "schema": "2.0",
        "config": config,
        "header": header,
        "body": {"direction": "vertical", "vertical_spacing": "8px", "elements": elements},
    }


def _still(summary: str) -> JsonObject:
    return {"update_multi": True, "summary": {"content": _summary(summary, summary)}}


def _header(
    title: str, colour: str, *, detail: str = "", tag: tuple[str, str] = ("", "")
) -> JsonObject:
    header: dict[str, JsonValue] = {"title": _plain(title), "template": colour}
    if detail:
        header["subtitle"] = _plain(detail[:TITLE_CHARS])
    text, tag_colour = tag
    if text:
        # Tags have other names of colours than heads.
        shade = "neutral" if tag_colour == "grey" else tag_colour
        header["text_tag_list"] = [{"tag": "text_tag", "text": _plain(text), "color": shade}]
    return header


def _markdown(identifier: str, text: str, *, text_size: str = "normal") -> JsonObject:
    return {"tag": "markdown", "element_id": identifier, "content": text, "text_size": text_size}


def _plain(text: str) -> JsonObject:
    return {"tag": "plain_text", "content": text}


def _summary(text: str, otherwise: str) -> str:
    """Return the line that the list of chats shows."""
    lines = (_MARKS.sub("", line).strip() for line in text.splitlines())
    return (next(filter(None, lines), "") or otherwise)[:SUMMARY_CHARS]
