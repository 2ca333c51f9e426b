"""What was moved from a file that stays into one that would go back is found."""

import pytest

from agent_core.changes.revert import Anchor, Candidate, files_with_moved_text, tokens_of


def going(key: int, lost: str, held: str = "") -> Candidate:
    return Candidate(key=key, names=f"g{key}", held=tokens_of(held), lost=tokens_of(lost))


@pytest.mark.parametrize(
    ("taken", "lost", "stays"),
    [
        ("def area", "area", True),
        ("def AREA", "area(w, h)", True),
        ("def area", "volume", False),
        ("面積", "積", True),
        ("a b c", "a b c", False),
        ("", "area", False),
    ],
    ids=["moved", "in other letters", "unrelated", "no blanks", "too short to tell", "nothing"],
)
def test_words_tell_what_was_moved(taken: str, lost: str, stays: bool) -> None:
    staying = [Anchor(names="s", taken=tokens_of(taken))]
    assert [key for key, _ in files_with_moved_text([going(1, lost)], staying)] == [1] * stays


def test_what_stays_for_that_makes_others_stay() -> None:
    chain = [going(1, lost="first", held="second"), going(2, lost="second"), going(3, lost="third")]
    found = dict(files_with_moved_text(chain, [Anchor(names="s", taken=tokens_of("first"))]))
    assert found == {
        1: "g1 may hold what was moved there from s, which stays",
        2: "g2 may hold what was moved there from g1, which stays",
    }
