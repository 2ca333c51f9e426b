"""Texts about a restore, for the user and the model; pure."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_core.changes import Change
from agent_core.changes.revert.plan import why_lost
from agent_core.events import Answers, QuestionLine, QuestionOption
from agent_core.session.changes.checkpoints.restore import Preview, Skipped

RestoreScope: TypeAlias = Literal["files", "conversation", "both"]
NAMES_SHOWN: Final = 40
NAMES_ASKED: Final = 3
"""A dialog has room for so many."""
NAMES_LISTED: Final = 10
"""A line of a terminal or a panel has room for so many."""
LINE: Final = "restore"
BACK: Final = "back"
KEEP: Final = "keep"
NOTHING: Final = (
    "Nothing of what the last run changed can be taken back: it is as it was, or was changed since."
)


def question(shown: Sequence[Preview]) -> QuestionLine | None:
    """Ask whether files are to go back, saying which stay; None: none would."""
    back = [one.path.name for one in shown if one.status == "agentOnly" and one.why is None]
    stay = [one.path.name for one in shown if one.status in {"userEdited", "missing"} or one.why]
    if not back:
        return None
    text = f"Take back what the last run changed in {_short(back)}?"
    if stay:
        text += f" {_short(stay)} {'was' if len(stay) == 1 else 'were'} changed since, or cannot be taken back, and will stay."
    return QuestionLine(
        id=LINE,
        text=text,
        kind="choice",
        options=(
            QuestionOption(id=BACK, label="Take back"),
            QuestionOption(id=KEEP, label="Leave as it is"),
        ),
        default=KEEP,
    )


def agreed(answers: Answers) -> bool:
    """Return whether somebody said that files are to go back."""
    return (answers.answers or {}).get(LINE) == BACK


def restored_message(restored: Collection[Path], skipped: Sequence[Skipped]) -> str:
    """Return the result of a restore as text for people: the restored and the skipped files."""
    said = f"Taken back: {_names(restored)}." if restored else "Nothing had to be taken back."
    return f"{said} Left: {'; '.join(_whys(skipped))}." if skipped else said


def nothing_restored_message(skipped: Sequence[Skipped]) -> str:
    """Return why no file could be taken back."""
    return f"no file was restored: {'; '.join(_whys(skipped))}"


def model_note(
    restored: Collection[Path],
    skipped: Sequence[Skipped],
    scope: RestoreScope,
    changes: Sequence[Change],
) -> str | None:
    """Return the note for the model on how files and conversation differ after a restore; None: they do not."""
    left = _names([one.path for one in skipped])
    if scope == "files" and restored:
        said = (
            f"[The user took files back to how they were earlier: {_names(restored)}. What was changed in them "
            "since then is gone; read them again before you rely on what they hold.]"
        )
        return f"{said}\n[Left as they were: {left}.]" if left else said
    if scope == "conversation" and changes:
        names = _names(dict.fromkeys(one.path for one in changes))
        return (
            "[The user took the conversation back to here, and not the files. They may hold changes that you do not know "
            f"of: {names}. Read them before you rely on what they hold.]"
        )
    if scope == "both" and left:
        return (
            "[The user took the conversation and the files back to here. These files could not be taken back and hold "
            f"later changes: {left}.]"
        )
    return None


def unrecoverable_note(changes: Sequence[Change], root: Path) -> str | None:
    """Name what commands deleted or overwrote and no restore brings back; None: there is nothing of the kind."""
    by_why: dict[str, dict[str, None]] = {}
    for change in changes:
        if change.is_lost:
            path = change.source or change.path
            name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
            _ = by_why.setdefault(why_lost((change,)), {}).setdefault(name)
    if not by_why:
        return None
    groups = [f"{_listed(list(names))} ({why})" for why, names in by_why.items()]
    return f"Undo cannot bring back {'; '.join(groups)}."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMES_LISTED
    return ", ".join(names[:NAMES_LISTED]) + (f" and {more} more" if more > 0 else "")


def _whys(skipped: Sequence[Skipped]) -> Sequence[str]:
    return list(dict.fromkeys(one.why for one in skipped))[:NAMES_SHOWN]


def _names(paths: Collection[Path]) -> str:
    shown = [str(path) for path in paths][:NAMES_SHOWN]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _short(names: Sequence[str]) -> str:
    more = len(names) - NAMES_ASKED
    return ", ".join(names[:NAMES_ASKED]) + (f" and {more} more" if more > 0 else "")
