# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Credit kernels, alone
#
# A credit method is a function from arrays to one advantage per action. It needs no model, no environment and no
# trainer: here is one group of four rollouts of the same task, written down by hand, as seen by five methods.
#
# The task is *put a clean apple in the fridge*. **All four rollouts fail**, as almost all do when training starts.

# %%
import matplotlib.pyplot as plt
import numpy as np

from trca_jax.credit import CreditBatch, make
from trca_jax.credit.types import EVIDENCE, EXECUTION, INVALIDITY

# %% [markdown]
# ## What happened
#
# Every step has an action and the rubric items that it made true. `E` is evidence found, `X` is a part of the task
# executed, `-` is an invalid step. The context names the situation in which the action was chosen: steps of equal
# context are compared with each other.

# %%
ITEMS = [
    ("apple seen", EVIDENCE),
    ("sink reached", EVIDENCE),
    ("unparsed", INVALIDITY),
    ("repeated", INVALIDITY),
    ("apple taken", EXECUTION),
    ("apple cleaned", EXECUTION),
]
ROLLOUTS = [
    [  # finds the apple, takes it, cleans it, and runs out of steps on the way to the fridge
        ("go to table", "find", ["apple seen"]),
        ("take apple", "fetch", ["apple taken"]),
        ("go to sink", "clean", ["sink reached"]),
        ("clean apple", "clean", ["apple cleaned"]),
        ("go to shelf", "deliver", []),
    ],
    [  # finds the apple, and walks past it
        ("go to table", "find", ["apple seen"]),
        ("go to bed", "fetch", []),
        ("go to table", "fetch", []),
        ("go to bed", "fetch", ["repeated"]),
        ("go to desk", "fetch", []),
    ],
    [  # never finds it
        ("go to bed", "find", []),
        ("go to desk", "find", []),
        ("go to bed", "find", ["repeated"]),
        ("go to sink", "find", ["sink reached"]),
        ("go to shelf", "find", []),
    ],
    [  # one answer cannot be parsed
        ("go to desk", "find", []),
        ("go to table", "find", ["apple seen"]),
        ("well, hmm", "fetch", ["unparsed"]),
        ("take apple", "fetch", ["apple taken"]),
        ("go to bed", "clean", []),
    ],
]

# %% [markdown]
# ## As arrays
#
# `R` rollouts of at most `T` steps and `J` rubric items. Ids are dense integers; what they stand for never matters.

# %%
R, T, J = len(ROLLOUTS), max(map(len, ROLLOUTS)), len(ITEMS)
names = [name for name, _ in ITEMS]
contexts = {name: i for i, name in enumerate(dict.fromkeys(c for rollout in ROLLOUTS for _, c, _ in rollout))}

judgement = np.zeros((R, T, J), np.int8)
context = np.zeros((R, T), np.int32)
valid = np.ones((R, T), bool)
for r, rollout in enumerate(ROLLOUTS):
    for t, (_, where, fired) in enumerate(rollout):
        judgement[r, t, [names.index(name) for name in fired]] = 1
        context[r, t] = contexts[where]
        valid[r, t] = "unparsed" not in fired

batch = CreditBatch(
    judgement=judgement,
    item_category=np.tile(np.array([category for _, category in ITEMS], np.int32), (R, 1)),
    item_mask=np.ones((R, J), bool),
    r_env=np.zeros((R, T), np.float32),
    outcome=np.zeros(R, np.float32),
    length=np.array([len(rollout) for rollout in ROLLOUTS], np.int32),
    group=np.zeros(R, np.int32),
    context=context,
    next_context=np.roll(context, -1, axis=1),
    valid=valid,
)

# %% [markdown]
# ## Five methods, the format penalty off and on
#
# Public agent code takes 0.1 off the score of a step whose answer could not be parsed. Methods that compare outcomes
# divide by the standard deviation of the group, so in a group without success this penalty is all that they see, and
# its size does not matter: it is blown up to advantages of order one.

# %%
METHODS = ["grpo", "rloo", "gigpo", "graphgpo", "trca"]
PENALTIES = [0.0, 0.1]
advantage = {
    (name, penalty): np.asarray(make(name, invalid_penalty=penalty)(batch).advantage)
    for name in METHODS
    for penalty in PENALTIES
}
for (name, penalty), a in advantage.items():
    print(
        f"{name:9s} penalty {penalty:.1f}   largest |A| {np.abs(a).max():.2f}   steps with credit {(a != 0).sum():2d}"
    )

# %%
figure, axes = plt.subplots(len(METHODS), 2, figsize=(11, 11), sharex=True, sharey=True, layout="constrained")
for row, name in zip(axes, METHODS, strict=True):
    for axis, penalty in zip(row, PENALTIES, strict=True):
        image = axis.imshow(advantage[name, penalty], cmap="RdBu", vmin=-2, vmax=2, aspect="auto")
        for r, rollout in enumerate(ROLLOUTS):
            for t, (action, _, _) in enumerate(rollout):
                colour = "white" if abs(advantage[name, penalty][r, t]) > 1.2 else "black"
                axis.text(t, r, action.replace("go to ", "→ "), ha="center", va="center", fontsize=8, color=colour)
        axis.set_title(f"{name}, penalty {'on' if penalty else 'off'}", fontsize=10)
        axis.set_xticks(range(T), [f"step {t + 1}" for t in range(T)])
        axis.set_yticks(range(R), [f"rollout {r + 1}" for r in range(R)])
figure.colorbar(image, ax=axes, label="advantage", shrink=0.4)
figure.suptitle("Four failed rollouts of one task: what each method tells the policy")
plt.show()

# %% [markdown]
# **Read it row by row.** With the penalty off the outcome methods say nothing at all. With it on they praise every
# action of the group for not being the one malformed answer. TRCA prefers *take apple* to walking on, *clean apple* to
# walking away with it, and the step that shows the apple to steps that show nothing, although nobody ever succeeded.

# %%
silent = all((advantage[name, 0.0] == 0).all() for name in METHODS if name != "trca")
taken = advantage["trca", 0.0][0, 1], advantage["trca", 0.0][1, 1]
print("outcome methods silent without the penalty:", silent)
print(f"TRCA, apple in sight: take it {taken[0]:+.2f}, walk on {taken[1]:+.2f}")

# %% [markdown]
# ## On your own data
#
# Any numpy, JAX or DLPack arrays will do. Settings are keyword arguments and are checked; a wrong batch is refused with
# the name of the array and the rule that it breaks. `make(name, checks=False)` leaves the checks out of hot loops, and
# the functions in `METHODS` can be put into your own `jit`, `vmap` or `shard_map`.

# %%
for lam in (0.0, 0.5, 1.0):
    a = np.asarray(make("trca", lam=lam)(batch).advantage)
    print(f"λ = {lam}: repeated walk to the bed {a[1, 3]:+.2f}, taking the apple {a[0, 1]:+.2f}")
