"""The table of features: it serves what is announced, and everything that it serves is declared once."""

from tiller_server.lsp.feature_table import FEATURES
from tiller_server.lsp.methods import CLIENT_REQUESTS, METHODS as ANNOUNCED, NOTIFICATIONS
from tiller_server.lsp.wire.methods import METHODS


def test_the_features_serve_exactly_what_is_announced_before_they_are_loaded() -> None:
    assert len(FEATURES) == len({*ANNOUNCED, *NOTIFICATIONS}) == len(ANNOUNCED) + len(NOTIFICATIONS)
    assert set(FEATURES) == {*ANNOUNCED, *NOTIFICATIONS}


def test_each_announced_name_is_declared_with_its_kind_and_direction() -> None:
    declared = {name: (method.kind, method.direction) for name, method in METHODS.items()}
    assert {declared[name] for name in ANNOUNCED} == {("request", "client→server")}
    assert {declared[name] for name in NOTIFICATIONS} == {("notification", "client→server")}
    assert {declared[name][1] for name in CLIENT_REQUESTS} == {"server→client"}


def test_each_feature_has_a_module_of_its_own() -> None:
    modules = [feature.module for feature in FEATURES.values()]
    assert len(set(modules)) == len(modules)
    assert {module.rpartition(".")[0] for module in modules} == {"tiller_server.lsp.features"}
