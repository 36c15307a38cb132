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
# # The credit of one episode
#
# Eight rollouts of one household task, played by a small policy at the start of its training. What does TRCA tell the
# policy about each action, and why?
#
# The file is what every evaluation leaves in a run folder (`evaluation-N.npz`), cut down to one game. Read your own:
# play a game eight times with `launch/evaluate.py --run=DIR --repeats=8`, then put the path of its file below.

# %%
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from trca_jax.credit import make
from trca_jax.envs.registry import make_benchmark
from trca_jax.evaluation.report import COLOURS, NOTE, STYLE
from trca_jax.rollout.judge import credit_batch, transitions
from trca_jax.rollout.store import read_episodes
from trca_jax.rubrics.language import Judge

plt.rcParams.update(STYLE)
RECORDED = next(folder for folder in (Path("recorded"), Path("notebooks/recorded")) if folder.is_dir())
episodes = read_episodes(RECORDED / "group.npz")
task = episodes[0].task
print(f"Task: {task.instruction}")
print(f"{sum(e.won for e in episodes)} of {len(episodes)} rollouts won")

# %% [markdown]
# ## Judge, and assign credit
#
# The judge reads texts alone: what was done, what the world answered, what was on offer. `credit_batch` turns that into
# arrays, and a credit method into one advantage for each action.

# %%
benchmark = make_benchmark(task.benchmark)
judge = Judge(benchmark.library)
T = max(len(episode.steps) for episode in episodes)
batch = {
    context: credit_batch(episodes, benchmark, judge, max_steps=T, context=context)
    for context in ("fields", "observation")
}
trca = make("trca", evidence=0.25, invalidity=0.25)(batch["fields"])  # budgets of configs/alfworld.py
A, A_E, A_S, r_F, r_B, G = (
    np.asarray(x) for x in (trca.advantage, trca.episode, trca.step, trca.foundational, trca.breakthrough, trca.returns)
)
fired = batch["fields"].judgement * batch["fields"].item_mask[:, None]
best = int(max(range(len(episodes)), key=lambda r: (r_B[r].sum(), -len(episodes[r].steps))))
end = "won" if episodes[best].won else "failed"
print(f"most progress: rollout {best + 1}, {end} after {len(episodes[best].steps)} steps")

# %% [markdown]
# ## One episode, step by step
#
# Every dot is a rubric operator whose condition was certainly true of that transition. r_F pays each time, r_B the
# first time only; the return G looks ahead; A_S compares it with all other steps of the same decision context, and A_E
# compares the outcome of the rollout with its siblings'.

# %%
steps = episodes[best].steps
items = [j for j in range(len(judge.items)) if fired[:, :, j].any()]
colour_of = {j: COLOURS[(2, 1, 0)[judge.category[j]]] for j in items}
figure, (table, bars, heat) = plt.subplots(
    1, 3, figsize=(11, 0.33 * len(steps) + 1.6), width_ratios=(5, 3, 2.4), sharey=True, layout="constrained"
)
y = np.arange(len(steps))
for k, j in enumerate(items):
    hit = np.flatnonzero(fired[best, : len(steps), j])
    table.scatter(np.full(len(hit), k), hit, s=70, color=colour_of[j], zorder=3)
    table.axvline(k, color="#eeeeee", zorder=0)
table.set_xticks(range(len(items)), [judge.items[j].replace("_", " ") for j in items], rotation=40, ha="right")
for label, j in zip(table.get_xticklabels(), items, strict=True):
    label.set_color(colour_of[j])
table.set_yticks(y, [f"{step.action or '(no action)'}  {t + 1:2d}" for t, step in enumerate(steps)])
table.set_xlim(-0.6, len(items) - 0.4)
table.set_ylim(len(steps) - 0.5, -0.5)
table.set_title("Operators that fired")
bars.barh(y - 0.2, r_F[best, : len(steps)], 0.38, color=COLOURS[4], label="r_F")
bars.barh(y + 0.2, r_B[best, : len(steps)], 0.38, color=COLOURS[0], label="r_B")
bars.plot(G[best, : len(steps)], y, color="#444444", marker="o", ms=3.5, linewidth=1, label="G")
bars.axvline(0, color="#888888", linewidth=0.8)
bars.legend(loc="lower right")
bars.set_title("Rewards and return")
columns = np.stack([np.full(len(steps), A_E[best]), A_S[best, : len(steps)], A[best, : len(steps)]], axis=1)
heat.imshow(columns, cmap="RdBu", vmin=-3, vmax=3, aspect="auto")
for t, row in enumerate(columns):
    for k, value in enumerate(row):
        heat.text(
            k, t, f"{value:+.1f}", ha="center", va="center", fontsize=8, color="white" if abs(value) > 1.9 else "black"
        )
heat.set_xticks(range(3), ["A_E", "A_S", "A"])
heat.grid(False)
heat.tick_params(length=0)
heat.spines[:].set_visible(False)
heat.set_title("Advantage")
figure.suptitle(f"Rollout {best + 1}: {task.instruction}", x=0.01, ha="left")
plt.show()

