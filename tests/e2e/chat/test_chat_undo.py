"""`/undo` and `/diff` in `tiller chat`: what a run changed is shown and restored."""

import pytest

from tests.e2e.chat.test_cli_chat import ESCAPE, chat, flowing, leave
from tests.support.clients.server import Ground, calls, says

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_what_a_run_changed_is_shown_and_taken_back(ground: Ground) -> None:
    path = ground.file("shape.py", "area = w * hight\n")
    edit = ("edit", {"path": "shape.py", "edits": [{"oldText": "hight", "newText": "h"}]})
    ground.provider.script([calls(edit), says("Repaired.")])
    with chat(ground) as window:
        window.line("repair it")
        _ = window.until("done · 1 file +1 -1")
        window.line("/changes")
        _ = window.until(lambda picture: picture.count("+area = w * h\n") == 2)
        window.line("/undo")
        _ = window.until("Restored: shape.py")
        assert leave(window) == 0
    assert path.read_text("utf-8") == "area = w * hight\n"


@pytest.mark.parametrize(
    ("typed", "after", "seen"),
    [
        ("1", "area = w * hight\n# mine\n", "Restored: shape.py"),
        ("2", "area = w * hight\n", "Restored: shape.py"),
        (ESCAPE, "area = w * h\n# mine\n", "Nothing was restored."),
    ],
    ids=["merge", "overwrite", "neither"],
)
def test_an_undo_asks_about_a_file_that_the_user_changed_since(
    ground: Ground, typed: str, after: str, seen: str
) -> None:
    path = ground.file("shape.py", "area = w * hight\n\n\n\n")
    edit = ("edit", {"path": "shape.py", "edits": [{"oldText": "hight", "newText": "h"}]})
    ground.provider.script([calls(edit), says("Repaired.")])
    with chat(ground) as window:
        window.line("repair it")
        _ = window.until("done · 1 file +1 -1")
        _ = path.write_text("area = w * h\n\n\n\n# mine\n", "utf-8")
        window.line("/undo")
        _ = window.until("shape.py. Undo the run?")
        window.type(typed if typed == ESCAPE else f"{typed}\r")
        _ = window.until(seen)
        assert leave(window) == 0
    assert path.read_text("utf-8").replace("\n\n\n", "") == after


def test_undo_goes_back_over_several_runs_and_names_what_it_cannot_bring_back(
    ground: Ground,
) -> None:
    _ = ground.file(".gitignore", "/out/\n")
    _ = ground.file("out/model.bin", "trained\n")
    ground.provider.script(
        [
            calls(("bash", {"command": "echo 1 > first"})),
            says("One."),
            calls(("bash", {"command": "echo 2 > second"}), ("bash", {"command": "rm -rf out"})),
            says("Two."),
        ]
    )
    lost = "out (a command deleted it, and no copy is kept of what git ignores)"
    with chat(ground) as window:
        window.line("go")
        _ = window.until("done · 1 file +1 -0")
        window.line("on")
        picture = window.until(lambda picture: picture.count("done · 1 file +1 -0") == 2)
        assert flowing(f"Undo cannot bring back {lost}.done·") in flowing(picture)
        window.line("/changes")
        _ = window.until(lambda picture: flowing(picture).count(flowing(lost)) == 2)
        window.line("/undo")
        picture = window.until("Not restored: out cannot be taken back")
        assert "Restored: second" in picture
        window.line("/undo")
        _ = window.until("Restored: first")
        window.line("/undo")
        _ = window.until("Nothing left to undo.")
        assert leave(window) == 0
    assert "somebody else" not in window.whole
    assert sorted(path.name for path in ground.root.iterdir()) == [".gitignore"]
