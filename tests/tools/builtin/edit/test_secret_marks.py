"""A mark never takes a secret's place, and what is shown of hidden signs can be edited."""

import pytest

from agent_core.kernel.errors import ToolError
from agent_core.tools.builtin.edit.match import Replacement, apply_edits
from agent_core.tools.builtin.redaction_marks import check_marks

TOKEN = "ghp_" + "a1B2c3D4e5" * 3


def _edited(text: str, old: str, new: str) -> str:
    return apply_edits(text, [Replacement(old=old, new=new)], path="f").text


def test_the_shown_form_of_hidden_signs_finds_them_and_keeps_them() -> None:
    text = "a = 'x\u202ey'\nb = 1\n"
    assert _edited(text, "a = 'x<U+202E>y'", "a = 'x<U+202E>z'") == "a = 'x\u202ez'\nb = 1\n"
    assert _edited(text, "'x<U+202E>y'", "'xy'") == "a = 'xy'\nb = 1\n"


def test_the_words_themselves_go_before_what_they_mean() -> None:
    assert (
        _edited("say <U+202E> or \u202e\n", "say <U+202E>", "tell <U+202E>")
        == "tell <U+202E> or \u202e\n"
    )


def test_a_mark_in_the_old_text_is_explained() -> None:
    with pytest.raises(ToolError, match="stands for a secret that you are not shown"):
        _ = _edited(f"t = '{TOKEN}'\n", "t = '[redacted:github-token]'", "u")


def test_a_mark_does_not_take_the_place_of_a_secret() -> None:
    with pytest.raises(ToolError, match="leave the secret where it is"):
        _ = _edited(f"t = '{TOKEN}'\n", f"t = '{TOKEN}'", "t = '[redacted:github-token]'")
    with pytest.raises(ToolError, match="Nothing was written"):
        check_marks("KEY=[redacted:secret]\n", before=f"KEY={TOKEN}\n", path="f")


def test_marks_of_ones_own_can_be_written() -> None:
    check_marks("docs say [redacted:secret]", before="docs", path="f")
    check_marks(f"[redacted:secret] {TOKEN}", before=f"[redacted:secret] {TOKEN}", path="f")
    assert _edited("a\n", "a", "[redacted:secret]") == "[redacted:secret]\n"
