"""A branch as a Markdown document that people want to read, and that its content cannot break."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from agent_core.kernel import EntryId, ToolCallId
from agent_core.messages import (
    BashMessage,
    Cost,
    Image,
    StopReason,
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
    ContextEditEntry,
    CustomMessageEntry,
    LabelEntry,
    ModelChange,
    SessionNameEntry,
    ThinkingChange,
)
from agent_core.transcript.entries import ColdEntry, LineLocation, UsageEntry
from agent_core.transcript.export.markdown_document import fenced, markdown, tamed
from tests.support.hostile.hostile_texts import HOSTILE
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    header,
    result,
    user,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUg=="


WHOLE_BRANCH = """\
# Reading \\# one

- **Session**: `s1`
- **Started**: 2026-01-01 00:00:00 UTC
- **Folder**: `/w/project`
- **Model**: `lab/m`
- **Continues**: `/old.jsonl`

## User · 2026-01-01 00:00:00 UTC

Please *read* it.

## Assistant · m · 2026-01-01 00:00:00 UTC

<details>
<summary>Thinking</summary>

I should look.

</details>

Let me see.

**Tool call: `read`**

```json
{
  "path": "a.py",
  "limit": 3
}
```

**Tool call: `write`**

```json
{
  "path": "b.py"
}
```

`content`:

```
one
two
```

**Result of read**

```
text of a
```

**Failed: write**

```
no such file
```

## Assistant · m · 2026-01-01 00:00:00 UTC · “done”

It says:

```py
x = 1
```

## Usage of this branch

| | |
| --- | ---: |
| Input tokens | 1,200 |
| Output tokens | 34 |
| Read from the cache | 5 |
| Cost | $0.0125 |
"""


def test_a_whole_branch_reads_like_this() -> None:
    usage = Usage(input=1200, output=34, cache_read=5, cost=Cost(input=0.01, output=0.0025))
    path: list[AnyEntry] = [
        *chain(
            user("Please *read* it."),
            assistant(
                Thinking(text="I should look."),
                "Let me see.",
                call("read", {"path": "a.py", "limit": 3}),
                call("write", {"path": "b.py", "content": "one\ntwo\n"}, call_id="c2"),
                stop_reason="tool_use",
                usage=usage,
            ),
            result("text of a\n"),
            replace(result("no such file", call_id="c2", is_error=True), tool_name="write"),
            assistant("It says:\n\n```py\nx = 1\n```"),
        ),
        LabelEntry(
            id=EntryId("l"), parent=EntryId("e5"), at_ms=AT_MS, target=EntryId("e5"), label="done"
        ),
        SessionNameEntry(id=EntryId("n"), parent=EntryId("l"), at_ms=AT_MS, name="Reading # one"),
    ]
    assert markdown(replace(header(), parent_session="/old.jsonl"), path) == WHOLE_BRANCH


def body(path: Sequence[AnyEntry]) -> str:
    """Give what stands behind the facts at the top."""
    return markdown(header(), path).split("- **Folder**: `/w/project`\n", 1)[1].strip()


def test_what_else_happened_is_told() -> None:
    path: list[AnyEntry] = [
        ModelChange(id=EntryId("m"), parent=None, at_ms=AT_MS, provider="lab", model="m_1"),
        ThinkingChange(id=EntryId("t"), parent=EntryId("m"), at_ms=AT_MS, level="high"),
        CustomMessageEntry(
            id=EntryId("c"),
            parent=EntryId("t"),
            at_ms=AT_MS,
            custom_type="linter",
            content=(Text(text="two faults"),),
        ),
        CustomMessageEntry(
            id=EntryId("d"),
            parent=EntryId("c"),
            at_ms=AT_MS,
            custom_type="linter",
            content=(Text(text="for the model only"),),
            display=False,
        ),
        BranchSummaryEntry(
            id=EntryId("b"), parent=EntryId("d"), at_ms=AT_MS, from_id="x", summary="Tried it."
        ),
        ContextEditEntry(
            id=EntryId("e"),
            parent=EntryId("b"),
            at_ms=AT_MS,
            target=EntryId("c"),
            replacement=None,
        ),
        compaction("k", parent="e", first_kept="c", summary="All was well."),
    ]
    assert (
        body(path)
        == """\
*Model: lab/m\\_1*

*Thinking level: high*

## linter · 2026-01-01 00:00:00 UTC

two faults

## Summary · 2026-01-01 00:00:00 UTC

*From here on the model knows a branch that was left by this summary.*

Tried it.

*An earlier message is left out of what the model is shown from here on.*

*From here on the model knows what came before by this summary (1,000 tokens were summarised, but for what was kept).*

