"""Users and the agent edit the same document at the same time: no word of the user is ever lost or misreported."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.kernel.errors import EditRefused, EditUnverified, StaleText
from agent_core.workspace import FileText
from tests.support.clients.editors import FAST, Window, settled
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_behaviours import EditBehaviour
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk, Json
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Profile
from tests.support.workspace.memory_files import MemoryFiles
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

ROOT = Path("/no/such/ws")
PATH = ROOT / "a.py"
URI = PATH.as_uri()
HASTY = replace(FAST, verify_s=0.02, refused_s=0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One edit of the agent, and what the user types around it: numbers of lines, None for nothing."""

    agent_line: int
    takes_away: bool
    before_read: int | None
    before_apply: int | None
    before_answer: int | None


class Typing:
    """A user who types while an edit is taken in: before the editor does it, and before it answers."""

    def __init__(self, then: EditBehaviour) -> None:
        self.words: list[str] = []
        self.next: Round | None = None
        self._then = then

    def type(self, desk: Desk, at: int | None) -> None:
        if at is None:
            return
        word = f"user-{len(self.words)}"
        self.words.append(word)
        lines = desk.documents[URI].text.count("\n")
        place = {"line": at % (lines + 1), "character": 0}
        edit = {"range": {"start": place, "end": place}, "newText": f"{word}\n"}
        desk.change(URI, [edit])

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        assert self.next is not None
        self.type(editor, self.next.before_apply)
        answers: list[Json] = []
        later = Reply(reply.request, answers.append)
        self._then(editor, params, later)
        self.type(editor, self.next.before_answer)
        for answer in answers:
            if "error" in answer:
                reply.error(answer["error"]["code"], answer["error"]["message"])
            else:
                reply(answer["result"])


SPOTS = st.one_of(st.none(), st.integers(0, 30))
ROUNDS = st.builds(
    Round,
    agent_line=st.integers(0, 30),
    takes_away=st.booleans(),
    before_read=SPOTS,
    before_apply=SPOTS,
    before_answer=SPOTS,
)


@pytest.mark.timeout(at_size(ci=20, campaign=300))
@settings(max_examples=at_size(ci=40, campaign=2000))
@given(
    profile=st.sampled_from([VSCODE, NEOVIM_0_11, HELIX, EGLOT]),
    rounds=st.lists(ROUNDS, min_size=1, max_size=4),
)
async def test_nothing_of_the_user_is_lost_and_nothing_untrue_is_told(
    profile: Profile, rounds: list[Round]
) -> None:
    files = OverlayFiles(MemoryFiles((ROOT,), ROOT, files={PATH: b""}))
    typing = Typing(profile.edits())
    window = Window(profile, edits=typing, timing=HASTY)
    files.attach(window.editor)
    window.desk.open(URI, "".join(f"line {number}\n" for number in range(12)))
    for number, one in enumerate(rounds):
        typing.type(window.desk, one.before_read)
        typing.next = one
        await settled(window)
        base = await files.read(PATH)
        assert isinstance(base, FileText)
        lines = base.text.splitlines(keepends=True)
        at = one.agent_line % len(lines)
        taken = [] if not one.takes_away or lines[at].startswith("user") else [lines.pop(at)]
        mine = f"agent-{number}\n"
        lines.insert(at, mine)
        try:
            written = await files.write(PATH, "".join(lines), base=base)
        except (StaleText, EditRefused):
            await settled(window)
            assert mine not in window.desk.documents[URI].text
            assert all(line in window.desk.documents[URI].text for line in taken)
        except EditUnverified:
            await settled(window)
        else:
            await settled(window)
            there = window.desk.documents[URI].text
            assert mine in there
            assert not any(line in there.splitlines(keepends=True) for line in taken)
            assert written.changed_by_user == (there != "".join(lines))
        text = window.desk.documents[URI].text
        assert all(text.count(word) == 1 for word in (f"{word}\n" for word in typing.words))
        document = window.mirror.get(URI)
        assert document is not None
        assert document.text == text
