"""The rules of a card of JSON 2.0, as the platform applies them.

From the pages "Card JSON 2.0 structure" and its breaking changes: an unknown property is an error; `action` (200861) and
`note` do not exist; ids (300301); 200 elements and 30 KB (300305); a form needs a name (11310).
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

ELEMENT_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,19}")
CARD_BYTES = 30 * 1024
ELEMENTS = 200
SHOWN_CHARS = 10_000
COMMON = {"tag", "element_id", "margin"}
PROPERTIES: Mapping[str, set[str]] = {
    "markdown": {"content", "text_size", "text_align", "icon"},
    "div": {"text", "icon", "width"},
    "plain_text": {"content", "text_size", "text_color", "text_align", "lines"},
    "hr": set(),
    "button": {"text", "type", "size", "width", "behaviors", "disabled", "confirm", "name", "value", "form_action_type", "icon"},
    "column_set": {"columns", "flex_mode", "horizontal_spacing", "horizontal_align", "background_style"},
    "column": {"elements", "width", "weight", "vertical_align", "vertical_spacing", "background_style", "padding"},
    "select_static": {"placeholder", "options", "behaviors", "name", "width", "required", "initial_option", "type"},
    "input": {"name", "placeholder", "required", "max_length", "default_value", "label", "input_type", "rows", "width", "behaviors"},
    "form": {"name", "elements", "direction", "vertical_spacing"},
    "img": {"img_key", "alt", "title"},
    "collapsible_panel": {"expanded", "header", "elements", "border"},
}  # fmt: skip
HEAD = {"title", "subtitle", "template", "text_tag_list", "icon", "padding"}
CONFIG = {
    "streaming_mode", "streaming_config", "summary", "update_multi", "enable_forward", "width_mode", "locales", "style",
    "enable_forward_interaction", "use_custom_translation",
}  # fmt: skip
TEMPLATES = {
    "blue", "wathet", "turquoise", "green", "yellow", "orange", "red", "carmine", "violet", "purple", "indigo", "grey", "default",
}  # fmt: skip
TAG_COLOURS = (TEMPLATES - {"grey", "default"}) | {"neutral"}


class CardRefused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_card(text: str) -> dict[str, Any]:
    """Return the card of a text.

    Raises:
        CardRefused: It breaks a rule.
    """
    if len(text.encode()) > CARD_BYTES:
        raise CardRefused(300305, f"card of {len(text.encode())} bytes")
    try:
        card = json.loads(text)
    except ValueError:
        raise CardRefused(230001, "no JSON") from None
    _check(card.get("schema") == "2.0", 230099, "schema")
    _only(card, {"schema", "config", "header", "body", "card_link"})
    _only(card.get("config", {}), CONFIG)
    _check(card.get("config", {}).get("update_multi", True) is True, 200830, "update_multi")
    _check_header(card.get("header"))
    body = card.get("body", {})
    _only(body, {"elements", "direction", "vertical_spacing", "padding", "horizontal_spacing"})
    found = list(elements(body.get("elements", [])))
    _check(len(found) <= ELEMENTS, 300305, f"{len(found)} elements")
    for element in found:
        _check_element(element)
    ids = [element["element_id"] for element in found if "element_id" in element]
    _check(len(ids) == len(set(ids)), 300301, "ids are not unique")
    return card


def elements(listed: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield all elements, nested ones too."""
    for element in listed:
        yield element
        yield from elements(element.get("elements", []))
        yield from elements(element.get("columns", []))


def shown_text(card: dict[str, Any]) -> str:
    """Return the text that people read."""
    return "".join(shown_texts(card))


def shown_texts(card: dict[str, Any]) -> list[str]:
    """Return the text that people read by element: of each the first 10,000 characters."""
    return [
        element["content"][:SHOWN_CHARS]
        for element in elements(card["body"]["elements"])
        if element["tag"] == "markdown"
    ]


def buttons(card: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the values of the buttons."""
    return [
        element["behaviors"][0]["value"]
        for element in elements(card["body"]["elements"])
        if element["tag"] == "button"
    ]


def _check_header(header: Any) -> None:
    if header is None:
        return
    _only(header, HEAD)
    _check(header["title"].get("tag") in {"plain_text", "lark_md"}, 230099, "title")
    _check(header.get("template", "default") in TEMPLATES, 230099, "template")
    tags = header.get("text_tag_list", [])
    _check(len(tags) <= 3, 230099, "tags")
    for tag in tags:
        _only(tag, {"tag", "text", "color", "element_id"})
        _check(tag.get("color", "neutral") in TAG_COLOURS, 230099, f"color {tag.get('color')}")


def _check_element(element: dict[str, Any]) -> None:
    tag = element.get("tag")
    _check(tag != "action", 200861, "action is not supported in 2.0")
    _check(tag in PROPERTIES, 230099, f"tag {tag}")
    _only(element, PROPERTIES[str(tag)] | COMMON)
    name = element.get("element_id")
    _check(name is None or ELEMENT_ID.fullmatch(name) is not None, 300301, f"id {name}")
    _check(tag != "form" or bool(element.get("name")), 11310, "form without name")
    _check(tag != "markdown" or bool(element.get("content")), 230099, "markdown without content")
    _check(
        element.get("type", "default") in {"default", "primary", "danger", "text"}
        or tag != "button",
        230099,
        "type",
    )
    for behavior in element.get("behaviors", []):
        _only(behavior, {"type", "value", "default_url"})
        _check(behavior.get("type") in {"callback", "open_url"}, 230099, "behavior")


def _only(value: Mapping[str, Any], allowed: set[str]) -> None:
    extra = set(value) - allowed
    _check(not extra, 200621, f"unknown property {sorted(extra)}")


def _check(holds: bool, code: int, message: str) -> None:
    if not holds:
        raise CardRefused(code, message)
