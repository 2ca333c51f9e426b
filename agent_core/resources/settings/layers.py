"""Layers of settings: read, checked, guarded and merged."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import anyio.to_thread
from pydantic import ValidationError

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, encode, is_object
from agent_core.kernel.unknown_keys import NOTES, did_you_mean
from agent_core.kernel.values import Value
from agent_core.resources.load_result import JsonTextError, JsonTextPosition, find_key, read_object
from agent_core.resources.settings.values import SettingsValues, setting_keys

LADDERS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("permission", "mode"): ("plan", "ask", "auto", "yolo"),
    ("permission", "fallback"): ("deny", "rules", "ask"),
    ("sandbox",): ("auto", "off"),
    ("defaultProjectTrust",): ("never", "ask", "always"),
}
"""Keys whose values go from strict to loose."""

BUDGETS = ("usd", "tokens", "turns", "minutes", "dayUsd", "folderDayUsd")
CEILINGS = frozenset((("maxTurns",), *(("budgets", name) for name in BUDGETS)))
"""Keys that limit spending: null is no limit."""

USER_ONLY = frozenset(
    {
        ("workspace",),
        *(("bash", "prefix"), ("bash", "shellPath"), ("extensions",), ("extensionConflicts",)),
        *(("containment", "passVariables"), ("containment", "readPaths")),
        ("containment", "hidePaths"),
        *(("web", "privateHosts"), ("web", "search"), ("web", "searchUrl")),
        ("memory", "consolidateAfterMinutes"),
        *(("telemetry", "enabled"), ("telemetry", "endpoint"), ("telemetry", "content")),
        *(("notify", "url"), ("notify", "tokenVariable")),
        *(("notify", "requestAfterS"), ("notify", "runAfterS")),
        *(("attachments", "store"), ("attachments", "endpoint")),
        *(("attachments", "region"), ("attachments", "linkS")),
    }
)
"""Keys that name what is run (a command that the policy allows must stay that command), or what commands and requests reach of the user's, or where it is sent."""

NEVER_EDITOR = frozenset({("skills",), ("prompts",)})
"""Keys that name instructions: a trusted project's are pinned, what an editor finds in a folder is not."""

GUARDED = frozenset(LADDERS) | CEILINGS | USER_ONLY | NEVER_EDITOR

USER_GROUPS = ("extensionFlags", "channels")
"""Groups for the user's own settings only: switches of extensions, of which one may turn off what an extension guards, and who may
use the agent from a chat."""
AGENTS = "externalAgents"
"""Key of programs by name: a trusted project may add some, not change those of the user."""

Judgement = Literal["allowed", "loosens", "user-only"]


def judge(path: Sequence[str], *, by: str, below: JsonValue, wanted: JsonValue) -> Judgement:
    """Return whether a layer that may only tighten can set a key.

    Args:
        path: The key, outermost first.
        by: The layer: `project` or `editor`.
        below: The value without this layer.
        wanted: The value in this layer.
    """
    key = tuple(path)
    if key in USER_ONLY or (by == "editor" and key in NEVER_EDITOR):
        return "user-only"
    if ladder := LADDERS.get(key):
        return "allowed" if _rank(ladder, wanted) <= _rank(ladder, below) else "loosens"
    if key in CEILINGS:
        return "allowed" if _height(wanted) <= _height(below) else "loosens"
    return "allowed"


def _rank(ladder: tuple[str, ...], value: JsonValue) -> int:
    return ladder.index(value) if isinstance(value, str) and value in ladder else len(ladder)


