"""The published setting of a benchmark: a Qwen2.5-Instruct model, 16 x 8 rollouts, stepwise prompts with reasoning.

Values: methods 11.1 (TRCA where it names its own, else the family it is compared with); 12 minibatches make about 256
rows of one. The weights are a local Hugging Face folder: --config.agent.model=FOLDER.
"""

from ml_collections import ConfigDict

from trca_jax.policy.config import PRESETS


def published(c: ConfigDict, size: str, *, prompt: int, steps: int) -> ConfigDict:
    """Sets what a published run of this size differs in. prompt: its most tokens. steps: of an episode.

    Raises ValueError for a size that was not published.
    """
    if size not in PRESETS:
        raise ValueError(f"preset {size!r} is unknown, expected tiny, warmstart or one of {', '.join(PRESETS)}")
    c.iterations = 150
    c.env.max_steps = steps
    c.env.workers = 4
    c.agent.model = size
    c.agent.dtype = "bfloat16"
    c.agent.remat = "layer"
    c.agent.prompt = "instruct"
    c.agent.decode = "free"
    c.agent.max_new = 512
    c.agent.buckets.chunk = tuple(n for n in (512, 1024, 2048, 4096) if n <= prompt)
    c.agent.buckets.slots = tuple(n + c.agent.max_new for n in c.agent.buckets.chunk)
    c.ppo.lr = 8e-7
    c.ppo.warmup = 0
    c.ppo.weight_decay = 0.01
    c.ppo.b2 = 0.999
    c.ppo.minibatches = 12
    c.ppo.kl = 0.012
    c.ppo.critic_lr = 1e-5
    c.eval.temperature = 0.4
    c.eval.every = 5
    return c