All was well."""
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(
            BashMessage(command="ls", output="a\nb\n", exit_code=0, at_ms=AT_MS),
            "**Command (exit code 0)**\n\n```sh\n$ ls\n```\n\n```\na\nb\n```",
            id="done",
        ),
        pytest.param(
            BashMessage(
                command="x",
                output="",
                exit_code=None,
                cancelled=True,
                truncated=True,
                exclude_from_context=True,
                at_ms=AT_MS,
            ),
            "**Command (cancelled, output cut, not told to the model)**\n\n```sh\n$ x\n```\n\n*(no output)*",
            id="cancelled",
        ),
    ],
)
def test_a_command_of_the_user_is_told(message: BashMessage, expected: str) -> None:
    assert body(chain(message)).endswith(expected)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("error", "*The answer failed: it broke*"),
        ("aborted", "*The answer was aborted.*"),
        ("length", "*The answer was cut off by the limit on its length.*"),
    ],
)
def test_an_answer_that_did_not_end_well_says_so(stop: StopReason, expected: str) -> None:
    said = replace(assistant("half", stop_reason=stop), error="it broke")
    assert body(chain(said)).endswith(f"half\n\n{expected}")


def test_broken_arguments_are_shown_as_they_came() -> None:
    broken = ToolCall(
        id=ToolCallId("c"), name="read", arguments={}, arguments_error='not JSON: {"path'
    )
    assert '```\nnot JSON: {"path\n```' in body(chain(assistant(broken)))


def test_a_picture_is_noted_or_embedded() -> None:
    path = chain(UserMessage(content=(Image(mime="image/png", data=PIXEL),), at_ms=AT_MS))
    assert "*(image, image/png)*" in markdown(header(), path)
    assert f"![image](data:image/png;base64,{PIXEL})" in markdown(header(), path, images="embedded")
    odd = chain(UserMessage(content=(Image(mime="image/svg+xml", data=PIXEL),), at_ms=AT_MS))
    assert "*(image, image/svg+xml)*" in markdown(header(), odd, images="embedded")


@pytest.mark.parametrize("ticks", range(7))
def test_a_fence_is_longer_than_what_it_holds(ticks: int) -> None:
    text = f"before\n{'`' * ticks}\nafter\n~~~"
    (block,) = MarkdownIt("commonmark").parse(fenced(text, language="txt"))
    assert (block.type, block.content, block.info) == ("fence", f"{text}\n", "txt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b and List<int> x", "a < b and List\\<int> x"),
        ("`<b>` <b> ``<i> ` <i>`` <u>", "`<b>` \\<b> ``<i> ` <i>`` \\<u>"),
        ("```\n<b>\n```\n<b>", "```\n<b>\n```\n\\<b>"),
        ("```\n<b>", "```\n<b>\n```"),
        ("~~~~\n~~~\n```\n<b>", "~~~~\n~~~\n```\n<b>\n~~~~"),
        ("``` a`b\n<b>", "``` a`b\n\\<b>"),
        ("a ` b\n\n<i> ` c", "a ` b\n\n\\<i> ` c"),
        ("\\<b> \\\\<b> \\` <b> `", "\\<b> \\\\\\<b> \\` \\<b> `"),
        ("\\`` ` <x> ` `", "\\`` ` \\<x> ` `"),
        ("<https://x.example> <mailto:a@b.example>", "<https://x.example> <mailto:a@b.example>"),
        ("", ""),
        ("\n", "\n"),
    ],
)
def test_html_in_words_is_shown_and_code_stays_code(text: str, expected: str) -> None:
    assert tamed(text) == expected


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_bring_no_html_and_end_where_they_end(text: str) -> None:
    image = Image(mime=text, data=text)
    path: list[AnyEntry] = [
        *chain(
            UserMessage(content=(Text(text=text), image), at_ms=AT_MS),
            assistant(Thinking(text=text), text, call(text, {text: text, "x": f"{text}\n"})),
            ToolResultMessage(
                call_id=ToolCallId("c"), tool_name=text, content=(Text(text=text),), at_ms=AT_MS
            ),
            BashMessage(command=text, output=text, exit_code=0, at_ms=AT_MS),
        ),
        compaction("k", parent="e4", first_kept="e1", summary=text),
        LabelEntry(
            id=EntryId("l"), parent=EntryId("k"), at_ms=AT_MS, target=EntryId("e2"), label=text
        ),
        *chain(user("the end"), after="l", first=9),
    ]
    document = markdown(replace(header(), cwd=text), path, title=text, images="embedded")
    document.encode("utf-8")
    tokens = MarkdownIt("commonmark").parse(document)
    headings = [
        tokens[place + 1].content for place, one in enumerate(tokens) if one.type == "heading_open"
    ]
    assert headings[-1].startswith("User · ")
    blocks = [one.content for one in tokens if one.type == "html_block"]
    assert set(blocks) == {"<details>\n<summary>Thinking</summary>\n", "</details>\n"}
    inline = [part for one in tokens for part in one.children or ()]
    assert [part.content for part in inline if part.type == "html_inline"] == []


@pytest.mark.parametrize("unit", ["`", "` ``", "<a", "```\n", "\\`", "\n\n", "<!--", "a`<b>\n"])
def test_a_large_text_is_written_soon(unit: str) -> None:
    text = unit * (2_000_000 // len(unit))
    began = time.process_time()
    markdown(header(), chain(user(text), assistant(text), result(text)))
    assert time.process_time() - began < 10


def test_neither_library_of_the_extra_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    monkeypatch.setitem(sys.modules, "nh3", None)
    assert "hello" in markdown(header(), chain(user("hello")))


def test_what_was_used_beside_the_conversation_counts() -> None:
    beside = UsageEntry(
        id=EntryId("u"),
        parent=EntryId("e2"),
        at_ms=AT_MS,
        kind="title",
        provider="lab",
        model="s",
        usage=Usage(input=10, cost=Cost(input=0.5)),
    )
    paid = Usage(input=1, cost=Cost(input=0.25))
    document = markdown(header(), [*chain(user("q"), assistant("a", usage=paid)), beside])
    assert "| Input tokens | 11 |\n| Cost | $0.7500 |" in document


def test_an_entry_without_its_body_is_not_passed_over() -> None:
    cold = ColdEntry(
        id=EntryId("c"),
        parent=None,
        at_ms=AT_MS,
        kind="message",
        place=LineLocation(offset=0, size=1),
    )
    with pytest.raises(TypeError, match="load it first"):
        markdown(header(), [cold])
