"""Finds what a schema of the protocol breaks for peers that were written against an older one. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

Schema: TypeAlias = Mapping[str, Any]
Side: TypeAlias = Literal["reads", "writes"]
"""What we do with a value: what we read must be accepted as before, what we write must be understood as before."""
DROPPED: Final = frozenset({"description", "title", "default", "examples", "$schema"})
"""Keywords that say nothing about validity."""
JSON_TYPES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
}
LEAST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems")
MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")


def bare(schema: Any, *, names: bool = False) -> Any:
    """Return a schema without what says nothing about validity.

    Args:
        schema: Any part of it.
        names: The keys of this part are names of properties or definitions, not keywords.
    """
    if isinstance(schema, list):
        return [bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: bare(value, names=not names and key in {"properties", "$defs"})
        for key, value in schema.items()
        if names or key not in DROPPED
    }


def protocol_breaks(old: Schema, new: Schema) -> list[str]:
    """Return a sentence for each change of the protocol that an old peer does not bear."""
    compared = _Comparison(old["$defs"], new["$defs"])
    found: list[str] = []
    for name, method in old["methods"].items():
        now = new["methods"].get(name)
        if now is None:
            found.append(f"{name} is gone")
            continue
        if (now["kind"], now["direction"]) != (method["kind"], method["direction"]):
            found.append(f"{name} was a {method['kind']} {method['direction']}")
            continue
        is_ours = method["direction"] == "client→server"
        sides: tuple[Side, Side] = ("reads", "writes") if is_ours else ("writes", "reads")
        for part, side in zip(("params", "result"), sides, strict=True):
            if part in method:
                found += compared.breaks(method[part], now[part], side=side, at=f"{name} {part}")
    for group in ("events", "frames"):
        for name, schema in old[group].items():
            if (now := new[group].get(name)) is None:
                found.append(f"{name} is gone")
            else:
                found += compared.breaks(schema, now, side="writes", at=name)
    for name, schema in old["capabilities"].items():
        side: Side = "writes" if name == "server" else "reads"
        found += compared.breaks(schema, new["capabilities"][name], side=side, at=name)
    found += compared.breaks(old["errorData"], new["errorData"], side="writes", at="error data")
    gone = set(old["errorKinds"]) - set(new["errorKinds"])
    return [*found, *(f"the error kind {kind} is gone" for kind in sorted(gone))]


def document_breaks(old: Schema, new: Schema, *, side: Side) -> list[str]:
    """Return a sentence for each change of a file's format that older files, or programs that read it, do not bear."""
    compared = _Comparison(old.get("$defs", {}), new.get("$defs", {}))
    return [*compared.breaks(old, new, side=side, at="file")]


class _Comparison:
    """Two sets of definitions; each pair of them is compared once for each side."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old = old
        self._new = new
        self._seen: set[tuple[str, str, Side]] = set()

    def breaks(self, old: Schema, new: Schema, *, side: Side, at: str) -> Iterator[str]:
        """Yield what a peer that knows the old schema does not bear in the new one."""
        names = (str(old.get("$ref", "")), str(new.get("$ref", "")), side)
        if names[0] and names[1]:
            if names in self._seen:
                return
            self._seen.add(names)
        olds, news = _alternatives(old, self._old), _alternatives(new, self._new)
        if len(olds) == len(news) == 1:
            yield from self._alone(olds[0], news[0], side=side, at=at)
            return
        must, may = (olds, news) if side == "reads" else (news, olds)
        for one in must:
            pairs = [(one, other) if side == "reads" else (other, one) for other in may]
            found = [[*self._alone(was, now, side=side, at=at)] for was, now in pairs]
            if all(found) and not (side == "writes" and _is_tagged(one)):
                what = "is no longer accepted" if side == "reads" else "is new"
                yield f"{at}: {_short(one)} {what}"

    def _alone(self, old: Schema, new: Schema, *, side: Side, at: str) -> Iterator[str]:
        must, may = (old, new) if side == "reads" else (new, old)
        if not _types(must) <= _types(may):
            yield f"{at}: the type was {sorted(_types(old))} and is {sorted(_types(new))}"
            return
        if side == "reads":
            yield from _tighter(old, new, at)
        yield from self._members(old, new, side=side, at=at)
        for part in ("items", "additionalProperties"):
            was, now = old.get(part), new.get(part)
            if isinstance(was, dict) and isinstance(now, dict):
                yield from self.breaks(was, now, side=side, at=f"{at}[]")

    def _members(self, old: Schema, new: Schema, *, side: Side, at: str) -> Iterator[str]:
        was, now = old.get("properties", {}), new.get("properties", {})
        for name, schema in was.items():
            if name not in now:
                yield f"{at}.{name} is gone"
            else:
                yield from self.breaks(schema, now[name], side=side, at=f"{at}.{name}")
        required, before = set(new.get("required", ())), set(old.get("required", ()))
        if side == "reads":
            yield from (f"{at}.{name} is required now" for name in sorted(required - before))
        else:
            gone = sorted((before - required) & now.keys())
            yield from (f"{at}.{name} may be missing now" for name in gone)


def _alternatives(schema: Schema, definitions: Schema) -> Sequence[Schema]:
    while "$ref" in schema:
        schema = definitions[str(schema["$ref"]).rpartition("/")[2]]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return [each for one in schema[word] for each in _alternatives(one, definitions)]
    return [schema]


def _types(schema: Schema) -> set[str]:
    """Return the types of values; a number may be an integer, and nothing said is everything."""
    if "type" not in schema:
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if values is None:
            return {"array", "boolean", "integer", "null", "number", "object", "string"}
        return {JSON_TYPES[type(one)] for one in values}
    said = schema["type"]
    types = set(said) if isinstance(said, list) else {said}
    return types | {"integer"} if "number" in types else types


def _tighter(old: Schema, new: Schema, at: str) -> Iterator[str]:
    """Yield limits that values of the old schema may not keep."""
    for word in LEAST:
        if new.get(word, float("-inf")) > old.get(word, float("-inf")):
            yield f"{at}: {word} is {new[word]} now"
    for word in MOST:
        if new.get(word, float("inf")) < old.get(word, float("inf")):
            yield f"{at}: {word} is {new[word]} now"
    if new.get("pattern", old.get("pattern")) != old.get("pattern"):
        yield f"{at}: the pattern was {old.get('pattern')!r} and is {new['pattern']!r}"
    if (allowed := _values(new)) is not None:
        was = _values(old)
        gone = ["others"] if was is None else [one for one in was if one not in allowed]
        yield from (f"{at}: the value {one!r} is no longer accepted" for one in gone)


def _values(schema: Schema) -> Sequence[object] | None:
    return schema.get("enum", [schema["const"]] if "const" in schema else None)


def _is_tagged(schema: Schema) -> bool:
    """Return whether an object names its own kind, so that peers pass over kinds that they do not know."""
    return any("const" in one for one in schema.get("properties", {}).values())


def _short(schema: Schema) -> str:
    for name, member in schema.get("properties", {}).items():
        if "const" in member:
            return f"{name} {member['const']!r}"
    return str(schema)[:80]
