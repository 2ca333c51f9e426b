"""Whatever a block holds survives the way in and out."""

from hypothesis import given, strategies as st

from tiller_server.lsp.wire.base import dump
from tiller_server.lsp.wire.parsing import parse
from tiller_server.lsp.wire.runs import PromptParams

TEXT = st.text(max_size=12)
LINE = st.integers(min_value=0, max_value=2**31 - 1)
POSITIONS = st.fixed_dictionaries({"line": LINE, "character": LINE})
RANGES = st.fixed_dictionaries({"start": POSITIONS, "end": POSITIONS})
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}),
    st.fixed_dictionaries({"type": st.just("image"), "mime": TEXT, "data": TEXT}),
    st.fixed_dictionaries({"type": st.just("image"), "mime": TEXT, "uri": TEXT}),
    st.fixed_dictionaries(
        {"type": st.just("file"), "name": TEXT, "data": TEXT}, optional={"mime": TEXT}
    ),
    st.fixed_dictionaries(
        {"type": st.just("resource"), "uri": TEXT},
        optional={"version": st.integers(), "range": RANGES, "text": TEXT, "sha256": TEXT},
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("selection"),
            "uri": TEXT,
            "version": st.integers(),
            "range": RANGES,
            "text": TEXT,
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("diagnostics"),
            "uri": TEXT,
            "items": st.lists(
                st.fixed_dictionaries(
                    {"range": RANGES, "message": TEXT},
                    optional={"severity": st.integers(1, 4), "code": st.integers() | TEXT},
                ),
                max_size=2,
            ),
        }
    ),
    st.fixed_dictionaries({"type": st.just("diff"), "patch": TEXT}),
    st.fixed_dictionaries({"type": st.just("skill"), "name": TEXT}, optional={"args": TEXT}),
    st.builds(
        lambda rest, word: {**rest, "type": "_" + word},
        st.dictionaries(TEXT.map(lambda key: "x" + key), JSON, max_size=3),
        TEXT,
    ),
)


@given(st.lists(BLOCKS, min_size=1, max_size=4))
def test_any_content_survives_the_way_in_and_out(content: list) -> None:
    assert dump(parse(PromptParams, {"content": content})) == {"content": content}
