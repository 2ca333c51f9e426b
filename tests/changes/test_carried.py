"""What was moved from a file that stays into one that would go back is found."""

import pytest

from agent_core.changes.revert.moved_text import Going, Staying, carriers, words_of


def going(key: int, lost: str, held: str = "") -> Going:
    return Going(key=key, names=f"g{key}", held=words_of(held), lost=words_of(lost))


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
    staying = [Staying(names="s", taken=words_of(taken))]
    assert [key for key, _ in carriers([going(1, lost)], staying)] == [1] * stays


def test_what_stays_for_that_makes_others_stay() -> None:
    chain = [going(1, lost="first", held="second"), going(2, lost="second"), going(3, lost="third")]
    found = dict(carriers(chain, [Staying(names="s", taken=words_of("first"))]))
    assert found == {
        1: "g1 may hold what was moved there from s, which stays",
        2: "g2 may hold what was moved there from g1, which stays",
    }