def _height(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return float("inf")
    return value


LayerName = Literal["user", "project", "editor", "session", "request"]
"""From the weakest to the strongest; below all of them are the defaults."""
ORDER: tuple[LayerName, ...] = get_args(LayerName)
CLOSED = ("permission", "budgets")
"""Objects in which an unknown key prevents a session: the user would rely on a limit that does not exist."""
LISTS_OF_PATHS = ("skills", "prompts", "extensions")
"""Keys to which each layer adds; paths in a file are relative to the folder of that file."""
UNKNOWN = "extra_forbidden"
"""pydantic's word for a key that a model does not have."""
SIGNS = ("+", "-", "!")
SETTINGS_BYTES = 1 << 20
"""A larger file is not read: it is not settings."""

Keys = tuple[str, ...]


class Layer(Value, frozen=True, kw_only=True):
    """One source of settings: a file, which may be missing, or values that came another way."""

    name: LayerName
    content: Path | JsonObject
    expected: str | None = None
    """The SHA-256 of what the file must hold, when only that may be used; None: anything."""


class SettingsProblem(Value, frozen=True, kw_only=True):
    """A value that was left out, and why. The rest of its layer holds."""

    message: str
    """One sentence: the error, the value, the value used instead."""
    layer: LayerName
    path: Path | None = None
    line: int | None = None
    column: int | None = None
    refuses: bool = False
    """No session may begin with it."""

    def __str__(self) -> str:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        """Format the problem with its location, as compilers do."""
        where = [str(part) for part in (self.path, self.line, self.column) if part is not None]
        return ": ".join((":".join(where) or f"{self.layer} settings", self.message))


class Settings(Value, frozen=True, kw_only=True):
    """The settings in force."""

    values: SettingsValues
    sources: Mapping[str, str]
    """The layer of every key, dotted (`retry.maxRetries`); `default` where no layer has a say."""
    problems: tuple[SettingsProblem, ...] = ()

    @property
    def refusals(self) -> tuple[SettingsProblem, ...]:
        """The problems with which no session may begin."""
        return tuple(one for one in self.problems if one.refuses)


async def load_settings(layers: Sequence[Layer], *, project_trusted: bool = False) -> Settings:
    """Read and merge layers; never fails because of what they hold.

    Objects are merged key by key, everything else replaces what is below; a `defaultTools` list of only
    `+name` and `-name`, and lists of paths, are put after what is below.

    Args:
        layers: In any order; their names say which wins.
        project_trusted: Whether the workspace is trusted; otherwise its layer is not even read.
    """
    load = partial(load_settings_now, tuple(layers), project_trusted=project_trusted)
    return await anyio.to_thread.run_sync(load)


def load_settings_now(layers: Sequence[Layer], *, project_trusted: bool = False) -> Settings:
    """Do as `load_settings` does, blocking; for commands that have no event loop."""
    merging = _Merging()
    for name in ORDER:
        if name == "project" and not project_trusted:
            continue
        for layer in layers:
            if layer.name == name:
                merging.add(layer)
    return merging.result()


class _Merging:
    """The merge while it goes on."""

    def __init__(self) -> None:
        self._merged: JsonObject = SettingsValues().as_json()
        self._sources: dict[Keys, str] = dict.fromkeys(_leaves(self._merged), "default")
        self._problems: list[SettingsProblem] = []

    def add(self, layer: Layer) -> None:
        """Merge a layer over those added before."""
        text, values = self._read(layer)
        values = {key: value for key, value in values.items() if not key.startswith(NOTES)}
        values = self._without_ill_typed(layer, values, text)
        if layer.name in {"project", "editor"}:
            # Layers that a workspace can bring along: they never loosen a permission.
            values = self._without_loosening(layer, values, text)
            values = self._without_user_groups(layer, values, text)
            values = self._without_programs(layer, values, text)
        if isinstance(layer.content, Path):
            values = _from_folder(values, layer.content.parent)
        self._merged = _merge(self._merged, values)
        for keys in _leaves(values):
            self._sources[keys] = layer.name

    def result(self) -> Settings:
        """Return what has come of it."""
        return Settings(
            values=SettingsValues.model_validate_json(encode(self._merged)),
            sources={".".join(keys): name for keys, name in sorted(self._sources.items())},
            problems=tuple(self._problems),
        )

    def _read(self, layer: Layer) -> tuple[str, JsonObject]:
        if not isinstance(layer.content, Path):
            return "", layer.content
        try:
            text = _text_of(layer.content, layer.expected)
            return text, read_object(text)
        except FileNotFoundError:
            return "", {}
        except OSError as error:
            self._report(layer, f"cannot be read ({error.strerror}); nothing of it holds", None)
        except JsonTextError as error:
            self._report(layer, f"{error}; nothing of this file holds", error.place)
        return "", {}

    def _without_ill_typed(self, layer: Layer, values: JsonObject, text: str) -> JsonObject:
        while True:
            try:
                SettingsValues.model_validate_json(encode(values))
            except ValidationError as error:
                for keys, why in _in_order_of_text(_faults(error, values), text):
                    if why == UNKNOWN:
                        self._report_unknown(layer, keys, find_key(text, keys))
                        values = _without(values, keys)
                        continue
                    fallback = _at(self._merged, keys)
                    message = (
                        f'"{".".join(keys)}" is {_shown(_at(values, keys))}, but {why}; '
                        f"{_shown(fallback)} holds instead"
                    )
                    self._report(layer, message, find_key(text, keys))
                    values = _without(values, keys)
            else:
                return values

    def _without_loosening(self, layer: Layer, values: JsonObject, text: str) -> JsonObject:
        for keys in sorted(GUARDED & set(_leaves(values))):
            below, wanted = _at(self._merged, keys), _at(values, keys)
            judgement = judge(keys, by=layer.name, below=below, wanted=wanted)
            if judgement == "allowed":
                continue
            why = (
                f"would loosen {_shown(below)}, which a {layer.name} may not"
                if judgement == "loosens"
                else "may stand only in the user's own settings"
            )
            message = f'"{".".join(keys)}": {_shown(wanted)} {why}; {_shown(below)} holds'
            self._report(layer, message, find_key(text, keys))
            values = _without(values, keys)
        return values

    def _without_user_groups(self, layer: Layer, values: JsonObject, text: str) -> JsonObject:
        for group in USER_GROUPS:
            if group in values:
                message = f'"{group}" may stand only in the user\'s own settings; it has no effect'
                self._report(layer, message, find_key(text, (group,)))
                values = _without(values, (group,))
        return values

    def _without_programs(self, layer: Layer, values: JsonObject, text: str) -> JsonObject:
        """Leave out external agents that only the user may name: those of an editor, and of a project what changes theirs."""
        below = as_object(self._merged.get(AGENTS))
        for name, agent in as_object(values.get(AGENTS)).items():
            keys: Keys = (AGENTS, name)
            is_new = layer.name == "project" and name not in below
            if is_new and as_object(agent).get("sandbox", "auto") == "auto":
                continue
            keys = (*keys, "sandbox") if is_new else keys
            message = (
                f'"{".".join(keys)}" may stand only in the user\'s own settings; it has no effect'
            )
            self._report(layer, message, find_key(text, keys))
            values = _without(values, keys)
        return values

    def _report_unknown(self, layer: Layer, keys: Keys, place: JsonTextPosition | None) -> None:
        *above, name = keys
        if name.startswith(NOTES):
            return
        prefix = "".join(f"{key}." for key in above)
        hint = did_you_mean(name, setting_keys(above), above=prefix)
        refuses = keys[0] in CLOSED
        effect = (
            f'no session begins with an unknown key in "{keys[0]}"'
            if refuses
            else "it has no effect"
        )
        message = f'"{prefix}{name}" is no setting, so {effect}{hint}'
        self._report(layer, message, place, refuses=refuses)

    def _report(
        self, layer: Layer, message: str, place: JsonTextPosition | None, *, refuses: bool = False
    ) -> None:
        self._problems.append(
            SettingsProblem(
                message=message,
                layer=layer.name,
                path=layer.content if isinstance(layer.content, Path) else None,
                line=place.line if place else None,
                column=place.column if place else None,
                refuses=refuses,
            )
        )


def _text_of(path: Path, expected: str | None) -> str:
    # Not to wait for a writer when it is a pipe.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise JsonTextError("is no regular file", None)
        raw = file.read(SETTINGS_BYTES + 1)
    if len(raw) > SETTINGS_BYTES:
        message = f"is larger than {SETTINGS_BYTES} bytes"
        raise JsonTextError(message, None)
    if expected is not None and hashlib.sha256(raw).hexdigest() != expected:
        raise JsonTextError("is not what was trusted any more", None)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        place = JsonTextPosition(line=before.count(b"\n") + 1, column=column)
        raise JsonTextError("is not UTF-8 text", place) from error


def _faults(error: ValidationError, values: JsonObject) -> Mapping[Keys, str]:
    """Return the keys to leave out, each with what it should have been."""
    faults: dict[Keys, str] = {}
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        keys = _existing(values, fault["loc"])
        if fault["type"] == UNKNOWN:
            faults[keys] = UNKNOWN
            continue
        said = fault["msg"].removeprefix("Input ")
        faults[keys] = f"{faults[keys]}, or it {said}" if keys in faults else f"it {said}"
    return faults


def _in_order_of_text(faults: Mapping[Keys, str], text: str) -> list[tuple[Keys, str]]:
    def place(fault: tuple[Keys, str]) -> tuple[int, int]:
        found = find_key(text, fault[0])
        return (found.line, found.column) if found else (0, 0)

    return sorted(faults.items(), key=place)


def _existing(values: JsonObject, location: Sequence[int | str]) -> Keys:
    """Shorten a location to the keys that the text has; the rest of it names members of a union or list."""
    keys: list[str] = []
    here: JsonValue = values
    for part in location:
        if not is_object(here) or not isinstance(part, str) or part not in here:
            break
        keys.append(part)
        here = here[part]
    return tuple(keys)


def _merge(below: JsonObject, above: JsonObject) -> JsonObject:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if is_object(old) and is_object(value):
            merged[key] = _merge(old, value)
        elif key in LISTS_OF_PATHS or (key == "defaultTools" and _only_changes(value)):
            merged[key] = [*_as_list(old), *_as_list(value)]
        else:
            merged[key] = value
    return merged


def _from_folder(values: JsonObject, folder: Path) -> JsonObject:
    """Make the paths that a file names absolute, but for `~` and globs."""
    made = dict(values)
    for key in LISTS_OF_PATHS:
        if key in made:
            made[key] = [_absolute(one, folder) for one in _as_list(made[key])]
    return made


def _absolute(entry: JsonValue, folder: Path) -> JsonValue:
    if not isinstance(entry, str) or entry.startswith(("!", "~")):
        return entry
    sign = entry[:1] if entry.startswith(SIGNS) else ""
    path = entry.removeprefix(sign)
    return entry if path.startswith("~") or not path else f"{sign}{folder / path}"


def _only_changes(value: JsonValue) -> bool:
    names = _as_list(value)
    return bool(names) and all(isinstance(one, str) and one.startswith(("+", "-")) for one in names)


def _as_list(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return [value]


def _leaves(values: JsonObject, above: Keys = ()) -> Iterator[Keys]:
    for key, value in values.items():
        if is_object(value):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)


def _at(values: JsonObject, keys: Sequence[str]) -> JsonValue:
    here: JsonValue = values
    for key in keys:
        here = here.get(key) if is_object(here) else None
    return here


def _without(values: JsonObject, keys: Sequence[str]) -> JsonObject:
    if not keys:
        return {}
    kept = dict(values)
    inner = kept.get(keys[0])
    if len(keys) > 1 and is_object(inner):
        kept[keys[0]] = _without(inner, keys[1:])
    else:
        kept.pop(keys[0], None)
    return kept


def _shown(value: JsonValue) -> str:
    shown = encode(value).decode()
    return shown if len(shown) <= 80 else f"{shown[:79]}…"  # noqa: PLR2004 - one line of a terminal
