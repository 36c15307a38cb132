"""The evaluation of a chat model behind an endpoint."""

from __future__ import annotations

from pathlib import Path

from ml_collections import ConfigDict

from launch.evaluation import Evaluator
from trca_jax.agents.chat import Chat
from trca_jax.agents.prompts import PROMPTS
from trca_jax.learner.display import Display
from trca_jax.learner.record import open_run
from trca_jax.rollout.converse import Conversations
from trca_jax.rollout.world import World


def prompt_model(config: ConfigDict, folder: Path, new: bool, world: World, evaluator: Evaluator, display: Display):
    """Evaluates config.agent.model at config.agent.endpoint. Replies are kept in the folder, so that it goes on where
    it was stopped. new: the folder is not the record that the config was read from."""
    agent = config.agent
    chat = Chat(agent.endpoint, agent.model, cache=folder / "replies", **config.chat)
    prompt = PROMPTS[agent.prompt](world.benchmark)
    player = Conversations(chat, prompt, world.pool, max_steps=config.env.max_steps, max_new=agent.max_new)
    if new:
        rubric = world.benchmark.library.fingerprint
        open_run(folder, config, {"evaluation": evaluator.facts(), "weights": None, "rubric": rubric})
    evaluator.run(player, None, folder, 0, display, more=lambda: {"usage": chat.usage()})
    used = chat.usage()
    cost = "" if used["cost"] is None else f", ${used['cost']:,.2f}"
    display.message(
        f"{agent.model}  {used['requests']:,} answers, {used['cached']:,} of them asked before; "
        f"{used['prompt_tokens']:,} + {used['completion_tokens']:,} tokens{cost}"
    )
