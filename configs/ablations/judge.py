"""Who gives a transition its reward: the rubric (trca), or a language model as process reward model (prm) that every
other piece of TRCA is kept for: the returns, the contexts, the outcome. At equal rollouts.

python launch/sweep.py --config=configs/ablations/judge.py --config.judge.endpoint=URL --config.judge.model=NAME

The key of the endpoint stands in TRCA_API_KEY. A run asks about each of its different episodes once, all transitions in
one request; --config.chat.prices='(2.5,10.0)' puts the dollars into its metrics, beside the tokens.
"""

from configs.ablations.grid import grid


def get_config(base: str = "alfworld"):
    return grid(base, "judge", {"": {}}, ("trca", "prm"))
