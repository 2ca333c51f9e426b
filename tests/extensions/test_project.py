"""Extensions of a project run only when the user trusts it as it is, and have seen what runs."""

from agent_core.events import PermissionRequested, TrustSubject
from agent_core.session.permissions.broker import PermissionState
from tests.support.hooks.extensions import Extended, Home, extended
from tests.support.session.scripted_model import ScriptedModel, say

TOOL = """
def extension(api):
    @api.tool(name="{0}", description="d", parameters={{"type": "object"}}, kind="read")
    async def work(arguments, ctx):
        return "{0}"
"""


async def asked(it: Extended, count: int) -> PermissionRequested:
    event = await it.bench.until(PermissionRequested, count)
    assert isinstance(event, PermissionRequested)
    return event


async def answer(it: Extended, option: str, count: int = 1) -> TrustSubject:
    event = await asked(it, count)
    subject = event.request.subject
    assert isinstance(subject, TrustSubject)
    it.bench.session.permissions.answer(event.request.request, option)
    return subject


async def test_not_before_the_project_is_trusted(home: Home) -> None:
    witness = home.root / "ran"
    home.write(
        "x.py", f"open({str(witness)!r}, 'w').close()\n" + TOOL.format("one"), into=home.project
    )
    async with extended(
        home, ScriptedModel([say("ok")]), trusted=None, standing=PermissionState(mode="ask")
    ) as it:
        assert it.names == []
        await it.bench.session.prompt("go")
        event = await asked(it, 1)
        assert not witness.exists()
        subject = event.request.subject
        assert isinstance(subject, TrustSubject)
        assert "It brings code that runs with all your rights" in (event.request.description or "")
        assert ".tiller/extensions/x.py" in (event.request.description or "")
        # The whole text, line by line.
        assert all(f"+{line}" in subject.difference for line in TOOL.format("one").splitlines())
        it.bench.session.permissions.answer(event.request.request, "allowProject")
        await it.bench.idle()
        assert witness.exists()
        assert it.names == ["x"]
        assert "one" in it.bench.session.tools.active


async def test_refused_it_does_not_run(home: Home) -> None:
    home.write("x.py", TOOL.format("one"), into=home.project)
    async with extended(
        home, ScriptedModel([say("ok")]), trusted=None, standing=PermissionState(mode="ask")
    ) as it:
        await it.bench.session.prompt("go")
        await answer(it, "rejectOnce")
        await it.bench.idle()
        assert it.names == []


async def test_what_changed_is_asked_about_again_and_does_not_run_before(home: Home) -> None:
    home.write("x.py", TOOL.format("one"), into=home.project)
    model = ScriptedModel([say("1"), say("2")])
    async with extended(home, model, trusted=None, standing=PermissionState(mode="ask")) as it:
        await it.bench.session.prompt("go")
        await answer(it, "allowProject")
        await it.bench.idle()
        home.write("x.py", TOOL.format("two"), into=home.project)
        loaded = await it.bench.session.resources.reload()
        assert "is not what was trusted" in str(loaded.problems[0])
        assert it.names == [], "neither the new code nor the old one"
        await it.bench.session.prompt("go on")
        subject = await answer(it, "allowProject", 2)
        assert subject.changed == (".tiller/extensions/x.py",)
        assert '+    @api.tool(name="two"' in subject.difference
        await it.bench.idle()
        assert "two" in it.bench.session.tools.active


async def test_a_vouched_workspace_needs_no_question(home: Home) -> None:
    home.write("x.py", TOOL.format("one"), into=home.project)
    async with extended(home, trusted=True) as it:
        assert it.names == ["x"]
    async with extended(home, trusted=False) as it:
        assert it.names == []


async def test_a_project_cannot_name_extensions_elsewhere(home: Home) -> None:
    elsewhere = home.write("evil.py", TOOL.format("evil"), into=home.root / "src")
    home.write("settings.json", f'{{"extensions": ["{elsewhere}"]}}', into=home.root / ".tiller")
    async with extended(home, trusted=True) as it:
        assert it.names == []
