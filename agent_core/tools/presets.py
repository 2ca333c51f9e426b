"""Turns what settings and callers say about tools into a set of names: pure."""

from collections.abc import Iterable, Mapping, Sequence

from agent_core.kernel.errors import ToolSetInvalid

PRESETS: Mapping[str, tuple[str, ...]] = {
    "default": (
        "read",
        "write",
        "edit",
        "bash",
        "grep",
        "find",
        "ls",
        "todo",
        "ask",
        "background",
        "fetch",
        "web_search",
        "plan",
        "task",
        "task_result",
        "task_list",
        "task_stop",
    ),
    "minimal": ("read", "write", "edit", "bash"),
    "readonly": ("read", "grep", "find", "ls"),
}
"""Presets by name. A tool that does not exist is left out of a preset; `default` also has the tools of no preset."""


def effective_set(chosen: str | Sequence[str], available: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the tools to activate, each once, in the order in which they are known.

    Words are read from left to right: a preset or a tool adds to what was said before, `+name` adds and
    `-name` takes away; when the first word has a sign, it starts from the default preset.

    Args:
        chosen: A preset, a tool, a signed name, or several of these; a string may separate them by commas or spaces.
        available: All tools there are.

    Raises:
        ToolSetInvalid: Nothing is left, or a name is neither a preset nor a tool.
    """
    tokens = _tokens(chosen)
    if not tokens:
        message = f"the set of tools is empty; choose a preset ({_listed(PRESETS)}) or tools ({_listed(available)})"
        raise ToolSetInvalid(message)
    picked = _in_preset("default", available) if tokens[0][0] in "+-" else set[str]()
    for word in tokens:
        names = _names(word, available)
        picked = picked - names if word.startswith("-") else picked | names
    if not picked:
        message = (
            f"the tools {chosen!r} leave none active; keep at least one of {_listed(available)}"
        )
        raise ToolSetInvalid(message)
    return tuple(name for name in available if name in picked)


def preset(name: str) -> tuple[str, ...]:
    """Return the names of a preset, also of tools that are not there.

    Raises:
        ToolSetInvalid: No preset of that name.
    """
    if name not in PRESETS:
        message = f"there is no preset {name!r}; choose one of {_listed(PRESETS)}"
        raise ToolSetInvalid(message)
    return PRESETS[name]


def _tokens(chosen: str | Sequence[str]) -> tuple[str, ...]:
    parts = chosen.replace(",", " ").split() if isinstance(chosen, str) else chosen
    return tuple(word for part in parts if (word := part.strip()))


def _in_preset(name: str, available: Sequence[str]) -> set[str]:
    everywhere = {tool for tools in PRESETS.values() for tool in tools}
    return {
        tool
        for tool in available
        if tool in PRESETS[name] or (name == "default" and tool not in everywhere)
    }


def _names(word: str, available: Sequence[str]) -> set[str]:
    name = word.lstrip("+-") if word[0] in "+-" else word
    if name in available:
        return {name}
    if name in PRESETS:
        return _in_preset(name, available)
    if word[0] in "+-" and name in PRESETS["default"]:
        return set()
    message = f"there is no tool or preset {name!r}; tools: {_listed(available)}; presets: {_listed(PRESETS)}"
    raise ToolSetInvalid(message)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
