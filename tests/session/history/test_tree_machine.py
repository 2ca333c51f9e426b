"""Random lives of sessions against a plain model: said, steered, summarised, moved, forked, killed, opened again."""

from collections.abc import Sequence

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from agent_core.kernel import EntryId, SessionId
from agent_core.kernel.errors import ForkRefused
from agent_core.session.history.branches import Forked
from agent_core.session.history.tree import TreeView
from tests.session.history.session_world import SessionWorld
from tests.support.harness.sizes import at_size
from tests.support.session.tree_model import Node, TreeModel

pytestmark = [pytest.mark.timeout(at_size(ci=180, campaign=6_000))]

WORDS = st.builds(
    lambda word, times: " ".join([word] * times),
    st.sampled_from(["ja", "漢字", "x y"]),
    st.sampled_from([1, 5, 300]),
)
PLACES = st.integers(0, 60)


def _has_nodes(machine: "SessionMachine") -> bool:
    return bool(machine.model.shown)


def _has_others(machine: "SessionMachine") -> bool:
    return bool(machine.others)


class SessionMachine(RuleBasedStateMachine):  # noqa: PLR0904 - a rule for everything that can be done
    """Does random things with sessions in files, and holds each step against the model."""

    def __init__(self) -> None:
        super().__init__()
        self.world = SessionWorld()
        self.model = TreeModel()
        self.others: dict[SessionId, TreeModel] = {}
        self._said = 0
        self.world.enter(None)

    @override
    def teardown(self) -> None:
        self.world.close()

    @property
    def _tree(self) -> TreeView:
        return self.world.session.tree

    @rule(text=WORDS)
    def prompt(self, text: str) -> None:
        """Say something and have it answered, and whatever still waits after it."""
        text, asked = self._unique(text), self.world.life.asked
        self.world.run(self.world.prompted, text)
        self._answered(text, (), asked)

    @rule(text=WORDS, steered=st.lists(WORDS, max_size=2), followed=st.lists(WORDS, max_size=2))
    def talk_over(self, text: str, steered: Sequence[str], followed: Sequence[str]) -> None:
        """Say more while an answer is coming: inside the run, and after it."""
        text, *more = map(self._unique, (text, *steered, *followed))
        inside, after = more[: len(steered)], more[len(steered) :]
        asked = self.world.life.asked
        self.world.run(self.world.talked_over, text, inside, after)
        self._answered(text, more, asked)

    @rule(keep=st.sampled_from([1, 50, 400, 100_000]))
    def compact(self, keep: int) -> None:
        """Have the older part summarised, if there is anything to summarise."""
        summary = self.world.run(self.world.compacted, keep)
        if summary is not None:
            self.model.say("compaction", summary)

    @rule(which=PLACES, summarize=st.booleans(), label=st.sampled_from([None, "here", "漢 字"]))
    @precondition(_has_nodes)
    def navigate(self, which: int, summarize: bool, label: str | None) -> None:
        """Go on from somewhere else in the tree, with or without a summary of what is left."""
        target, node = self._pick(which)
        stays = target == self.model.shown_leaf
        move = self._tree.navigate
        went = self.world.run(move, EntryId(node.entry), summarize=summarize, label=label)
        assert went.editor_text == self.model.go_to(target)
        assert not went.cancelled
        if went.summary is not None:
            assert summarize
            self.model.say("branch_summary", went.summary)
            target = len(self.model.nodes) - 1
        if label is not None and not stays:
            self.model.labels[target] = label

    @rule(which=PLACES, label=st.sampled_from([None, "", "one", "two\nlines"]))
    @precondition(_has_nodes)
    def mark(self, which: int, label: str | None) -> None:
        """Label a node, or take its label off."""
        target, node = self._pick(which)
        self.world.run(self._tree.label, EntryId(node.entry), label)
        self.model.labels.pop(target, None)
        if label:
            self.model.labels[target] = label.replace("\n", " ")

    @rule(title=st.sampled_from([None, "A name", "名前"]))
    def rename(self, title: str | None) -> None:
        """Name the session, or take its name off."""
        self.world.run(self._tree.rename, title)
        self.model.rename(title)

    @rule(which=PLACES, goes_there=st.booleans())
    @precondition(_has_nodes)
    def fork(self, which: int, goes_there: bool) -> None:
        """Make a session of what was before the user's words; other nodes are refused."""
        _, node = self._pick(which)
        if node.kind != "user":
            with pytest.raises(ForkRefused):
                self.world.run(self._tree.fork, EntryId(node.entry))
            return
        forked = self.world.run(self._tree.fork, EntryId(node.entry))
        assert forked.text == node.text
        self._keep(forked, self.model.branched(node.parent), goes_there=goes_there)

    @rule(goes_there=st.booleans())
    def clone(self, goes_there: bool) -> None:
        """Make a session of the whole branch, if anything was said on it."""
        branch = self.model.branched(self.model.leaf)
        if not branch.says_something:
            with pytest.raises(ForkRefused):
                self.world.run(self._tree.clone)
            return
        self._keep(self.world.run(self._tree.clone), branch, goes_there=goes_there)

    @rule(which=PLACES)
    @precondition(_has_others)
    def switch(self, which: int) -> None:
        """Close the session and open another one."""
        self._switch(list(self.others)[which % len(self.others)])

    @rule()
    def reopen(self) -> None:
        """Close the session and open it again."""
        self._found(self.world.enter(self.world.session.id))

    @rule(text=st.none() | WORDS, steered=st.lists(WORDS, max_size=2))
    def crash(self, text: str | None, steered: Sequence[str]) -> None:
        """Lose the process: while nothing goes on, or in the middle of an answer while words wait."""
        if text is not None:
            text, *more = map(self._unique, (text, *steered))
            self.world.run(self.world.begun, text, more)
            self._prompted(text)
            self.model.waiting += more
        self._found(self.world.die())

    @invariant()
    def the_tree_is_as_it_was_made(self) -> None:
        nodes, model = self._tree.nodes(), self.model
        kinds = [node.role or node.kind for node in nodes]
        assert kinds == [model.nodes[at].kind for at in model.shown]
        model.learn([(node.entry, node.parent, node.label) for node in nodes])
        leaf = model.shown_leaf
        assert self._tree.leaf == (None if leaf is None else model.nodes[leaf].entry)
        assert self._tree.title == model.title

    @invariant()
    def the_branch_is_as_it_was_said(self) -> None:
        assert self.world.branch() == self.model.branch()

    @invariant()
    def the_model_sees_the_newest_summary_and_what_follows(self) -> None:
        self.model.check_context(self.world.context())

    @invariant()
    def what_waits_is_known(self) -> None:
        assert self.world.waiting() == self.model.waiting

    @invariant()
    def files_only_grow_and_every_line_is_an_entry_of_its_own(self) -> None:
        self.world.check_files()

    def _unique(self, text: str) -> str:
        self._said += 1
        return f"{self._said} {text}"

    def _pick(self, which: int) -> tuple[int, Node]:
        shown = self.model.shown
        at = shown[which % len(shown)]
        return at, self.model.nodes[at]

    def _prompted(self, text: str) -> None:
        """Note what is said before the first answer: of the words that waited from before, the first come along."""
        self.model.say("user", text)
        if self.model.waiting:
            self.model.say("user", self.model.waiting.pop(0))

    def _answered(self, text: str, later: Sequence[str], asked: int) -> None:
        """Note what was said: words that waited and words that came later get an answer each, in order."""
        self._prompted(text)
        self.model.say("assistant", self.world.life.answer(asked + 1))
        for number, more in enumerate([*self.model.waiting, *later], start=asked + 2):
            self.model.say("user", more)
            self.model.say("assistant", self.world.life.answer(number))
        self.model.waiting.clear()

    def _keep(self, made: Forked, model: TreeModel, *, goes_there: bool) -> None:
        """Note a new session, which is kept if anything is said in it."""
        assert (made.session is not None) == model.says_something
        if made.session is None:
            return
        self.others[made.session] = model
        if goes_there:
            self._switch(made.session)

    def _switch(self, session: SessionId) -> None:
        if self.model.says_something:
            self.others[self.world.session.id] = self.model
        self.model = self.others.pop(session)
        assert self.world.enter(session)

    def _found(self, kept: bool) -> None:
        """Note that a session was opened again, or that there was nothing to open."""
        assert kept == self.model.says_something
        if not kept:
            self.model = TreeModel()


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(
    max_examples=at_size(ci=60, campaign=5_000), stateful_step_count=at_size(ci=15, campaign=25)
)
