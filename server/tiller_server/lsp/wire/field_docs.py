"""Docstrings of fields, which are the descriptions in the JSON Schema."""

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agent_core.events.values import TaggedEvent
from tiller_server.lsp.wire.base import WireModel

__all__ = ["field_docs"]


def field_docs(shape: type[WireModel | TaggedEvent]) -> Mapping[str, str]:
    """Return the docstrings of the fields of a shape, those of its bases included.

    They are read here and not by pydantic (`use_attribute_docstrings`), which would parse the sources at every start.
    """
    docs: dict[str, str] = {}
    for base in reversed(shape.__mro__):
        if issubclass(base, WireModel | TaggedEvent):
            docs.update(_docs_in(inspect.getfile(base)).get(base.__name__, {}))
    return docs


@cache
def _docs_in(file: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of fields in a source file, by class and field."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    found: dict[str, dict[str, str]] = {}
    for shape in tree.body:
        if not isinstance(shape, ast.ClassDef):
            continue
        for field, after in zip(shape.body, shape.body[1:], strict=False):
            match field, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found.setdefault(shape.name, {})[name] = inspect.cleandoc(text)
                case _:
                    pass
    return found
