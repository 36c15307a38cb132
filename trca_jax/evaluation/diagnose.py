"""How scarce success is, and what the transitions of failed rollouts are still good for: the paper's diagnostic study.

Source: paper appendix E (failure rate, success-free group rate and useful-action rate have denominators of their own).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from trca_jax.evaluation.report import wilson
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.judge import fired_categories

LABELS = ("evidence", "execution", "validity", "other")
EVIDENCE, EXECUTION, VALIDITY, OTHER = range(4)
NO_LABEL = -1  # beyond an episode's end, or a transition that the annotator gave no label
SCOPES = ("all", "failed", "success-free")


def rubric_labels(batch) -> Int[np.ndarray, "R T"]:
    """The label of every transition by the rubric library; NO_LABEL beyond the end. batch: a judged CreditBatch.

    Execution if an Execution item fires, else Evidence if an Evidence item does, else Other if the output was not
    parsed or an Invalidity item fires, else Validity (which earns no reward). Source: paper E.2, E.4; the order of the
    first two is ours.
    """
    evidence, invalidity, execution = fired_categories(batch)
    invalid = invalidity | ~np.asarray(batch.valid, bool)
    labels = np.select([execution, evidence, invalid], [EXECUTION, EVIDENCE, OTHER], VALIDITY)
    return np.where(np.arange(labels.shape[1]) < batch.length[:, None], labels, NO_LABEL)


def reasons(batch, labels: Int[np.ndarray, "R T"], items: Sequence[str]) -> dict[str, int]:
    """How many transitions labelled Other each Invalidity item explains, the first that fired in the library's order.

    A reading of Validity that takes every command that was carried out adds those whose item does not say otherwise.
    """
    fired = (batch.judgement * batch.item_mask[:, None]).astype(bool)[labels == OTHER]
    first = np.bincount(fired.argmax(axis=1)[fired.any(axis=1)], minlength=len(items))
    return {name: int(count) for name, count in zip(items, first, strict=True) if count}


def diagnosis(labels: Int[np.ndarray, "R T"], episodes: Sequence[Episode]) -> list[dict[str, Any]]:
    """One record for each kind of task, sorted, and "all" at the end; episodes of one task are a group.

    rollouts, failed, failure_rate with its interval; groups, success_free (without a success), success_free_rate with
    its interval (`wilson`; rates are None without a denominator). transitions: for each of SCOPES (all transitions,
    those of failed rollouts, those of success-free groups) their count, the number of each label, unlabelled, the
    useful share (Evidence, Execution or Validity, the paper's) and the rewarded share (Evidence or Execution, what
    training counts), both of the labelled ones. Episodes that the infrastructure broke count nowhere.
    """
    won = np.array([e.won for e in episodes], bool)
    live = np.array([not e.failure for e in episodes], bool)
    kinds = np.array([e.task.kind for e in episodes])
    names, group = np.unique([e.task.id for e in episodes], return_inverse=True)
    real = np.arange(labels.shape[1]) < np.array([len(e.steps) for e in episodes])[:, None]
    succeeded = np.bincount(group[live & won], minlength=len(names)) > 0
    rows = []
    for kind in [*sorted(set(kinds[live])), "all"]:
        here = live & (kinds == kind) if kind != "all" else live
        failed, free = here & ~won, here & ~succeeded[group]
        own = np.unique(group[here])
        scopes = dict(zip(SCOPES, (here, failed, free), strict=True))
        rows.append({
            "kind": str(kind),
            "rollouts": int(here.sum()), "failed": int(failed.sum()), **_rate("failure", failed.sum(), here.sum()),
            "groups": len(own), "success_free": int((~succeeded[own]).sum()),
            **_rate("success_free", (~succeeded[own]).sum(), len(own)),
            "transitions": {scope: _counts(labels[rows_], real[rows_]) for scope, rows_ in scopes.items()},
        })  # fmt: skip
    return rows


def _rate(name: str, part: int, whole: int) -> dict[str, float | None]:
    low, high = wilson(int(part), int(whole))
    return {f"{name}_rate": float(part / whole) if whole else None, f"{name}_low": low, f"{name}_high": high}


def _counts(labels: Int[np.ndarray, "R T"], real: Bool[np.ndarray, "R T"]) -> dict[str, Any]:
    counts = np.bincount(labels[real & (labels >= 0)], minlength=len(LABELS))
    labelled = int(counts.sum())
    share = lambda *which: float(counts[list(which)].sum() / labelled) if labelled else None  # noqa: E731
    return {
        "count": int(real.sum()), **{name: int(n) for name, n in zip(LABELS, counts, strict=True)},
        "unlabelled": int(real.sum()) - labelled, "useful": share(EVIDENCE, EXECUTION, VALIDITY),
        "rewarded": share(EVIDENCE, EXECUTION),
    }  # fmt: skip


def agreement(one: Int[np.ndarray, "R T"], other: Int[np.ndarray, "R T"]) -> Mapping[str, Any]:
    """Cohen's κ = (p_o − p_e)/(1 − p_e) of two annotators, over the transitions that both gave a label.

    p_o: the share on which they agree. p_e = Σ_c p_c·q_c: the share that equal labels would have by chance, p_c and q_c
    being how often each annotator gives label c. kappa is None where p_e = 1 or there is nothing to compare.
    counts[a][b]: transitions with LABELS[a] by the one and LABELS[b] by the other. Source: Cohen 1960.
    """
    both = (one >= 0) & (other >= 0)
    counts = np.zeros((len(LABELS), len(LABELS)), int)
    np.add.at(counts, (one[both], other[both]), 1)
    n = counts.sum()
    observed, chance = np.trace(counts) / max(n, 1), counts.sum(1) @ counts.sum(0) / max(n, 1) ** 2
    kappa = float((observed - chance) / (1 - chance)) if n and chance < 1 else None
    return {"transitions": int(n), "observed": float(observed), "kappa": kappa, "counts": counts.tolist()}
