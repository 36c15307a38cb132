"""One environment slot: the engine behind the protocol `Env`, with verl-agent's observations."""

from __future__ import annotations

from trca_jax.envs.base import Observation, Task
from trca_jax.envs.webshop import render, verl_agent
from trca_jax.envs.webshop.actions import DONE
from trca_jax.envs.webshop.data import load_shop
from trca_jax.envs.webshop.engine import State
from trca_jax.envs.webshop.queries import offered_queries
from trca_jax.envs.webshop.reward import OPTION_MATCHES, check_goal
from trca_jax.envs.webshop.tasks import Errand

QUERIES = ("free", "offered")


class WebshopEnv:
    """Plays one task at a time; all slots of a process share the catalogue. See `trca_jax.envs.base.Env`.

    source: the catalogue, as `data.load_products`. option_match: as `reward`. queries: 'free' lists
    `search[<your query>]`; 'offered' lists searches made of the instruction's words in its place, for policies that
    choose among commands. An episode ends at the purchase with the reward as its only one, and is won if that is 1;
    verl-agent goes on with another task inside that step, which nobody should learn from.
    """

    def __init__(self, source: str, option_match: str = "original", queries: str = "free") -> None:
        if option_match not in OPTION_MATCHES or queries not in QUERIES:
            raise ValueError(
                f"option_match {option_match!r} with queries {queries!r} is unknown; expected one of "
                f"{', '.join(OPTION_MATCHES)} and one of {', '.join(QUERIES)}"
            )
        self._source, self._option_match, self._queries = source, option_match, queries

    def reset(self, task: Task) -> Observation:
        """The search page. Raises ValueError for a goal that cannot be rewarded."""
        errand: Errand = task.payload
        check_goal(errand.goal)
        self._shop = load_shop(self._source)
        self._goal, self._seed, self._state = errand.goal, errand.seed, State()
        return self._observation(0.0)

    def step(self, action: str) -> Observation:
        """The answer to any text; what is not understood or not on the page changes nothing."""
        before = self._state
        self._state = self._shop.step(before, self._goal, action, seed=self._seed, option_match=self._option_match)
        bought = self._state.page == DONE and self._state is not before
        return self._observation(self._state.outcome.total if bought else 0.0)

    def _observation(self, reward: float) -> Observation:
        state, instruction = self._state, self._goal.text
        page = render.text(self._shop, state, instruction)
        commands = verl_agent.actions(state.page, self._shop.menu(state))
        if self._queries == "offered" and commands[:1] == (verl_agent.FREE_SEARCH,):
            commands = tuple(f"search[{query}]" for query in offered_queries(instruction))
        done = state.page == DONE
        won = done and state.outcome.success
        return Observation(verl_agent.observation(page, instruction), commands, reward, done, won)

    def hidden_state(self) -> State:
        """The session as the shop keeps it, for tests only. Agents must never see it."""
        return self._state
