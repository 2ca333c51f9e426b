"""Trust in a workspace: the stored decisions, and whether they still hold for what lies there."""

import difflib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, Literal, cast

import msgspec

from agent_core.kernel import Clock, JsonObject, JsonValue, rfc3339
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.json import as_object, is_object
from agent_core.kernel.private_file import locked, replace_text
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.resources.instructions import NAMES, folders_above
from agent_core.resources.load_result import JsonTextError, read_object
from agent_core.resources.paths import AppPaths
from agent_core.resources.trust.evidence import (
    Above,
    EvidenceTooLarge,
    Marks,
    TrustEvidence,
    gather,
    is_instructions,
    is_program,
    marks,
)

VERSION: Final = 1


class DecisionFile:
    """A JSON file with one object of entries by name. Other content of the file is kept."""

    def __init__(self, path: Path, *, section: str, else_: str) -> None:
        """Read and write one file.

        Args:
            path: Path of the file, which need not exist.
            section: The key of the object of entries.
            else_: The consequence of an unreadable file, for its error, for example "no workspace is trusted".
        """
        self._path = path
        self._section = section
        self._else = else_

    def entries(self) -> JsonObject:
        """Return the entries by name; empty when there is no file.

        Raises:
            ConfigError: The file cannot be read, so its entries are unknown.
        """
        return as_object(self._document().get(self._section))

    def change(self, change: Callable[[JsonObject], JsonObject]) -> None:
        """Replace the entries by what a function makes of them, while nobody else writes.

        Raises:
            ConfigError: It cannot be read or written; it is as it was.
        """
        real = Path(os.path.realpath(self._path))
        try:
            with locked(real):
                document = self._document()
                before = as_object(document.get(self._section))
                after = change(before)
                if after != before:
                    whole = {"version": VERSION, **document, self._section: after}
                    replace_text(real, json.dumps(whole, indent=1, ensure_ascii=True) + "\n")
        except OSError as error:
            message = (
                f"{self._path} cannot be changed ({error.strerror or error}); nothing was changed"
            )
            raise ConfigError(message, path=self._path) from error

    def _document(self) -> JsonObject:
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise self._unreadable(reason or str(error)) from error
        try:
            document = read_object(text)
        except JsonTextError as error:
            place = error.place
            where = f" at line {place.line}, column {place.column}" if place else ""
            why = f"{error}{where}"
            raise self._unreadable(why) from error
        version = document.get("version", VERSION)
        if version != VERSION or isinstance(version, bool):
            why = f"it has version {version!r}; this Tiller knows {VERSION}"
            raise self._unreadable(why)
        return document

    def _unreadable(self, why: str) -> ConfigError:
        message = (
            f"{self._path} cannot be read ({why}), so {self._else}: repair it, or move it away"
        )
        return ConfigError(message, path=self._path)


def texts_of(value: JsonValue) -> Mapping[str, str]:
    """Return the texts of an object by name; values that are not texts are left out."""
    if not is_object(value):
        return {}
    return {name: text for name, text in value.items() if isinstance(text, str)}


TrustChoice = Literal["trusted", "refused"]


