"""What hooks are told when another model is in force."""

from dataclasses import replace

from agent_core.hooks import ModelSelected
from tests.support.hooks.hook_listener import Listener
from tests.support.session.scripted_model import SCRIPTED_FACTS, ScriptedModel, say
from tests.support.session.sessions import OneModel, bench
from tests.support.session.trees import node, talk, talked


async def test_another_model_is_told() -> None:
    listener = Listener()
    model = talk()
    other = ScriptedModel([say("x")], facts=replace(SCRIPTED_FACTS, id="model-2"))
    async with bench(model, hooks=listener.table, source=OneModel(model, other)) as b:
        await talked(b, "u1", "u2")
        await b.session.models.choose("scripted/model-2")
        await talked(b, "u3")
        await b.session.models.cycle()
        await b.session.tree.navigate(node(b, "u3"))
        told = [(one.model, one.previous, one.source) for one in listener.of(ModelSelected)]
        assert told == [
            ("scripted/model-2", "scripted/model-1", "set"),
            ("scripted/model-1", "scripted/model-2", "cycle"),
            ("scripted/model-2", "scripted/model-1", "restore"),
        ]
