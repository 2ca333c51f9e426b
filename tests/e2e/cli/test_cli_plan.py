"""Plans on the command line: `tiller run` prints one and waits, and the conversation asks for an answer."""

import re

import pytest

from tests.e2e.chat.test_cli_chat import chat, leave
from tests.support.clients.server import Ground, calls, says
from tests.support.programs.terminal import tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

TEXT = "# Write the note\n\nOne file, note.txt."
PLAN = calls(("plan", {"markdown": TEXT, "steps": ["Write note.txt"]}))
WORK = calls(("write", {"path": "note.txt", "content": "done\n"}))


def test_a_run_prints_the_plan_and_another_one_carries_it_out_by_its_hash(ground: Ground) -> None:
    ground.provider.script([PLAN, says("Here it is."), WORK, says("Written.")])
    ran = tiller(ground, "run", "--permission", "plan", "Plan a note")
    assert (ran.code, ran.out) == (5, f"{TEXT}\n")
    found = re.search(r"carry it out with: tiller run -r (\w+) --approve-plan (\w{12})\n", ran.err)
    assert found is not None, ran.err
    wrong = tiller(ground, "run", "-r", found[1], "--approve-plan", "0" * 12)
    assert wrong.code == 2
    assert f"revision 1 with the hash {found[2]} waits now" in wrong.err
    beside = tiller(ground, "run", "-r", found[1], "--approve-plan", found[2], "and more")
    assert (beside.code, "leave the prompt out" in beside.err) == (2, True)
    assert not (ground.root / "note.txt").exists()
    done = tiller(ground, "run", "-r", found[1], "--approve-plan", found[2])
    assert (done.code, done.out) == (0, "Written.\n"), done.err
    assert (ground.root / "note.txt").read_text("utf-8") == "done\n"
    again = tiller(ground, "run", "-r", found[1], "--approve-plan", found[2])
    assert again.code == 2
    assert "no plan waits for an answer" in again.err


def test_a_plan_is_changed_and_approved_in_the_conversation(ground: Ground) -> None:
    second = calls(("plan", {"markdown": f"{TEXT}\n\nAnd say so."}))
    turns = [PLAN, says("Here it is."), second, says("Changed."), WORK, says("Written.")]
    ground.configure(permission={"mode": "ask"}, defaultProjectTrust="always")
    ground.provider.script(turns)
    with chat(ground) as window:
        window.line("/plan")
        _ = window.until("No plan waits for an answer.")
        window.line("/permission plan")
        _ = window.until("permission plan")
        window.line("Plan a note")
        _ = window.until("One file, note.txt.")
        _ = window.until("waits for your answer")
        _ = window.until("Here it is.")
        _ = window.until("done ·")
        window.line("/plan And say so.")
        _ = window.until("Changed.")
        window.line("/plan")
        _ = window.until("Carry out revision 2 of the plan?")
        window.line("1")
        _ = window.until("Written.")
        _ = window.until("permission ask")
        assert leave(window) == 0
    assert (ground.root / "note.txt").read_text("utf-8") == "done\n"
