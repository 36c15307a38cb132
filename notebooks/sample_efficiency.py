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
# # Sample efficiency
#
# Rollouts are what reinforcement learning of agents pays for. So methods are compared **at equal numbers of complete
# rollouts**: how much they have learned after a budget, how much on the way there, and how many rollouts they need to
# get somewhere. The published study does it after 1,920, 3,840 and 6,400 rollouts, that is 15, 30 and 50 iterations of
# 16 tasks with 8 rollouts.
#
# Here the same figures are taken from the study that the README shows: TRCA, GiGPO and GRPO with the tiny policy on
# real ALFWorld games, three seeds each. Put the path of your own results in its place:
#
# ```bash
# python launch/sweep.py --config=configs/ablations/methods.py     # writes runs/methods/results.jsonl
# python launch/compare.py runs/methods/*/                         # the same as a table and pictures
# ```

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from trca_jax.evaluation.efficiency import area, common_budget, curves, efficiency, interval, resample
from trca_jax.evaluation.efficiency_view import draw_curves, draw_figures
from trca_jax.evaluation.report import COLOURS, NOTE, STYLE
from trca_jax.evaluation.results import read_results

plt.rcParams.update(STYLE)
RECORDED = next(folder for folder in (Path("recorded"), Path("notebooks/recorded")) if folder.is_dir())
rows = read_results(RECORDED / "methods.jsonl")

# %% [markdown]
# ## The file
#
# One line of JSON for each run, evaluation and kind of task. `won` holds every held-out episode, game by game, so that
# nothing has to be taken for independent that is not. Rows of an evaluation also tell how the training before it went.

# %%
last = max((row for row in rows if row["kind"] == "all"), key=lambda row: row["rollouts"])
for name, value in last.items():
    print(f"{name:22s} {value}")

# %% [markdown]
# ## Curves and what they come to
#
# A curve is a table of seeds, evaluations and games. Between evaluations success lies on straight lines. The goal is
# the highest success that every method reaches at some time.

# %%
found = curves(rows)
budget = common_budget(found)
goal = min(float(curve.success.max()) for curve in found.values())
figures = efficiency(found, [budget / 2, budget], goal)
for name, of in figures.items():
    half, full = of["success"]
    value, low, high = of["area"]
    print(
        f"{name:6s} after {budget / 2:,.0f}: {half[0]:.1%}   after {budget:,.0f}: {full[0]:.1%}   "
        f"on the way: {value:.1%} [{low:.1%}, {high:.1%}]   rollouts to {goal:.0%}: {of['reached'][0]:,.0f}"
    )

# %%
figure, axes = plt.subplot_mosaic(
    [["curve", "area"], ["curve", "reached"]], figsize=(11, 4.6), width_ratios=(3, 2), layout="constrained"
)
draw_curves(axes["curve"], found, figures, [budget / 2, budget], goal)
axes["curve"].legend(loc="upper left")
axes["curve"].set_title("Held-out success")
axes["curve"].set_title("bands: 95 %, over seeds and games", loc="right", **NOTE)
draw_figures(axes["area"], figures, "area")
axes["area"].set_title("Mean success on the way")
draw_figures(axes["reached"], figures, "reached")
axes["reached"].set_title(f"Rollouts to {goal:.0%}")
plt.show()

# %% [markdown]
# ## Where the intervals come from
#
# Two things could have been otherwise: the seed, and the games that were held out. So both are drawn anew, with
# replacement, thousands of times, and every figure is computed for each draw (Owen's crossed bootstrap). A game keeps
# its draw over the whole curve and over all methods: the difference of two methods is then known better than each of
# them, as a hard game is hard for both.

# %%
DRAWS = 4000
names = list(found)
samples = {name: area(found[name].rollouts, resample(found[name], DRAWS, 0), budget) for name in names}
ahead = {other: samples[names[0]] - samples[other] for other in names[1:]}

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
for axes, parts, first in ((left, samples, 0), (right, ahead, 1)):
    for place, (name, values) in enumerate(parts.items(), first):
        low, high = interval(values)
        colour = COLOURS[place % len(COLOURS)]
        # Few games give few different values; a little noise shows how often each one comes.
        smooth = values + np.random.default_rng(0).normal(0, 0.006, len(values))
        axes.hist(smooth, bins=60, density=True, histtype="stepfilled", alpha=0.2, color=colour)
        axes.hist(smooth, bins=60, density=True, histtype="step", color=colour, label=name)
        axes.plot([low, high], [-0.6 * (place + 1 - first)] * 2, color=colour, linewidth=3, solid_capstyle="round")
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper right")
left.set_title("Mean success on the way")
right.set_title(f"{names[0]} less each other method")
right.axvline(0, color="#444444", linewidth=1, linestyle="--")
right.set_title("bars: 95 %", loc="right", **NOTE)
plt.show()

# %% [markdown]
# ## How many seeds and games does it take?
#
# The width of an interval says what a study of this size can tell apart. More seeds and more games are cheap to try
# here: pretend that there were several times as many of the same.

# %%
curve = found[names[0]]
more = {}
for seeds in (1, 2, 4, 8):
    for games in (1, 4):
        won = np.tile(curve.won, (seeds, 1, games))
        low, high = interval(area(curve.rollouts, resample(type(curve)(curve.rollouts, won), 1000, 0), budget))
        more[seeds, games] = high - low
        print(f"{won.shape[0]:3d} seeds, {won.shape[2]:3d} games: interval of {high - low:.1%}")