# %% [markdown]
# ## The group, seen by four methods
#
# A row a rollout, a column a step. Blue steps become more likely, red ones less; white says nothing. A ring marks an
# Execution item: a part of the task was carried out.

# %%
order = sorted(range(len(episodes)), key=lambda r: -r_B[r].sum())
view = {
    "trca": A,
    "gigpo": np.asarray(make("gigpo")(batch["observation"]).advantage),
    "graphgpo": np.asarray(make("graphgpo")(batch["observation"]).advantage),
    "grpo": np.asarray(make("grpo")(batch["observation"]).advantage),
}
done = (fired * (judge.category == 2)).any(axis=2)
figure, axes = plt.subplots(2, 2, figsize=(11, 5.6), sharex=True, sharey=True, layout="constrained")
for axis, (name, advantage) in zip(axes.flat, view.items(), strict=True):
    shown = np.where(np.arange(T) < batch["fields"].length[:, None], advantage, np.nan)[order]
    image = axis.imshow(shown, cmap="RdBu", vmin=-3, vmax=3, aspect="auto")
    r, t = np.nonzero(done[order])
    axis.scatter(t, r, s=42, facecolor="none", edgecolor="#222222", linewidth=1.2)
    said = np.abs(np.nan_to_num(shown)) > 1e-6
    axis.set_title(name)
    axis.set_title(f"{said.sum() / np.isfinite(shown).sum():.0%} of the steps get credit", loc="right", **NOTE)
    axis.grid(False)
    axis.set_facecolor("#f4f4f4")
    axis.set_yticks(range(len(order)), [f"{r + 1}{' won' if episodes[r].won else ''}" for r in order])
for axis in axes[1]:
    axis.set_xlabel("step")
for axis in axes[:, 0]:
    axis.set_ylabel("rollout")
figure.colorbar(image, ax=axes, label="advantage", shrink=0.5)
plt.show()

# %% [markdown]
# ## Where the siblings went
#
# A_S is a comparison. Here is the largest context in which both kinds of step occur, those that fired something useful
# and those that did not: every dot is a step of some rollout in that situation, at the height of its return.

# %%
real = np.arange(T) < batch["fields"].length[:, None]
useful = (fired * (judge.category != 1)).any(axis=2)
members = defaultdict(list)
for r, t in zip(*np.nonzero(real), strict=True):
    members[int(batch["fields"].context[r, t])].append((r, t))
mixed = [own for own in members.values() if len({bool(useful[place]) for place in own}) == 2]
chosen = max(mixed, key=len)
situation = transitions(episodes[chosen[0][0]], benchmark)[1][chosen[0][1]]
told = ", ".join(f"{name} {situation[name]}" for name in benchmark.library.context)
by_verb = defaultdict(list)
for place in chosen:
    action = episodes[place[0]].steps[place[1]].action or "(no action)"
    by_verb[action.split()[0]].append(place)
verbs = sorted(by_verb, key=lambda verb: -np.mean([G[place] for place in by_verb[verb]]))

figure, axis = plt.subplots(figsize=(11, 0.5 * len(verbs) + 2), layout="constrained")
rng = np.random.default_rng(0)
for row, verb in enumerate(verbs):
    places = by_verb[verb]
    x, lift = np.array([G[place] for place in places]), rng.uniform(-0.2, 0.2, len(places))
    colours = [COLOURS[0] if useful[place] else "#999999" for place in places]
    axis.scatter(x, row + lift, s=34, c=colours, alpha=0.75, edgecolor="white", linewidth=0.6, zorder=3)
    axis.plot([x.mean()] * 2, [row - 0.32, row + 0.32], color="#222222", linewidth=2, zorder=4)
everyone = np.array([G[place] for place in chosen])
axis.axvline(everyone.mean(), color=COLOURS[1], linewidth=1.4, linestyle="--", zorder=2)
axis.text(everyone.mean(), 1.01, " mean: A_S = 0", color=COLOURS[1], fontsize=8.5, transform=axis.get_xaxis_transform())
axis.set_yticks(range(len(verbs)), [f"{verb}  ({len(by_verb[verb])})" for verb in verbs])
axis.set_ylim(len(verbs) - 0.5, -0.5)
axis.grid(axis="y", visible=False)
axis.set_xlabel("return G: what came of it; blue: an operator fired at once")
axis.set_title(f"One context: {told}", fontsize=9.5, pad=16)
plt.show()

# %% [markdown]
# ## By hand
#
# Nothing is hidden in the kernel: standardise the returns of the context, and there is A_S.

# %%
by_hand = (everyone - everyone.mean()) / (everyone.std(ddof=1) + 1e-6)
error = np.abs(by_hand - np.array([A_S[place] for place in chosen])).max()
print(f"{len(chosen)} steps in this context, largest difference to the kernel {error:.1e}")
