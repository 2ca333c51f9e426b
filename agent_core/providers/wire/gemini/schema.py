"""A tool's JSON Schema, made into the part of JSON Schema that Gemini takes: pure."""

from collections.abc import Mapping

from agent_core.kernel import JsonObject, JsonValue, json

KEPT = (
    "type",
    "format",
    "title",
    "description",
    "enum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
    "default",
    "required",
    "propertyOrdering",
)
ANY: JsonObject = {"type": "object"}
"""Schema used in place of a recursive reference, a reference that cannot be resolved, and above `NODES` schemas."""
NODES = 5_000
"""So many schemas in one are enough: definitions that use one another twice grow without end."""
_Json = dict[str, JsonValue]


def gemini_schema(schema: JsonObject) -> JsonObject:
    """Return the schema without references and without words that Gemini does not know."""
    cleaned = _Cleaner(schema).clean(schema, inside=())
    return {"type": "object", "properties": {}, **cleaned}


class _Cleaner:
    """Converter of one schema to Gemini's keywords, with definitions in the place of references."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = NODES

    def clean(self, value: JsonValue, *, inside: tuple[str, ...]) -> _Json:
        """Clean one schema; `inside` are the references that led here."""
        self._left -= 1
        if self._left < 0:
            return dict(ANY)
        schema = json.as_object(value)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in inside:
                return dict(ANY)
            rest = {key: item for key, item in schema.items() if key != "$ref"}
            target = self.clean(self._at(reference), inside=(*inside, reference))
            return {**target, **self.clean(rest, inside=inside)}
        cleaned: _Json = {key: schema[key] for key in KEPT if key in schema}
        if "const" in schema:
            cleaned["enum"] = [schema["const"]]
        cleaned.update(self._below(schema, inside))
        for part in _listed(schema.get("allOf")):
            cleaned = _merged(cleaned, self.clean(part, inside=inside))
        return cleaned

    def _below(self, schema: JsonObject, inside: tuple[str, ...]) -> _Json:
        below: _Json = {}
        properties = schema.get("properties")
        if json.is_object(properties):
            below["properties"] = {
                name: self.clean(item, inside=inside) for name, item in properties.items()
            }
        for key in ("items", "additionalProperties"):
            item = schema.get(key)
            if json.is_object(item):
                below[key] = self.clean(item, inside=inside)
            elif isinstance(item, bool) and key == "additionalProperties":
                below[key] = item
        for key, name in (("prefixItems", "prefixItems"), ("anyOf", "anyOf"), ("oneOf", "anyOf")):
            choices = _listed(schema.get(key))
            if choices:
                below[name] = [self.clean(choice, inside=inside) for choice in choices]
        return below

    def _at(self, reference: str) -> JsonValue:
        """Resolve a reference; one to another file, or to nothing, resolves to `ANY`."""
        if not reference.startswith("#"):
            return ANY
        found: JsonValue = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                return ANY
            found = found[name]
        return found


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _merged(one: _Json, other: _Json) -> _Json:
    """Lay one schema over another: both hold."""
    merged: _Json = {**one, **other}
    properties = {
        **json.as_object(one.get("properties")),
        **json.as_object(other.get("properties")),
    }
    if properties:
        merged["properties"] = properties
    required = [*_listed(one.get("required")), *_listed(other.get("required"))]
    if required:
        merged["required"] = list(dict.fromkeys(map(str, required)))
    return merged
