"""What a client may ask for is looked at: no field of a method's params is accepted and dropped."""

import ast
from collections.abc import Iterator
from functools import cache
from typing import get_args

from tests.support.harness.sources import Source, sources
from tiller_server.lsp.feature_table import FEATURES
from tiller_server.lsp.methods import METHODS, NOTIFICATIONS
from tiller_server.lsp.wire.base import WireModel
from tiller_server.lsp.wire.blocks import SkillBlock, VendorBlock
from tiller_server.lsp.wire.methods import METHODS as TABLE

WIRE = "tiller_server.lsp.wire"
REFUSED = (SkillBlock, VendorBlock)
"""Blocks that are refused as a whole (`tiller_server.lsp.encode.content`)."""


def test_every_field_of_every_params_model_is_read_by_its_feature() -> None:
    dropped = [
        f"{method}: {field}"
        for method, feature in FEATURES.items()
        for field in TABLE[method].params.model_fields
        if TABLE[method].params.__name__.endswith("Params")
        if field not in _read_by(feature.module)
    ]
    assert dropped == []


def test_every_field_inside_of_params_is_read_somewhere_in_the_server() -> None:
    read = {name for module in _modules() if not module.startswith(WIRE) for name in _reads(module)}
    inside = {
        model
        for method in (*METHODS, *NOTIFICATIONS)
        for model in _below(TABLE[method].params)
        if not model.__name__.endswith("Params") and model not in REFUSED
    }
    dropped = [
        f"{model.__name__}: {field}"
        for model in sorted(inside, key=lambda one: one.__name__)
        for field in model.model_fields
        if field not in read
    ]
    assert dropped == []


def _read_by(feature: str) -> set[str]:
    """Return the attributes that a feature reads, or a module of the server that it hands its params to."""
    helpers = {
        node.module
        for node in ast.walk(_modules()[feature].tree)
        if isinstance(node, ast.ImportFrom) and node.module in _modules()
    }
    return {
        name
        for module in (feature, *helpers)
        if not module.startswith(WIRE)
        for name in _reads(module)
    }


@cache
def _reads(module: str) -> frozenset[str]:
    nodes = ast.walk(_modules()[module].tree)
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        if isinstance(node, ast.MatchClass):
            names.update(node.kwd_attrs)
    return frozenset(names)


def _modules() -> dict[str, Source]:
    return {
        one.module: one
        for one in sources("server")
        if one.path.startswith("server/tiller_server/lsp/")
    }


def _below(
    model: type[WireModel], seen: frozenset[type] = frozenset()
) -> Iterator[type[WireModel]]:
    if model in seen:
        return
    yield model
    for field in model.model_fields.values():
        for part in _parts(field.annotation):
            yield from _below(part, seen | {model})


def _parts(annotation: object) -> Iterator[type[WireModel]]:
    if isinstance(annotation, type) and issubclass(annotation, WireModel):
        yield annotation
    for argument in get_args(getattr(annotation, "__value__", annotation)):
        yield from _parts(argument)
