"""Describes the public Python interface as data, and finds what it breaks for code written against an older one."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias, get_args

from typing_extensions import TypeAliasType

Interface: TypeAlias = Mapping[str, Mapping[str, Any]]
MODULES: Final = ("agent_core", "agent_core.extensions", "agent_core.hooks")
"""Modules whose `__all__` is public."""
POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def public_interface() -> dict[str, dict[str, Any]]:
    """Describe each public name: what it is, its members and its parameters."""
    return {
        f"{module}.{name}": _described(getattr(import_module(module), name))
        for module in MODULES
        for name in sorted(import_module(module).__all__)
    }


def interface_breaks(old: Interface, new: Interface) -> list[str]:
    """Return a sentence for each change that code written against the old interface does not bear."""
    found: list[str] = []
    for name, was in old.items():
        if (now := new.get(name)) is None:
            found.append(f"{name} is gone")
        else:
            found += _breaks(name, was, now)
    return found


def _described(value: object) -> dict[str, Any]:
    if inspect.isclass(value):
        return {
            "kind": "class",
            "members": {name: _member(value, name) for name in sorted(_public_members(value))},
        }
    if callable(value) and not hasattr(value, "__origin__"):
        return _function(value)
    return {"kind": "value", "of": [one.__name__ for one in _union_members(value)]}


def _union_members(value: object) -> Sequence[type]:
    if isinstance(value, TypeAliasType):
        value = value.__value__
    return [one for one in get_args(value) if inspect.isclass(one)]


def _public_members(owner: type) -> set[str]:
    fields = {name for base in owner.__mro__ for name in getattr(base, "__annotations__", {})}
    named = {name for name in dir(owner) if not hasattr(object, name)}
    return {name for name in fields | named if not name.startswith("_")} | {"__init__"}


def _member(owner: type, name: str) -> dict[str, Any]:
    if name == "__init__":
        return _function(owner)
    value = inspect.getattr_static(owner, name, None)
    if isinstance(value, staticmethod | classmethod):
        return _function(getattr(owner, name))
    return _function(value) if inspect.isfunction(value) else {"kind": "attribute"}


def _function(function: Callable[..., object]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {"kind": "attribute"}
    return {
        "kind": "function",
        "parameters": [
            {
                "name": one.name,
                "passed": one.kind.name.lower(),
                "required": one.default is one.empty
                and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD},
            }
            for one in parameters
            if one.name != "self"
        ],
    }


def _breaks(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old["kind"] != new["kind"]:
        yield f"{name} was a {old['kind']} and is a {new['kind']}"
    elif old["kind"] == "class":
        for member, was in old["members"].items():
            if (now := new["members"].get(member)) is None:
                yield f"{name}.{member} is gone"
            else:
                yield from _breaks(f"{name}.{member}", was, now)
    elif old["kind"] == "value":
        gone = [one for one in old["of"] if one not in new["of"]]
        yield from (f"{name} no longer includes {one}" for one in gone)
    elif old["kind"] == "function":
        yield from _parameter_breaks(name, old["parameters"], new["parameters"])


def _parameter_breaks(
    name: str, old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    now = {one["name"]: one for one in new}
    takes_any = any(one["passed"] == "var_keyword" for one in new)
    for one in old:
        if one["name"] not in now and not takes_any:
            yield f"{name}({one['name']}) is gone"
    for one in new:
        was = next((each for each in old if each["name"] == one["name"]), None)
        if one["required"] and (was is None or not was["required"]):
            yield f"{name}({one['name']}) is required now"
    by_place, before = ([one["name"] for one in each if _has_place(one)] for each in (new, old))
    if by_place[: len(before)] != before and not any(
        one["passed"] == "var_positional" for one in new
    ):
        yield f"{name} was called with {before} by place"


def _has_place(parameter: Mapping[str, Any]) -> bool:
    return parameter["passed"] in {kind.name.lower() for kind in POSITIONAL}
