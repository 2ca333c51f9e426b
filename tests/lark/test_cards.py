"""Every card keeps the rules of its format, whatever its texts are."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core.channels.messaging.port import ApprovalOption, Settlement
from agent_core.kernel.json import JsonObject, encode
from tests.support.lark.card_schema import CardRefused, buttons, check_card, elements, shown_text
from tests.support.lark.preview import page
from tests.support.lark.samples import AT_MS, prompt, samples
from tiller_server.channels.lark.api.json_fields import as_object
from tiller_server.channels.lark.cards.builders import answer_card, approval_card, settled_card
from tiller_server.channels.lark.cards.markdown import pages

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def checked(card: JsonObject) -> dict[str, object]:
    return check_card(encode(card).decode())


@pytest.mark.parametrize("name", list(samples()))
def test_each_card_keeps_the_schema(name: str) -> None:
    assert checked(samples()[name])["schema"] == "2.0"


@given(TEXT, TEXT, TEXT, st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12))
def test_a_card_with_any_texts_keeps_the_schema(
    title: str, body: str, detail: str, options: list[tuple[str, str]]
) -> None:
    asked = prompt(
        title=title,
        body=body * 200,
        detail=detail,
        options=tuple(ApprovalOption(id=key, label=label) for key, label in options),
    )
    checked(approval_card(asked))
    ended = Settlement(label=title[:40], by=detail, at_ms=AT_MS, allowed=True)
    checked(settled_card(asked, ended))
    for pieces in pages(body * 500):
        checked(answer_card(pieces, "completed"))


def test_buttons_have_request_option_and_digest_and_nothing_else() -> None:
    base = {"r": "q1", "h": "9f86d081884c7d65"}
    assert buttons(dict(approval_card(prompt()))) == [
        {**base, "o": "once"}, {**base, "o": "session"}, {**base, "o": "deny"},
    ]  # fmt: skip
    (choice,) = [
        e for e in listed(samples()["question with a list"]) if e["tag"] == "select_static"
    ]
    assert choice["behaviors"] == [{"type": "callback", "value": base}]
    assert [option["value"] for option in choice["options"]] == [f"o{n}" for n in range(10, 18)]


def test_a_settled_card_has_the_same_text_and_no_buttons() -> None:
    card = samples()["allowed"]
    assert [e["tag"] for e in listed(card)] == ["markdown", "hr", "markdown"]
    assert shown_text(json.loads(encode(card))).startswith(prompt().body)
    assert "**Allowed once** by Ada · 2026-11-18" in shown_text(json.loads(encode(card)))


def test_the_answer_by_text_stands_below_the_buttons() -> None:
    assert shown_text(json.loads(encode(approval_card(prompt())))).endswith(
        "Or send `/approve 7f3a once|session|deny`"
    )


def test_the_line_of_the_list_of_chats_is_plain_text() -> None:
    lines = {
        "\n## Done: **two** `files`\nmore": "Done: two files",
        "```py\nx = 1\n```": "py",
        "": "The run ended without a text.",
        "word " * 40: ("word " * 40)[:80],
    }
    for text, line in lines.items():
        card = checked(answer_card(pages(text)[0], "completed"))
        assert as_object(card["config"])["summary"] == {"content": line}


def test_a_body_that_is_larger_than_a_card_is_cut_and_says_so() -> None:
    text = shown_text(json.loads(encode(approval_card(prompt(body="x " * 40_000)))))
    assert "The text is longer than a card and is cut here." in text


def test_colours_show_the_risk() -> None:
    heads = [
        as_object(approval_card(prompt(risk=risk))["header"]) for risk in ("low", "medium", "high")
    ]
    assert [header["template"] for header in heads] == ["blue", "orange", "red"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"tag": "action", "actions": []}, 200861, id="action"),
        pytest.param({"tag": "note", "elements": []}, 230099, id="note"),
        pytest.param({"tag": "hr", "colour": "red"}, 200621, id="unknown-property"),
        pytest.param({"tag": "hr", "element_id": "1st"}, 300301, id="id"),
        pytest.param({"tag": "hr", "element_id": "hint"}, 300301, id="id-twice"),
        pytest.param({"tag": "form", "elements": []}, 11310, id="form"),
    ],
)
def test_the_fake_refuses_what_the_platform_refuses(change: dict[str, object], code: int) -> None:
    card = json.loads(encode(approval_card(prompt())))
    card["body"]["elements"].append(change)
    with pytest.raises(CardRefused) as raised:
        check_card(json.dumps(card))
    assert raised.value.code == code


def listed(card: JsonObject) -> list[dict[str, Any]]:
    body = json.loads(encode(card))["body"]
    return list(elements(body["elements"]))


def test_the_previewer_draws_every_card() -> None:
    drawn = page(samples())
    assert drawn.count('<div class="card">') == len(samples())
    assert "Allow in this session</button>" in drawn
