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
# Here the same figures are taken from the study of the README: real games of ALFWorld, four task types, a policy of
# 0.8 M parameters, three methods with three seeds each, 404 held-out episodes after every 640 rollouts up to 2,560. Put
# the file of your own sweep in its place:
#
# ```bash
# python launch/sweep.py --config=configs/ablations/methods.py     # writes runs/methods/results.jsonl
# python launch/compare.py runs/methods/*/                         # the same as a table and pictures
# ```

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from trca_jax.evaluation.efficiency import Curve, area, common_budget, curves, efficiency, interval, resample
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
budgets = [budget / 4, budget / 2, budget]
goal = min(float(curve.success.max()) for curve in found.values())
figures = efficiency(found, budgets, goal)
for name, of in figures.items():
    print(name)
    for label, (value, low, high) in zip([f"after {b:,.0f}" for b in budgets], of["success"], strict=True):
        print(f"   {label:18s} {value:6.1%}   [{low:.1%}, {high:.1%}]")
    value, low, high = of["area"]
    print(f"   {'on the way':18s} {value:6.1%}   [{low:.1%}, {high:.1%}]")
    value, low, high = of["reached"]
    print(f"   {f'rollouts to {goal:.0%}':18s} {value:6,.0f}   [{low:,.0f}, {high:,.0f}]")

# %%
figure, axes = plt.subplot_mosaic(
    [["curve", "area"], ["curve", "reached"]], figsize=(11, 4.6), width_ratios=(3, 2), layout="constrained"
)
draw_curves(axes["curve"], found, figures, budgets, goal)
axes["curve"].legend(loc="upper left")
axes["curve"].set_title("Held-out success")
axes["curve"].set_title("bands: 95 %, over seeds and games", loc="right", **NOTE)
draw_figures(axes["area"], figures, "area")
axes["area"].set_title("Mean success on the way")
draw_figures(axes["reached"], figures, "reached")
axes["reached"].set_title(f"Rollouts to {goal:.0%}")
plt.show()

# %% [markdown]
# The same by kind of task, where a quarter of the games makes the bands twice as wide:

# %%
kinds = sorted({row["kind"] for row in rows} - {"all"})
figure, axes = plt.subplots(1, len(kinds), figsize=(11, 3), sharey=True, layout="constrained", squeeze=False)
for axis, kind in zip(axes.flat, kinds, strict=True):
    own = curves(rows, kind)
    draw_curves(axis, own, efficiency(own, budgets, goal), budgets, None)
    axis.set_title(kind.replace("_then_place_in_recep", "").replace("_", " "))
axes[0, 0].legend(loc="upper left")
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
        bins = np.linspace(values.min(), values.max(), 41)
        axes.hist(values, bins, density=True, histtype="stepfilled", alpha=0.2, color=colour)
        axes.hist(values, bins, density=True, histtype="step", linewidth=1.6, color=colour, label=name)
        axes.plot([low, high], [-1.2 * (place + 1 - first)] * 2, color=colour, linewidth=3, solid_capstyle="round")
    axes.locator_params(axis="x", steps=[1, 2, 5, 10])
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper right")
left.set_title("Mean success on the way")
right.set_title(f"{names[0]} less each other method")
right.axvline(0, color="#444444", linewidth=1, linestyle="--")
right.set_title("bars: 95 %", loc="right", **NOTE)
plt.show()

# %%
for other, values in ahead.items():
    low, high = interval(values)
    share = np.mean(values > 0)
    print(f"{names[0]} less {other}: {values.mean():+.1%} [{low:+.1%}, {high:+.1%}], ahead in {share:.1%} of the draws")

# %% [markdown]
# ## How many seeds and games does it take?
#
# The width of an interval says what a study of this size can tell apart. Larger studies are cheap to try here: pretend
# that there were several times as many of the same seeds and of the same games. Three seeds agree quite well in this
# study, so that it is the games that are few.

# %%
curve = found[names[0]]
width = np.zeros((4, 3))
times, more = (1, 2, 4, 8), (1, 2, 4)
for i, seeds in enumerate(times):
    for j, games in enumerate(more):
        larger = Curve(curve.rollouts, np.tile(curve.won, (seeds, 1, games)))
        low, high = interval(area(larger.rollouts, resample(larger, 500, 0), budget))
        width[i, j] = high - low
counts = [len(curve.won) * n for n in times], [curve.won.shape[2] * n for n in more]

figure, axis = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
for j, games in enumerate(counts[1]):
    axis.plot(
        counts[0], width[:, j], marker="o", ms=5.5, mec="white", linewidth=2, color=COLOURS[j], label=f"{games} games"
    )
axis.set(xlabel="seeds", ylim=(0, None), xticks=counts[0])
axis.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
axis.legend()
axis.set_title(f"Width of the 95 % interval, {names[0]} on the way")
plt.show()
