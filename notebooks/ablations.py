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
# # Ablations
#
# What does each part of TRCA do? An ablation is a grid of runs that differ in one thing:
#
# | `configs/ablations/` | what differs |
# | --- | --- |
# | `lambda.py` | λ, the share of the breakthrough reward, from 0 to 1 |
# | `rewards.py` | without r_F, without r_B, without both |
# | `budgets.py` | what a category of the rubric may pay |
# | `invalidity.py` | what counts as invalid: narrow, wide, nothing |
# | `context.py` | the fields of the decision context |
# | `advantage.py` | A_E or A_S alone |
# | `methods.py` | the whole credit method |
#
# ```bash
# python launch/sweep.py --config=configs/ablations/lambda.py      # writes runs/lambda/results.jsonl
# ```
#
# It can be stopped at any time and goes on where it was. Behind the file stands the config that the grid lies over,
# as in `lambda.py:webshop`, or `lambda.py:chests.config` for the little world of
# [new_benchmark](new_benchmark.ipynb). The sweep that is read below was made in that world, with two seeds, 320
# rollouts a run and 32 held-out tasks: a minute a run, enough to see how results are read, and far too little to
# choose λ by. Put the file of your own sweep in its place.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from trca_jax.evaluation.efficiency import common_budget, curves, efficiency
from trca_jax.evaluation.report import COLOURS, NOTE, STYLE
from trca_jax.evaluation.results import read_results

plt.rcParams.update(STYLE)
RECORDED = next(folder for folder in (Path("recorded"), Path("notebooks/recorded")) if folder.is_dir())
rows = [row for row in read_results(RECORDED / "lambda.jsonl") if row["kind"] == "all"]

# %% [markdown]
# ## The table

# %%
found = curves(rows)
budget = common_budget(found)
figures = efficiency(found, [budget], goal=0.5)
trained = {name: [row for row in rows if row["setting"] == name and "useful" in row] for name in found}
mean = {
    name: {key: np.mean([row[key] for row in own]) for key in ("useful", "foundational", "breakthrough")}
    for name, own in trained.items()
}
print(f"{'':7s} after {budget:,.0f} rollouts      on the way           useful   r_F    r_B  a rollout")
for name, of in figures.items():
    shares = [f"{value:5.1%} [{low:.0%}, {high:.0%}]" for value, low, high in (of["success"][0], of["area"])]
    figure_of = mean[name]
    print(
        f"{name:7s} {shares[0]:20s}   {shares[1]:20s} {figure_of['useful']:6.1%}  "
        f"{figure_of['foundational']:+.2f}  {figure_of['breakthrough']:+.2f}"
    )

# %% [markdown]
# ## Curves
#
# λ = 0 pays for every useful transition and punishes invalid ones; λ = 1 pays for what is covered for the first time,
# and an invalid step costs nothing but time.

# %%
shades = plt.get_cmap("viridis")(np.linspace(0.85, 0.1, len(found)))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(3, 2), layout="constrained")
for (name, curve), colour in zip(found.items(), shades, strict=True):
    left.plot(curve.rollouts, curve.success, color=colour, marker="o", ms=5, mec="white", linewidth=2.2, label=name)
left.set(xlabel="sampled rollouts", ylim=(0, None))
left.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
left.legend(loc="upper left")
left.set_title("Held-out success")
left.set_title("mean over seeds and games", loc="right", **NOTE)

values = [float(name.removeprefix("λ=")) for name in found]
for key, label, colour, aside in (
    ("success", f"after {budget:,.0f} rollouts", COLOURS[0], -0.012),
    ("area", "on the way", COLOURS[1], 0.012),
):
    value, low, high = np.array([of[key][0] if key == "success" else of[key] for of in figures.values()]).T
    right.errorbar(
        np.array(values) + aside, value, [value - low, high - value], color=colour, marker="o", ms=6.5, mec="white",
        capsize=3, label=label,
    )  # fmt: skip
right.axvline(0.8, color="#888888", linewidth=0.9, linestyle="--", zorder=0)
right.text(0.79, 0.02, "published choice", ha="right", transform=right.get_xaxis_transform(), **NOTE)
right.set(xlabel="λ", ylim=(0, 1.1 * max(of["success"][0][2] for of in figures.values())))
right.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
right.legend(loc="upper left", bbox_to_anchor=(0, 1.02), ncols=2, fontsize=9)
right.set_title("Success against λ")
right.set_title("bars: 95 %", loc="right", **NOTE)
plt.show()

# %% [markdown]
# ## What the rewards see
#
# The rewards themselves are judged in every run, whatever λ makes of them. If λ matters, runs with a high λ should
# gather more coverage (r_B), and runs with a low λ more immediate credit (r_F), which also counts repetition and
# invalid steps.

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
names = {"useful": "Useful transitions", "foundational": "r_F a rollout", "breakthrough": "r_B a rollout"}
for axis, (key, title) in zip(axes, names.items(), strict=True):
    for (name, own), colour in zip(trained.items(), shades, strict=True):
        places = sorted({row["rollouts"] for row in own})
        heights = [np.mean([row[key] for row in own if row["rollouts"] == place]) for place in places]
        axis.plot(places, heights, color=colour, marker="o", ms=5, mec="white", linewidth=2, label=name)
    axis.set_title(title)
    axis.set_xlabel("sampled rollouts")
axes[0].yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
axes[2].legend(fontsize=8.5)
plt.show()
