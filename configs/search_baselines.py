"""The baselines of SearchQA: what defines each of them, and what is published for it besides, at the sizes of Qwen2.5.

Values: methods 6 to 9 and 11.1, searchqa 1.2; where paper and code differ, as the comment says. What all of them differ
in from their public code: retrieved tokens never enter the loss, GAE or whitening; the KL term is in the loss (k3),
also where PPO has it in the reward (k1); actor and critic share one warm-up, the actor's; an answer counts if the
action holds it, never a text around it.
"""

from typing import NamedTuple

from ml_collections import ConfigDict


class Baseline(NamedTuple):
    """Fields of the config: those that define the method, and those of a published run."""

    defined: dict[str, object]
    published: dict[str, object]


def _schedule(iterations: int, tasks: int, group: int, minibatches: int, warmup: float = 0.0) -> dict[str, object]:
    """iterations; questions and rollouts of each; updates an iteration; share of all iterations that warm up."""
    return {
        "iterations": iterations,
        "tasks": tasks,
        "group_size": group,
        "ppo.minibatches": minibatches,
        "ppo.warmup": round(warmup * iterations) * minibatches,
    }


# One growing conversation, as Search-R1 and its kin have it. limit: searches, and one more generation to answer.
_DIALOGUE = {
    "agent.prompt": "search-r1", "agent.max_new": 500, "env.options.protocol": "search-r1", "env.options.limit": 5,
    "ppo.lr": 1e-6, "ppo.kl": 0.001,
}  # fmt: skip
_LONG_ROWS = {"agent.buckets.slots": (1024, 1536, 2560, 4608, 6144, 8192)}
# Fresh prompts, as verl-agent has them.
_STEPWISE = {"ppo.lr": 1e-6, "ppo.kl": 0.001, "ppo.entropy": 0.0, **_schedule(200, 256, 5, 10, 0.1)}
# The gold answer is scored behind words that end the reasoning, which the conversation's prompts leave to the model.
_GOLD = {"signals.lead_in": "<think>Now there is enough information to answer.</think>\n<answer>"}

_SEARCH_R1 = {
    "method": "ppo", "env.options.reward": "em", "credit.ppo.span": "trajectory",
    "credit.grpo.stat_unit": "trajectory",  # with method=grpo
    # Its format reward; version 0.3 has 0.2, 0.1 and 0.
    "env.options.structure_score": 0.0, "env.options.final_score": 0.0, "env.options.retrieval_score": 0.0,
}  # fmt: skip
# 5 rollouts a question are those of GRPO; PPO has one: group_size=1 and ppo.minibatches=2.
_SEARCH_R1_RUN = {**_DIALOGUE, **_schedule(1005, 512, 5, 10, 0.285)}

BASELINES = {
    "search_r1": Baseline(_SEARCH_R1, _SEARCH_R1_RUN),
    # The same without a search engine: a single generation. The tiny policy is offered the names in the question alone
    # then, and can hardly be right: a floor for the others.
    "r1_instruct": Baseline(
        {**_SEARCH_R1, "env.options.retriever": "", "env.options.limit": 1},
        {**_SEARCH_R1_RUN, "agent.prompt": "reason", "env.options.limit": 1},
    ),
    # The published simulator is a language model; here searches bring documents of other questions instead.
    "zerosearch": Baseline(
        {
            "method": "grpo", "env.options.reward": "f1", "credit.grpo.stat_unit": "trajectory",
            "env.options.noise_start": 0.0, "env.options.noise_end": 0.5,  # probability of noise, first and last
            "env.options.noise_steps": 40,  # iterations until the last one is reached
        },
        {
            **_DIALOGUE, **_LONG_ROWS, "env.options.limit": 6, "env.options.k": 5, "env.options.noise_steps": 203,
            **_schedule(203, 64, 5, 2, 0.95),
        },
    ),
    # The paper's values; the scripts have rates of 5e-7 for both, 128 questions and 1,120 iterations.
    "stepsearch": Baseline(
        {"method": "stepsearch", "env.options.reward": "stepsearch"},
        {
            **_DIALOGUE, "env.options.limit": 6, "ppo.lr": 7e-7, "ppo.critic_lr": 7e-6,
            **_schedule(500, 256, 1, 4),
        },
    ),
    # Iterations and minibatches are not published. An answer that is missing earns 0 (released code: -2).
    "igpo": Baseline(
        {"method": "igpo", "env.options.reward": "f1"},
        {
            **_DIALOGUE, **_LONG_ROWS, **_GOLD, "env.options.limit": 10, "ppo.entropy": 0.0,
            "ppo.aggregation": "seq-mean-token-sum", **_schedule(200, 32, 16, 2),
        },
    ),
    # Published with up to 60 tool turns and Qwen3 models that think; here with the turns and rollouts of igpo.
    "trace": Baseline(
        {"method": "trace", "env.options.reward": "em"},
        {
            **_DIALOGUE, **_LONG_ROWS, **_GOLD, "env.options.limit": 10, "ppo.entropy": 0.0,
            **_schedule(200, 64, 8, 2),
        },
    ),
    "gigpo": Baseline(
        {"method": "gigpo", "env.options.reward": "em", "credit.gigpo.similarity": 0.9},
        {**_STEPWISE, "credit.gigpo.invalid_penalty": 0.01},
    ),
    "hcapo": Baseline({"method": "hcapo", "env.options.reward": "em"}, _STEPWISE),
}  # fmt: skip


def choose(c: ConfigDict, name: str, *, published: bool) -> ConfigDict:
    """Makes a config of SearchQA that of a baseline. published: with its values, not the tiny size's.

    `baseline`, a new field, is what the run and its results are called.
    """
    c.baseline = name
    chosen = BASELINES[name]
    for field, value in (chosen.defined | (chosen.published if published else {})).items():
        *sections, last = field.split(".")
        section = c
        for part in sections:
            section = section[part]
        section[last] = value
    c.env.max_steps = c.env.options.limit
    return c
