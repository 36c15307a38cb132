"""Fields that every config has, with the defaults of the tiny size. A benchmark's config changes what differs."""

import dataclasses

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from trca_jax.credit import METHODS


def get_config() -> ConfigDict:
    c = ConfigDict()
    c.seed = 0
    c.workdir = ""  # empty: runs/<benchmark>-<method>-<seed>
    c.iterations = 40
    c.tasks = 16  # tasks of an iteration
    c.group_size = 8  # rollouts of a task
    c.method = "trca"
    # Settings of every method, --config.credit.trca.lam=0.5
    c.credit = ConfigDict({name: dataclasses.asdict(method.defaults) for name, method in METHODS.items()})

    c.distributed = False  # several processes, found by JAX in what Slurm or Kubernetes say
    c.mesh = ""  # data:1,fsdp:4,tp:1; empty: all devices on fsdp

    c.strict_mesh = False  # True: an axis that the mesh cannot split is an error, not kept whole

    c.env = ConfigDict()
    c.env.name = ""
    c.env.data = "generated"  # or a folder, or an archive
    c.env.task_types = ("",)
    c.env.games = 0  # training games; 0: all there are
    c.env.seed = 0  # of the choice of games
    c.env.options = ConfigDict()  # the benchmark's own settings
    # Of its rubric: other fields of the decision context (none: those of rubric.toml), and operators that do not count.
    c.env.rubric = ConfigDict({"context": (), "without": ()})
    c.env.max_steps = 25
    c.env.workers = 1
    c.env.deadline_s = 60.0  # of one reset or step, before its worker is replaced
    c.env.max_failed = 0.5  # share of an iteration's episodes; if more of them fail to run, the run stops
    c.env.patience_s = 5.0  # that a batch waits for its environments before it plays on without the late ones

    c.agent = ConfigDict()
    c.agent.model = ""  # a shipped asset, a Hugging Face folder, or the endpoint's name of a model
    c.agent.endpoint = ""  # of an OpenAI-compatible server, for evaluate.py: https://host/v1; its key: TRCA_API_KEY
    c.agent.dtype = "float32"
    c.agent.remat = "none"  # or dots, layer: compute more of a layer again in the backward pass, and keep less
    c.agent.prompt = "word"  # or instruct, react
    c.agent.max_new = 8
    c.agent.decode = "admissible"  # or free
    # Padded sizes, and by what the batch may be divided as its episodes end.
    c.agent.buckets = ConfigDict(
        {"chunk": (32, 64, 128, 256), "slots": (256, 384, 512, 768, 1024), "commands": (96, 192), "batch": (1, 2, 4)}
    )

    c.judge = ConfigDict()  # the language model that scores transitions for method prm
    c.judge.endpoint = ""  # of an OpenAI-compatible server; its key: TRCA_API_KEY
    c.judge.model = ""  # the endpoint's name of it

    c.chat = ConfigDict()  # with an endpoint
    c.chat.concurrency = 8  # requests at once
    c.chat.timeout_s = 120.0  # of one answer, before it is asked for again
    c.chat.tries = 7  # of a request, with waits of 1, 2, 4, ... seconds in between
    c.chat.prices = (0.0, 0.0)  # dollars for a million tokens of prompts and of answers; 0: unknown

    c.ppo = ConfigDict()
    c.ppo.lr = 4e-4
    c.ppo.warmup = 10  # updates
    c.ppo.weight_decay = 0.0
    c.ppo.clip_norm = 1.0
    c.ppo.b2 = 0.99
    c.ppo.minibatches = 4
    c.ppo.epochs = 1
    c.ppo.clip = 0.2
    c.ppo.clip_high = 0.0  # 0: as clip
    c.ppo.dual_clip = 3.0
    c.ppo.ratio = "token"  # or sequence (GSPO)
    c.ppo.aggregation = "token-mean"  # or seq-mean-token-sum, seq-mean-token-mean, seq-mean-token-sum-norm
    c.ppo.kl = 0.01
    c.ppo.reference_offload = False  # keep the frozen start policy in the host's memory between its passes
    c.ppo.kl_kind = "k3"  # or k1, k2, abs
    c.ppo.entropy = 0.001
    c.ppo.temperature = 1.0
    c.ppo.max_skipped = 8  # steps in a row whose loss was not finite, until the run stops
    c.ppo.micro_rows = 8
    c.ppo.critic_lr = 1e-3  # methods with a critic
    c.ppo.value_clip = 0.5
    c.ppo.malformed = "response"  # or none: the loss tokens of an answer without an action
    c.ppo.tokens = "method"  # action, response, or what the method is defined with

    c.signals = ConfigDict()
    c.signals.hint = "In the end: {final} Now: {now}"  # what HCAPO puts in place of an observation
    c.signals.lead_in = "Now there is enough information to answer.</think>\n<answer>"  # before IGPO's gold answers

    c.eval = ConfigDict()
    c.eval.split = "valid_unseen"
    c.eval.games = 0  # 0: all there are
    c.eval.repeats = 1
    c.eval.trials = 1  # above 1: Reflexion, failed tasks are tried again with what was noted about the failures
    c.eval.every = 0  # iterations; 0: only before and after
    c.eval.temperature = placeholder(float)  # 0: the likeliest token; unset: as in training, nothing is compiled twice
    c.eval.top_p = 1.0  # 1: all tokens
    c.eval.top_k = 0  # 0: all tokens

    c.checkpoint = ConfigDict()
    c.checkpoint.every = 10
    c.checkpoint.keep = 2
    c.checkpoint.rollouts = 10  # iterations; their rollouts, and those of the last, are kept for report.py. 0: none

    c.warmstart = ConfigDict()
    c.warmstart.steps = 0  # 0: start from agent.model as it is
    # One phase after another: part of the steps, share of moves that follow the scripted player (the rest wander),
    # demonstrations played, those learnt from (all or won), rows of a step, peak rate, weight of observations in the
    # loss. The middle ones teach what a good move is, the last one how rarely it is made.
    c.warmstart.phases = (
        (0.45, 0.25, 9600, "all", 32, 3e-3, 0.4),
        (0.255, 0.6, 9600, "all", 32, 3e-3, 0.4),
        (0.255, 0.9, 12800, "all", 64, 3e-3, 0.4),
        (0.04, 0.36, 2048, "all", 32, 1.5e-3, 0.4),
    )
    return c
