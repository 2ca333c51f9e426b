"""What settings mean for a session."""

from pathlib import Path

from agent_core.assembly.config import session_options
from agent_core.compaction import CompactionPolicy, ModelFigures
from agent_core.resources.settings.values import SettingsValues


def test_a_model_may_have_compaction_figures_of_its_own() -> None:
    values = SettingsValues.model_validate(
        {
            "compaction": {
                "reserveTokens": 10_000,
                "modelOverrides": {"lab/big": {"keepRecentTokens": 50_000}},
            }
        }
    )
    compaction = session_options(values, scratch=Path("/scratch")).compaction
    assert compaction.by_model == {"lab/big": ModelFigures(keep_recent_tokens=50_000)}
    own = compaction.of_model("lab/big")
    assert (own.reserve_tokens, own.keep_recent_tokens) == (10_000, 50_000)
    other = compaction.of_model("lab/small")
    assert (other.reserve_tokens, other.keep_recent_tokens) == (10_000, 20_000)
    assert CompactionPolicy().of_model("lab/big") == CompactionPolicy()
