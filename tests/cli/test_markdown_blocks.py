"""Markdown that is still being written: each block comes once, whole, however the words were cut."""

import pytest

from tiller_server.cli.terminal.markdown_blocks import MOST_CHARS, MOST_LINES, Blocks

STORY = """# Title

First paragraph
of two lines.

1. one

2. two

   more of two

- other
- list

```python
a = 1

b = 2
```
after the code

~~~
```
not closed by it
~~~

| a | b |
|---|---|
| 1 | 2 |

last"""
BLOCKS = [
    "# Title",
    "First paragraph\nof two lines.",
    "1. one\n\n2. two\n\n   more of two\n\n- other\n- list",
    "```python\na = 1\n\nb = 2\n```\nafter the code",
    "~~~\n```\nnot closed by it\n~~~",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "last",
]


def written(text: str, *, piece: int) -> list[str]:
    blocks = Blocks()
    done = [
        block for at in range(0, len(text), piece) for block in blocks.feed(text[at : at + piece])
    ]
    return [*done, *blocks.finish()]


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
def test_blocks_are_the_same_however_the_words_were_cut(piece: int) -> None:
    assert written(STORY, piece=piece) == BLOCKS


def test_the_tail_is_what_has_come_of_the_block_being_written() -> None:
    blocks = Blocks()
    assert blocks.feed("one\n\ntw") == ["one"] or blocks.tail == "one\n\ntw"
    _ = blocks.feed("o\n\nthree")
    assert blocks.tail.endswith("three")
    _ = blocks.finish()
    assert blocks.tail == ""


def test_code_without_an_end_is_cut_and_opened_again() -> None:
    lines = [f"line {number}" for number in range(MOST_LINES * 3)]
    done = written("\n".join(["```py", *lines, "```", ""]), piece=50)
    assert len(done) > 3
    assert all(block.startswith("```py\n") and block.endswith("\n```") for block in done)
    inside = [line for block in done for line in block.splitlines() if line.startswith("line")]
    assert inside == lines


def test_a_line_without_an_end_is_cut_between_words() -> None:
    text = "word " * (MOST_CHARS // 2)
    done = written(text, piece=4096)
    assert max(map(len, done)) <= MOST_CHARS
    assert " ".join(done).split() == text.split()


def test_a_list_that_never_ends_is_cut_too() -> None:
    text = "".join(f"- item {number}\n" for number in range(MOST_LINES * 4))
    done = written(text, piece=999)
    assert max(len(block.splitlines()) for block in done) <= MOST_LINES
    assert "\n".join(done).splitlines() == text.splitlines()


def test_ten_megabytes_are_cut_in_a_time_that_grows_with_them() -> None:
    text = ("some words that are said again and again\n" * 40 + "\n") * 6_000
    done = written(text, piece=64 * 1024)
    assert len(done) == 6_000