class StoredTrustDecision(Value, frozen=True, kw_only=True):
    """The user's decision on a workspace, and the files that they saw then."""

    said: TrustChoice
    at: str
    """RFC 3339."""
    hashes: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    texts: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Small files as they were, to show what has changed."""


class TrustStore:
    """The words about all workspaces of a user."""

    def __init__(self, path: Path) -> None:
        self._file = DecisionFile(path, section="folders", else_="no workspace is trusted")

    def decision(self, root: Path) -> StoredTrustDecision | None:
        """Return the decision on a workspace; None if there is none.

        Raises:
            ConfigError: The file cannot be read, so it is unknown which workspaces are trusted and none is.
        """
        return self.decisions().get(str(root))

    def decisions(self) -> Mapping[str, StoredTrustDecision]:
        """Return everything that was said, by folder; an entry that is not understood counts as nothing.

        Raises:
            ConfigError: As `word`.
        """
        read = {name: _word(entry) for name, entry in self._file.entries().items()}
        return {name: word for name, word in read.items() if word is not None}

    def record(self, root: Path, said: TrustChoice, *, seen: TrustEvidence, at_ms: int) -> None:
        """Store a decision of the user; it replaces the earlier decision on the workspace.

        Raises:
            ConfigError: The file cannot be read or written; it is unchanged.
        """
        made: JsonObject = {
            "said": said,
            "at": rfc3339(at_ms),
            "hashes": dict(seen.hashes),
            "texts": {name: one.text for name, one in seen.files.items() if one.text is not None},
        }

        def change(folders: JsonObject) -> JsonObject:
            before = folders.get(str(root))
            return {**folders, str(root): {**before, **made} if is_object(before) else made}

        self._file.change(change)

    def forget(self, root: Path) -> bool:
        """Forget what was said about a workspace; tells whether there was anything.

        Raises:
            ConfigError: As `say`.
        """
        found = False

        def change(folders: JsonObject) -> JsonObject:
            nonlocal found
            found = str(root) in folders
            return {name: entry for name, entry in folders.items() if name != str(root)}

        self._file.change(change)
        return found


def _word(entry: JsonValue) -> StoredTrustDecision | None:
    if not is_object(entry):
        return None
    said, at = entry.get("said"), entry.get("at")
    if said not in {"trusted", "refused"}:
        return None
    return StoredTrustDecision(
        said="trusted" if said == "trusted" else "refused",
        at=at if isinstance(at, str) else "",
        hashes=texts_of(entry.get("hashes")),
        texts=texts_of(entry.get("texts")),
    )


DefaultTrust = Literal["ask", "always", "never"]
WorkspaceTrustState = Literal["trusted", "refused", "undecided", "changed", "unknown"]
"""`refused`: the user said no. `changed`: they trusted something else. `unknown`: it cannot be told, so it is a no."""
RESTRICTING: Final = frozenset({"policy.json", "settings.json"})
"""Names of files that may forbid something."""
SHOWN_LINES: Final = 200
CODE_LINES: Final = 20_000
"""Of code that would run in us: more than anybody reads, and no more than a client takes."""
FRESH_MS: Final = 2_000
"""Age in milliseconds above which a timestamp is unique; file systems have a limited time resolution."""

log = logging.getLogger(__name__)


class TrustCheckResult(Value, frozen=True, kw_only=True):
    """Result of a trust check of a workspace."""

    state: WorkspaceTrustState
    instructions: tuple[str, ...] = ()
    """Where nothing was said yet: the files that would go into the system prompt, also those above the workspace."""
    others: tuple[str, ...] = ()
    """The other files that would configure us then."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    """Those files among what is new or changed that hold code which would run in us."""
    difference: str = ""
    """How the texts differ from those that were trusted, as a unified diff: of code all of it, of the rest 200 lines."""
    problem: str = ""
    """Why it cannot be told."""

    @property
    def is_trusted(self) -> bool:
        """Whether the workspace may configure us."""
        return self.state == "trusted"

    @property
    def must_ask(self) -> bool:
        """Whether a person should be asked."""
        return self.state in {"undecided", "changed"}


class WorkspaceTrust:
    """The trust in one workspace. Until the first look there is none."""

    def __init__(
        self,
        root: Path,
        *,
        store: TrustStore,
        default: DefaultTrust,
        clock: Clock,
        origin: Path | None = None,
    ) -> None:
        """Create it without a look.

        Args:
            root: The workspace.
            store: The stored decisions.
            default: The answer where nothing was decided.
            clock: Time.
            origin: The folder that a worktree was made from, whose decision applies where there is none of its own.
        """
        self._root = root
        self._origin = root if origin is None else origin
        self._store = store
        self._default: DefaultTrust = default
        self._clock = clock
        self._here: TrustCheckResult | None = None
        """Decision for this process alone."""
        self._seen: TrustEvidence | None = None
        self._marks: Marks | None = None
        self._asked: TrustEvidence | None = None
        self._held: TrustEvidence | None = None
        """Evidence at the time when the workspace was found to be trusted."""
        self._turn = Lock()
        """Held by a look: an older one that ends later would overrule a decision."""
        self.verdict = TrustCheckResult(state="undecided")

    @property
    def root(self) -> Path:
        """The workspace."""
        return self._root

    @property
    def is_trusted(self) -> bool:
        """Whether it was trusted at the last look."""
        return self.verdict.is_trusted

    def begin(self) -> None:
        """Begin nothing: `check` alone is quick."""

    async def check(self) -> TrustCheckResult:
        """Check the files and the decision again. Never raises: an unknown result counts as not trusted."""
        return await run_in_thread(self.check_now)

    async def record(
        self, said: Literal["trusted", "refused"], *, lasting: bool
    ) -> TrustCheckResult:
        """Record the user's decision about the content that the last look saw, and look again.

        Args:
            said: The decision.
            lasting: Whether it is stored for other processes and the next time.

        Raises:
            ConfigError: The decision could not be stored; nothing changed.
        """
        record = partial(self.record_now, said, lasting=lasting)
        return await run_in_thread(record)

    @property
    def above(self) -> frozenset[Path]:
        """The folders above the project whose context files count: those that the user trusts by themselves."""
        return frozenset() if self._held is None else frozenset(self._held.above)

    def content(self, path: Path) -> str | None:
        """Return the SHA-256 of what a file must hold to be what is trusted; None: the user trusts anything.

        For what was not there, or where nothing is trusted, it is empty, which no file has.
        """
        held = self._held
        if self._trusts_any() and (held is None or path.parent not in held.above):
            return None
        if held is None:
            return ""
        # Where nobody is asked about a change, what lies above counts only as it was when its folder was trusted.
        if self._trusts_any() and path not in held.unchanged_above:
            return ""
        return held.content(path)

    def check_now(self) -> TrustCheckResult:
        """Do as `check` does, blocking."""
        with self._turn:
            return self._check()

    def _check(self) -> TrustCheckResult:
        verdict = self._look()
        self._held = self._seen if verdict.is_trusted else None
        self.verdict = verdict
        return verdict

    def record_now(self, said: Literal["trusted", "refused"], *, lasting: bool) -> TrustCheckResult:
        """Do as `record` does, blocking."""
        with self._turn:
            # What came after the user looked is not what they said yes to.
            seen = self._seen if self._seen is not None else self._gathered()
            self._asked = seen
            if lasting:
                self._store.record(self._root, said, seen=seen, at_ms=self._clock.now_ms())
                self._here = None
            else:
                self._here = TrustCheckResult(state=said)
            return self._check()

    def _look(self) -> TrustCheckResult:
        try:
            seen = self._gathered()
            if self._here is not None:
                return self._of_here(self._here, seen)
            if self._trusts_any():
                return TrustCheckResult(state="trusted")
            word = self._store.decision(self._root)
            if word is None and self._origin != self._root:
                word = _inherited(self._store.decision(self._origin), seen)
            return _unsaid(seen, self._default) if word is None else judged(word, seen)
        except (EvidenceTooLarge, OSError, ConfigError) as error:
            return TrustCheckResult(state="unknown", problem=_why(error))
        except Exception as error:
            # Fail closed: whatever is wrong with the check, its answer is no.
            log.exception("the trust of %s could not be checked", self._root)
            problem = f"the check itself failed ({type(error).__name__})"
            return TrustCheckResult(state="unknown", problem=problem)

    def _of_here(self, here: TrustCheckResult, seen: TrustEvidence) -> TrustCheckResult:
        asked = self._asked
        if here.state != "trusted" or asked is None or asked.hashes == seen.hashes:
            return here
        texts = {name: one.text for name, one in asked.files.items() if one.text is not None}
        word = StoredTrustDecision(said="trusted", at="", hashes=asked.hashes, texts=texts)
        return judged(word, seen)

    def _gathered(self) -> TrustEvidence:
        """Read everything when something has changed, else give what was read."""
        above = self._trusted_above()
        now = marks(self._root, above=above)
        if (
            self._seen is None
            or self._seen.above != above
            or now != self._marks
            or self._is_fresh(now)
        ):
            self._seen = None
            self._seen = gather(self._root, above=above)
            self._marks = now
        return self._seen

    def _trusted_above(self) -> Above:
        """Return the folders above the project that hold a context file and are trusted by themselves, with the hashes."""
        folders = folders_above(self._root, NAMES)
        if not folders:
            return {}
        try:
            decisions = self._store.decisions()
        except ConfigError:
            # What was said cannot be read: nothing above counts. Where the word of the workspace is needed, its look fails.
            return {}
        said = {folder: decisions.get(str(folder)) for folder in folders}
        return {
            folder: word.hashes for folder, word in said.items() if word and word.said == "trusted"
        }

    def _trusts_any(self) -> bool:
        """Return whether the workspace counts whatever is in it, so that nobody is asked about a change."""
        return self._default == "always" and self._here is None

    def _is_fresh(self, made: Marks) -> bool:
        """Return whether something changed so lately that a second change may have the same time."""
        newest_ns = max((mark[3] for mark in made), default=0)
        return newest_ns // 1_000_000 > self._clock.now_ms() - FRESH_MS


def _unsaid(seen: TrustEvidence, default: DefaultTrust) -> TrustCheckResult:
    """Return the verdict without a decision of the user; it shows code that would run in full."""
    if default == "never":
        return TrustCheckResult(state="refused")
    names = sorted(seen.files)
    programs = tuple(name for name in names if is_program(name))
    nothing = StoredTrustDecision(said="trusted", at="")
    return TrustCheckResult(
        state="undecided",
        instructions=tuple(name for name in names if is_instructions(name)),
        others=tuple(name for name in names if not is_instructions(name)),
        programs=programs,
        difference=_difference(nothing, seen, programs),
    )


def _inherited(word: StoredTrustDecision | None, seen: TrustEvidence) -> StoredTrustDecision | None:
    """Return a decision on another folder for what is here.

    Files that are not committed there are not here. That counts as a change only for those that may restrict.
    """
    if word is None:
        return None
    hashes = {
        name: hash_
        for name, hash_ in word.hashes.items()
        if name in seen.hashes or Path(name).name in RESTRICTING
    }
    return msgspec.structs.replace(word, hashes=hashes)


def judged(word: StoredTrustDecision, seen: TrustEvidence) -> TrustCheckResult:
    """Compare what was trusted with what is there: pure."""
    if word.said == "refused":
        return TrustCheckResult(state="refused")
    before, now = word.hashes, seen.hashes
    if before == now:
        return TrustCheckResult(state="trusted")
    changed = tuple(
        sorted(name for name in before.keys() & now.keys() if before[name] != now[name])
    )
    added = tuple(sorted(now.keys() - before.keys()))
    removed = tuple(sorted(before.keys() - now.keys()))
    return TrustCheckResult(
        state="changed",
        added=added,
        removed=removed,
        changed=changed,
        programs=tuple(name for name in (*changed, *added) if is_program(name)),
        difference=_difference(word, seen, (*changed, *added, *removed)),
    )


def _difference(word: StoredTrustDecision, seen: TrustEvidence, names: tuple[str, ...]) -> str:
    code: list[str] = []
    rest: list[str] = []
    for name in names:
        (code if is_program(name) else rest).extend(_of_file(name, word, seen))
    for lines, most in ((code, CODE_LINES), (rest, SHOWN_LINES)):
        if len(lines) > most:
            lines[most:] = ["…"]
    return "\n".join((*code, *rest))


def _of_file(name: str, word: StoredTrustDecision, seen: TrustEvidence) -> Iterator[str]:
    before = word.texts.get(name) if name in word.hashes else ""
    one = seen.files.get(name)
    after = "" if one is None else one.text
    if before is None or after is None:
        yield f"{name}: it is no short text, so what changed in it is not shown"
        return
    old, new = before.splitlines(), after.splitlines()
    yield from difflib.unified_diff(old, new, f"trusted/{name}", f"now/{name}", lineterm="")


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        where = cast("object", error.filename)
        return f"{where or 'something'} cannot be read ({error.strerror or error})"
    return str(error)


def origin_of(root: Path, paths: AppPaths) -> Path:
    """Return the folder whose trust and remembered rules apply: that which a worktree was made from, else the folder. Blocking.

    Raises:
        WorktreeRefused, WorktreeUnknown: The folder is where worktrees are, and has no record that can be read.
    """
    worktrees = paths.worktrees.resolve()
    if root == worktrees or not root.is_relative_to(worktrees):
        return root
    from agent_core.workspace.git.worktrees.records import WorktreeRecords  # noqa: PLC0415 - at first use

    inside = root.relative_to(worktrees)
    record = WorktreeRecords(worktrees).load(inside.parts[0])
    # A worktree may have been made from another one.
    return origin_of(Path(record.repository).joinpath(*inside.parts[1:]), paths)
