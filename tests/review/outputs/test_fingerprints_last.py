"""A finding keeps its fingerprint, and so its alert, through edits that have nothing to do with it."""

import json
import random

from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tiller_server.review.findings.fingerprints import fingerprint
from tiller_server.review.outputs import FORMATS

EDITS = 50
SOURCE = "".join(
    f"def step_{number}(items):\n    total = {number}\n    for item in items:\n        total += item\n    return total\n\n\n"
    for number in range(12)
)
WRONG = "    for index in range(len(items) - 1):"
PLANTED = (
    SOURCE
    + f"def planted(items):\n    total = 0\n{WRONG}\n        total += items[index]\n    return total\n"
)


def unrelated_edit(text: str, *, number: int, dice: random.Random) -> str:
    """Change something in another function, or put one in, or take one away, above or below."""
    blocks = text.split("\n\n\n")
    others = [place for place, block in enumerate(blocks) if "planted" not in block]
    place = dice.choice(others)
    match dice.randrange(4):
        case 0:
            blocks.insert(place, f"def added_{number}():\n    return {number}")
        case 1:
            blocks[place] = blocks[place].replace("total", f"sum_{number}")
        case 2:
            blocks[place] += f"\n    # note {number}"
        case _:
            del blocks[place]
    return "\n\n\n".join(blocks)


def test_a_fingerprint_survives_fifty_unrelated_edits() -> None:
    dice = random.Random(12)  # noqa: S311 - the same edits every time
    text = PLANTED
    names: set[str] = set()
    places: set[int] = set()
    for number in range(EDITS):
        lines = text.split("\n")
        line = lines.index(WRONG) + 1
        places.add(line)
        names.add(fingerprint(lines, line=line, category="bug"))
        text = unrelated_edit(text, number=number, dice=dice)
    assert len(names) == 1
    assert len(places) > EDITS / 3, "the edits really move the line"


async def test_an_alert_is_the_same_after_fifty_edits_and_a_new_name(reviewing: Reviewing) -> None:
    repository = reviewing.repository
    repository.commit("base", {"cart.py": SOURCE})
    repository.git("switch", "--quiet", "--create", "change")
    repository.commit("plant", {"cart.py": PLANTED})

    async def alert(path: str) -> tuple[str, int]:
        line = repository.line_of(path, WRONG)
        made = await reviewing.review(
            reports(a_report(path, line, WRONG)), says("It changes things.")
        )
        (result,) = json.loads(FORMATS["sarif"](made))["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == path
        return result["partialFingerprints"]["primaryLocationLineHash"], place["region"][
            "startLine"
        ]

    before = await alert("cart.py")
    dice = random.Random(12)  # noqa: S311 - the same edits every time
    for number in range(EDITS):
        text = unrelated_edit(repository.read("cart.py"), number=number, dice=dice)
        repository.commit(f"edit {number}", {"cart.py": text})
    repository.git("mv", "cart.py", "basket.py")
    repository.commit("rename")
    after = await alert("basket.py")
    assert after[0] == before[0]
    assert after[1] != before[1]
