"""One environment slot: a question, a search engine, and an answer that ends the episode."""

from __future__ import annotations

from collections.abc import Sequence

from trca_jax.envs.base import Observation, Task
from trca_jax.envs.searchqa.actions import ANSWER, SEARCH, project
from trca_jax.envs.searchqa.commands import offered
from trca_jax.envs.searchqa.noise import unrelated
from trca_jax.envs.searchqa.questions import Question
from trca_jax.envs.searchqa.retrieval import Passage, RetrievalError
from trca_jax.envs.searchqa.rewards import search_r1_reward, stepsearch_reward, transcript
from trca_jax.envs.searchqa.scoring import exact_match, f1
from trca_jax.envs.searchqa.sources import names, retriever
from trca_jax.envs.searchqa.texts import PROTOCOLS, RETRY, SEARCH_R1, Document, information, read_information

QUERIES = ("free", "offered")
REWARDS = (EM, F1, STEPSEARCH) = ("em", "f1", "stepsearch")
_LONGEST_QUERY = 2000  # characters that are sent to a search engine


class SearchqaEnv:
    """Plays one question at a time; all slots of a process share corpus and search engine. See `envs.base.Env`.

    source, engine: as `sources.retriever`; engine '' is no search engine, and every search is an invalid action.
    protocol: 'verl-agent' answers an invalid action with an empty observation, 'search-r1' with a hint; the texts of
    passages differ too (`texts.information`). limit: actions of an episode, all counted; the last one's search is not
    executed. k: passages a search. reward: 'em', 'f1' or 'stepsearch', given once at the end; an episode is won if
    its answer equals a gold alias. structure_score, final_score, retrieval_score: what `search_r1_reward` pays for form
    and retrieval beside 'em'. queries: 'free', or 'offered' to list commands, for policies that choose among them.
    The answer is what the projected action holds and nothing else: no passage can end or score an episode. A search
    engine that fails ends the episode with `failure`: no text, no reward. Slots that step together search together
    (`prefetch`), and find what each would find alone. A question with distractors gets, where one stands, what is found
    for that and is not about the question.
    Raises ValueError for unknown settings.
    """

    def __init__(
        self, source: str, engine: str, *, protocol: str, limit: int, k: int, reward: str, queries: str,
        structure_score: float = 0.0, final_score: float = 0.0, retrieval_score: float = 0.0,
    ) -> None:  # fmt: skip
        for what, value, known in (("protocol", protocol, PROTOCOLS), ("reward", reward, REWARDS),
                                   ("queries", queries, QUERIES)):  # fmt: skip
            if value not in known:
                raise ValueError(f"{what} {value!r} is unknown; expected one of {', '.join(known)}")
        if limit < 1 or k < 1:
            raise ValueError(f"a limit of {limit} actions with {k} passages a search; expected at least 1 of each")
        self._source, self._engine, self._protocol, self._limit, self._k = source, engine, protocol, limit, k
        self._reward, self._offered = reward, queries == "offered"
        self._worth = {"structure": structure_score, "final": final_score, "retrieval": retrieval_score}

    def reset(self, task: Task) -> Observation:
        """The question."""
        self._question: Question = task.payload
        self._taken, self._done = 0, False
        self._found: dict[str, list[Passage] | RetrievalError] = {}  # prefetched, for the next step's query
        self._queries: list[str] = []
        self._turns: list[tuple[str, tuple[Document, ...] | None]] = []  # the agent's words, what its search brought
        return self._observation(self._question.question)

    @staticmethod
    def prefetch(steps: Sequence[tuple[SearchqaEnv, str]]) -> None:
        """One search for all steps that will search. All environments are of one benchmark. See `envs.base.Env`."""
        wanted = [(env, query) for env, action in steps if (query := env._query(action)) is not None]
        if wanted:
            env = wanted[0][0]
            k = 2 * env._k if any(env._distractor() for env, _ in wanted) else env._k  # half of a distractor's may go
            found = retriever(env._source, env._engine).search([query for _, query in wanted], k)
            for (env, query), passages in zip(wanted, found, strict=True):
                env._found = {query: passages}

    def step(self, action: str) -> Observation:
        """The answer to any text; see `project` for what is executed of it. Form is judged by all of it."""
        if self._done:
            return Observation("", done=True)
        query, noise, found = self._query(action), self._distractor(), project(action)
        if query is not None and query not in self._found:
            self.prefetch([(self, action)])
        self._taken += 1
        if query is not None:
            self._queries.append(found.argument)
            passages = self._found.pop(query)
            if isinstance(passages, RetrievalError):
                self._done = True
                return Observation("", done=True, failure=f"no search: {passages.reason}")
            passages = unrelated(passages, self._question) if noise else passages
            text = information(passages[: self._k], self._protocol)
            self._turns.append((action, read_information(text) or ()))
            return self._observation(text)
        self._turns.append((action, None))
        if found.kind == ANSWER:
            return self._end(found.argument)
        if self._taken >= self._limit:
            return self._end(None)
        return self._observation(RETRY if self._protocol == SEARCH_R1 else "")

    def _query(self, action: str) -> str | None:
        """What the next step would search for, a distractor in place of the agent's words; None if it would not."""
        found = project(action)
        searches = found.kind == SEARCH and self._engine and not self._done and self._taken + 1 < self._limit
        return (self._distractor() or found.argument)[:_LONGEST_QUERY] if searches else None

    def _distractor(self) -> str:
        """What stands in place of the next query; '' if nothing does."""
        made, distractors = len(self._queries), self._question.distractors
        return distractors[made] if made < len(distractors) else ""

    def _end(self, answer: str | None) -> Observation:
        self._done = True
        won = answer is not None and exact_match(answer, self._question.golden_answers) == 1.0
        return Observation("", reward=self._earned(answer), done=True, won=won)

    def _earned(self, answer: str | None) -> float:
        """What the episode earns. answer: None if there is none."""
        golds = self._question.golden_answers
        if self._reward == F1:
            return 0.0 if answer is None else f1(answer, golds)
        if self._reward == STEPSEARCH:
            return stepsearch_reward(answer, golds, self._queries, [[key] for key in self._question.sub_questions])
        return search_r1_reward(transcript(self._turns), answer, golds, **self._worth)

    def _observation(self, text: str) -> Observation:
        commands = ()
        if self._offered:
            searches = bool(self._engine) and self._taken + 1 < self._limit
            seen = [documents for _, documents in self._turns if documents is not None]
            commands = offered(self._question.question, seen, names(self._source), searches=searches)
        return Observation(text, commands)
