"""The tree of a session as clients see it, and the hooks that are asked before it is left."""

from collections.abc import Mapping, Sequence

from agent_core.events import EntryLabelled, SessionTitle
from agent_core.hooks import HookRunner, SessionNamed
from agent_core.kernel import EntryId
from agent_core.session.context import EventPublisher
from agent_core.session.history.branches import Branches, BranchTree, Forked, Forks, Navigated
from agent_core.session.history.entries import (
    TreeNode,
    label_entry,
    labels_of,
    name_entry,
    tree_nodes,
)
from agent_core.session.history.recorder import Recorder
from agent_core.session.history.tree_hooks import SummaryWish
from agent_core.session.runs.executor import RunStarter
from agent_core.transcript.entries import AnyEntry, Header, WholeEntry


class TreeView:
    """Everything that was ever said in a session, its labels and its title, and the way from one branch to another.

    A session object stays one session: a fork or clone is opened like any other.
    """

    def __init__(
        self,
        tree: BranchTree,
        *,
        branches: Branches,
        forks: Forks,
        recorder: Recorder,
        publisher: EventPublisher,
        hooks: HookRunner,
        starter: RunStarter,
    ) -> None:
        self._tree = tree
        self._branches = branches
        self._forks = forks
        self._recorder = recorder
        self._publisher = publisher
        self._hooks = hooks
        self._starter = starter

    @property
    def leaf(self) -> EntryId | None:
        """Where the conversation goes on: the last entry of the present branch that `nodes` gives; None: at the beginning."""
        return self._tree.leaf

    @property
    def title(self) -> str | None:
        """The session's name; None: it has none."""
        return self._recorder.transcript.title

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """All entries of all branches, in the order in which they were written; of old ones the body may lie on the disk alone."""
        return tuple(self._recorder.transcript.entries)

    @property
    def header(self) -> Header:
        """The first line of the session's file: format, id, time, folder, parent."""
        return self._recorder.header

    @property
    def labels(self) -> Mapping[EntryId, str]:
        """The label in force of each entry that has one."""
        labels = labels_of(self._recorder.transcript.entries)
        return {target: entry.label for target, entry in labels.items() if entry.label}

    def path(self, entry: EntryId) -> tuple[AnyEntry, ...]:
        """Return the entries from the beginning up to an entry, which is the last of them.

        Raises:
            EntryUnknown: There is no such entry.
        """
        return self._recorder.transcript.path(self._tree.get_entry(entry).id)

    async def load(self, entries: Sequence[AnyEntry]) -> tuple[WholeEntry, ...]:
        """Return entries of the session with their bodies.

        Raises:
            StorageError: The file cannot be read.
        """
        return await self._recorder.load(entries)

    def nodes(self) -> tuple[TreeNode, ...]:
        """Return all entries of all branches that people would want to see, in the order in which they were written.

        It takes some microseconds for each entry: of a very long session ask in a worker thread, which is safe.
        """
        return tree_nodes(self._recorder.transcript)

    async def fork(self, entry: EntryId, *, title: str | None = None) -> Forked:
        """Make a new session of everything before a message of the user, whose words come back.

        This session stays as it is. Labels come along; words that wait do not.

        Args:
            entry: The message.
            title: Names the new session; None: it keeps this one's name, an empty one takes it off.

        Raises:
            EntryUnknown: There is no such entry.
            ForkRefused: It is no message of the user.
            SessionBusy: A run, a compaction or a move is going on.
            StorageError: The new session cannot be written.
        """
        self._starter.check_open()
        return await self._forks.fork(entry, title=title)

    async def clone(self, *, title: str | None = None) -> Forked:
        """Make a new session of the whole present branch.

        Args:
            title: As for `fork`.

        Raises:
            ForkRefused: Nothing has been said on it.
            SessionBusy: A run, a compaction or a move is going on.
            StorageError: The new session cannot be written.
        """
        self._starter.check_open()
        return await self._forks.clone(title=title)

    async def navigate(
        self,
        target: EntryId,
        *,
        summarize: bool = False,
        instructions: str | None = None,
        replace_instructions: bool = False,
        label: str | None = None,
    ) -> Navigated:
        """Continue from another entry; nothing is lost, and the model and thinking level of that branch are in force.

        From a message of the user, or of a program, the conversation continues before it, and its text is returned.
        At the present leaf nothing happens. Queued messages stay; prompts during the move wait until it is over.
        `abort` and cancellation of the caller stop an active summary: then nothing has moved.

        Args:
            target: The entry to continue from.
            summarize: The model summarises the branch that is left, from the leaf up to the common ancestor.
            instructions: The focus of the summary.
            replace_instructions: The instructions replace the usual ones.
            label: Label of the summary, or of the target when there is no summary.

        Raises:
            EntryUnknown: There is no such entry.
            SessionBusy: A run, a compaction or another move is going on.
            ModelUnknown: There is no usable model for the summary.
            ProviderError: There is no summary; nothing has moved.
            StorageError: The move cannot be written; nothing has moved.
        """
        self._starter.check_open()
        wish = SummaryWish(instructions=instructions, replaces=replace_instructions)
        return await self._branches.navigate(
            target, wish=wish if summarize else None, label=_one_line(label)
        )

    async def label(self, entry: EntryId, label: str | None) -> None:
        """Mark an entry; an empty label or None takes the mark off.

        Raises:
            EntryUnknown: There is no such entry.
            StorageError: It cannot be written; the label is as it was.
        """
        self._starter.check_open()
        _ = self._tree.get_entry(entry)
        text = _one_line(label)
        there = labels_of(self._recorder.transcript.entries).get(entry)
        if text != (None if there is None else there.label):
            _ = await self._recorder.accept(label_entry(entry, text))
            self._publisher.publish(EntryLabelled(entry=entry, label=text))

    async def rename(self, title: str | None) -> None:
        """Name the session; an empty title or None takes the name off.

        Raises:
            StorageError: It cannot be written; the title is as it was.
        """
        self._starter.check_open()
        text = _one_line(title)
        if text != self.title:
            _ = await self._recorder.accept(name_entry(text))
            self._publisher.publish(SessionTitle(title=text))
            _ = await self._hooks.ask(SessionNamed(name=text))


def _one_line(text: str | None) -> str | None:
    """Return a text as the file holds it: words with one blank between; None: there are none."""
    return None if text is None else " ".join(text.split()) or None
