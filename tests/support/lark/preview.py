"""A page that shows the cards of the adapter as a client draws them, for people who change them.

python -m tests.support.lark.preview cards.html
"""

import html
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from tests.support.lark.samples import samples

COLOURS: Mapping[str, tuple[str, str]] = {
    "blue": ("#e1eaff", "#245bdb"),
    "green": ("#d9f5d6", "#186010"),
    "orange": ("#feead2", "#8f4900"),
    "red": ("#fde2e2", "#b42318"),
    "grey": ("#eff0f1", "#51565d"),
    "neutral": ("#e4e6e9", "#51565d"),
}
STYLE = """
body { background: #f5f6f7; font: 14px/1.5 system-ui, sans-serif; margin: 24px; color: #1f2329 }
main { columns: 3 420px; column-gap: 24px }
section { break-inside: avoid; margin-bottom: 24px }
h2 { font-size: 12px; font-weight: 500; color: #646a73; margin: 0 0 6px }
.card { background: #fff; border: 1px solid #dee0e3; border-radius: 8px; overflow: hidden }
.head { padding: 10px 14px; font-weight: 600; font-size: 16px }
.head small { display: block; font-weight: 400; font-size: 13px; opacity: .85 }
.tag { float: right; font-size: 12px; font-weight: 500; border-radius: 4px; padding: 2px 6px; background: #fff }
.body { padding: 12px 14px; display: flex; flex-direction: column; gap: 8px }
.body p, .body ul, .body ol, .body pre, .body table { margin: 0 0 8px }
.body > div > :last-child { margin-bottom: 0 }
.notation { font-size: 12px; color: #646a73 }
pre { background: #f5f6f7; padding: 8px 10px; border-radius: 6px; overflow: auto; font-size: 13px }
code { font-family: ui-monospace, monospace; background: #f0f1f2; border-radius: 3px; padding: 0 3px }
pre code { padding: 0; background: none }
table { border-collapse: collapse } td, th { border: 1px solid #dee0e3; padding: 3px 8px; text-align: left }
hr { width: 100%; border: 0; border-top: 1px solid #dee0e3; margin: 0 }
.row { display: flex; flex-wrap: wrap; gap: 8px }
button, select { font: inherit; border: 1px solid #d0d3d6; border-radius: 6px; background: #fff; padding: 4px 12px }
.primary { color: #fff; background: #3370ff; border-color: #3370ff } .danger { color: #d83931; border-color: #d83931 }
.foot { padding: 4px 14px; font-size: 12px; color: #8f959e; border-top: 1px dashed #eee }
"""
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def page(cards: Mapping[str, Any]) -> str:
    """Return the page of some cards by name."""
    sections = "".join(
        f"<section><h2>{html.escape(name)}</h2>{_card(card)}</section>"
        for name, card in cards.items()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Cards</title>'
        f"<style>{STYLE}</style><main>{sections}</main></html>"
    )


def _card(card: Any) -> str:
    head = card["header"]
    ground, ink = COLOURS[head["template"]]
    tags = "".join(
        f'<span class="tag" style="color:{COLOURS[tag["color"]][1]}">{_plain(tag["text"])}</span>'
        for tag in head.get("text_tag_list", [])
    )
    detail = f"<small>{_plain(head['subtitle'])}</small>" if "subtitle" in head else ""
    summary = html.escape(card["config"]["summary"]["content"])
    state = "generating… · " if card["config"].get("streaming_mode") else ""
    body = "".join(map(_element, card["body"]["elements"]))
    return (
        f'<div class="card"><div class="head" style="background:{ground};color:{ink}">{tags}'
        f'{_plain(head["title"])}{detail}</div><div class="body">{body}</div>'
        f'<div class="foot">{state}in the list of chats: {summary}</div></div>'
    )


def _element(element: Any) -> str:
    match element["tag"]:
        case "markdown":
            size = "notation" if element["text_size"] == "notation" else "normal"
            return f'<div class="{size}">{MARKDOWN.render(element["content"])}</div>'
        case "column_set":
            inner = (item for column in element["columns"] for item in column["elements"])
            return f'<div class="row">{"".join(map(_element, inner))}</div>'
        case "button":
            return f'<button class="{element["type"]}">{_plain(element["text"])}</button>'
        case "select_static":
            return f"<div><select><option>{_plain(element['placeholder'])}</option></select></div>"
        case "hr":
            return "<hr>"
        case tag:
            raise ValueError(f"the previewer cannot draw {tag}")


def _plain(text: Any) -> str:
    return html.escape(text["content"])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(samples()), encoding="utf-8")
