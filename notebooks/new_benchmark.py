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
# # A new benchmark in one afternoon
#
# A benchmark is a text world, and a rule that says what can be known from its texts. This one has a study with four
# drawers, three keys and three locked chests; the task is to open the chest of one colour. It lives in the folder
# [`chests`](chests) beside this notebook, in under 200 lines, and nothing in `trca_jax` knows of it:
#
# | file | what it says |
# | --- | --- |
# | `engine.py` | the world: `reset(task)` and `step(action)` answer with an observation |
# | `facts.py` | what a task asks for, and what is known of a transition, read from the texts alone |
# | `rubric.toml` | eight operators over those facts, and the fields of the decision context |
# | `__init__.py` | the `Benchmark`: its tasks, and where the other files meet |
# | `config.py` | how it is trained |
#
# With its folder on Python's path, every command takes it by its name, `module:Class`:
#
# ```bash
# PYTHONPATH=notebooks python launch/train.py --config=notebooks/chests/config.py
# ```

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from trca_jax.credit import make
from trca_jax.envs.registry import make_benchmark
from trca_jax.evaluation.report import COLOURS, NOTE, STYLE
from trca_jax.rollout.judge import credit_batch
from trca_jax.rollout.probe import probe
from trca_jax.rubrics.language import Judge

plt.rcParams.update(STYLE)
FOLDER = next(folder for folder in (Path("."), Path("notebooks")) if (folder / "chests").is_dir())
sys.path.insert(0, str(FOLDER.resolve()))  # what PYTHONPATH does for a command
benchmark = make_benchmark("chests:Chests")
tasks = benchmark.tasks("train", 64)
print(tasks)

# %% [markdown]
# ## 1. The engine
#
# Commands in, texts out, and the list of commands that make sense now. Rewards are given for success only.

# %%
env = benchmark.make_env()
seen = env.reset(tasks.tasks[0])
print(f"Task: {tasks.tasks[0].instruction}\n{seen.text}")
for action in ("open drawer 1", "open drawer 2", "sing", "open drawer 1"):
    seen = env.step(action)
    print(f"> {action}\n{seen.text}")
print("on offer:", ", ".join(seen.admissible))

# %% [markdown]
# ## 2. Facts
#
# An adapter reads an episode as the agent does. What it cannot know it leaves out, and what it says must be declared:
# a rubric can name nothing else.

# %%
adapter = benchmark.adapter(tasks.tasks[0], "")
print(adapter.transition("open drawer 1", "In drawer 1 is a green key.", ()))
print(adapter.transition("open drawer 1", "In drawer 1 is a green key.", ()))
print(adapter.context())

# %% [markdown]
# ## 3. The rubric
#
# Operators are conditions over facts and over what the task asks for (`goal`). They are data, so they can be read,
# compared and audited (`launch/audit_rubrics.py`).

# %%
for operator in benchmark.library.operators:
    print(f"{operator.category:10s} {operator.name:16s} {operator.when}")

# %% [markdown]
# ## 4. Play, judge, credit
#
# Before anything is trained, a script that errs now and then shows whether the rubric sees what it should. The funnel
# tells in which share of the rollouts each operator fired: the way to a success narrows from top to bottom.

# %%
group_size, count = 8, 16
played = probe(benchmark, [task for task in tasks.tasks[:count] for _ in range(group_size)], max_steps=12, seed=0)
for number, episode in enumerate(played):
    episode.group = number // group_size
judge = Judge(benchmark.library)
batch = credit_batch(played, benchmark, judge, max_steps=12)
fired = batch.judgement.any(axis=1)
won = np.array([episode.won for episode in played])
colours = [COLOURS[2], COLOURS[1], COLOURS[0]]  # evidence, invalidity, execution

figure, axis = plt.subplots(figsize=(9, 3.4), layout="constrained")
for j, category in enumerate(judge.category):
    for rollouts, height, lift, alpha in ((won, 0.36, -0.2, 1.0), (~won, 0.36, 0.2, 0.45)):
        share = fired[rollouts, j].mean()
        axis.barh(j + lift, share, height, color=colours[category], alpha=alpha)
        axis.text(share + 0.01, j + lift, f"{share:.0%}", va="center", fontsize=8)
axis.set_yticks(range(len(judge.items)), [item.replace("_", " ") for item in judge.items])
axis.set_ylim(len(judge.items) - 0.5, -0.5)
axis.set_xlim(0, 1.08)
axis.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
axis.grid(axis="y", visible=False)
axis.set_title("Rollouts in which an operator fired")
axis.set_title(f"dark: {won.sum()} rollouts won, pale: {(~won).sum()} failed", loc="right", **NOTE)
plt.show()

# %% [markdown]
# And the advantages that TRCA would train on: in every rollout of one task, what each action is worth.

# %%
advantage = np.asarray(make("trca")(batch).advantage)
lost = [[won[batch.group == g].sum(), g] for g in range(count)]
group = min(lost, key=lambda pair: abs(pair[0] - 2))[1]
rows = np.flatnonzero(batch.group == group)
figure, axis = plt.subplots(figsize=(11, 4.4), layout="constrained")
shown = np.where(np.arange(12) < batch.length[rows][:, None], advantage[rows], np.nan)
image = axis.imshow(shown, cmap="RdBu", vmin=-2.5, vmax=2.5, aspect="auto")
short = {"open drawer ": "drawer ", "take ": "take\n", "unlock ": "unlock\n", "open ": "open\n"}
for i, r in enumerate(rows):
    for t, step in enumerate(played[r].steps):
        text = step.action or "(none)"
        begin = next((word for word in short if text.startswith(word)), None)
        text = short[begin] + text.removeprefix(begin) if begin else text
        colour = "white" if abs(advantage[r, t]) > 1.5 else "black"
        axis.text(t, i, text, ha="center", va="center", fontsize=7, color=colour)
axis.set_yticks(range(len(rows)), [f"{i + 1}{' won' if won[r] else ''}" for i, r in enumerate(rows)])
axis.set_xticks(range(12), range(1, 13))
axis.set(xlabel="step", ylabel="rollout")
axis.grid(False)
axis.set_facecolor("#f4f4f4")
axis.set_title(f"Advantages by TRCA: {played[rows[0]].task.instruction}")
figure.colorbar(image, ax=axis, label="advantage", shrink=0.6)
plt.show()

# %% [markdown]
# ## 5. Train
#
# `config.py` sets what differs from the tiny size of `configs/common.py`. Its start policy is made on the spot, from
# 1,024 noisy demonstrations by the scripted player; then the loop is the same as for every other benchmark, and so are
# `launch/evaluate.py`, `launch/compare.py` and the ablations of `configs/ablations/`.

# %%
lines = sum(bool(line.strip()) for path in (FOLDER / "chests").glob("*.*") for line in path.read_text().splitlines())
print((FOLDER / "chests" / "config.py").read_text())
print(f"all of the benchmark: {lines} lines that are not blank")
