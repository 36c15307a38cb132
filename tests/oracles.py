"""Slow, obvious versions of the credit methods: loops over rollouts, steps and items, in Python floats."""

import math
from collections import defaultdict


def mean(values):
    return math.fsum(values) / len(values)


def spread(values, ddof):
    centre = mean(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / max(len(values) - ddof, 1))


def standardise(values, groups, ddof=1, eps=1e-6, use_std=True, singleton="zero"):
    """values, groups: lists of equal length; every value by the mean and std of its group."""
    members = defaultdict(list)
    for value, group in zip(values, groups, strict=True):
        members[group].append(value)
    result = []
    for value, group in zip(values, groups, strict=True):
        others = members[group]
        if len(others) == 1:
            raw = value / (1 + eps) if use_std else value
            result.append(raw if singleton == "raw" else 0.0)
        elif max(others) - min(others) < 1e-6:
            result.append(0.0)
        else:
            result.append((value - mean(others)) / ((spread(others, ddof) + eps) if use_std else 1))
    return result


def leave_one_out(values, groups):
    result = []
    for i, value in enumerate(values):
        others = [v for k, v in enumerate(values) if groups[k] == groups[i] and k != i]
        result.append(value - mean(others) if others else value)
    return result


def discounted(rewards, gamma):
    """rewards of the real steps of one rollout."""
    return [sum(gamma ** (k - t) * rewards[k] for k in range(t, len(rewards))) for t in range(len(rewards))]


def gae(rewards, values, mask, gamma, lam):
    """Advantages of the tokens inside the mask of one row, by position, as the sum Σ (γλ)^k δ over those tokens."""
    inside = [i for i, m in enumerate(mask) if m]
    delta = {}
    for n, i in enumerate(inside):
        value_next = values[inside[n + 1]] if n + 1 < len(inside) else 0.0
        delta[i] = rewards[i] + gamma * value_next - values[i]
    return {
        i: sum((gamma * lam) ** k * delta[later] for k, later in enumerate(inside[n:])) for n, i in enumerate(inside)
    }


def rubric_rewards(judgement, category, bound, budget, per_item=False):
    """r_F and r_B of every step of one rollout. budget: by category, for Evidence, Invalidity, Execution."""
    foundational, breakthrough, seen = [], [], set()
    for fired in judgement:
        r_f = r_b = 0.0
        for item, now in enumerate(fired):
            if not (now and bound[item]):
                continue
            kind = category[item]
            size = sum(1 for other in range(len(fired)) if bound[other] and category[other] == kind)
            worth = budget[kind] if per_item else budget[kind] / size
            r_f += -worth if kind == 1 else worth
            if kind != 1 and item not in seen:
                r_b += worth
            seen.add(item)
        foundational.append(r_f)
        breakthrough.append(r_b)
    return foundational, breakthrough


def live_steps(batch):
    return [(r, t) for r, length in enumerate(batch.length) for t in range(length)]


def trca(
    batch, lam=0.8, gamma=0.95, budget=(1, 1, 1), scale=1.0, penalty=0.0, per_item=False, total=False, pooled=False
):
    """The advantage by (r, t) of the real steps."""
    returns, compared = {}, {}
    for r, length in enumerate(batch.length):
        if length == 0:
            continue
        r_f, r_b = rubric_rewards(
            batch.judgement[r][:length], batch.item_category[r], batch.item_mask[r], budget, per_item
        )
        rewards = [
            scale * batch.r_env[r][t] + (1 - lam) * f + lam * b for t, (f, b) in enumerate(zip(r_f, r_b, strict=True))
        ]
        compared[r] = sum(rewards) if total else batch.outcome[r]
        for t, g in enumerate(discounted(rewards, gamma)):
            returns[r, t] = g - penalty * (1 - batch.valid[r][t])
    contexts = [batch.context[place] for place in returns]
    episode = dict(zip(compared, standardise(list(compared.values()), [batch.group[r] for r in compared]), strict=True))
    step = standardise(list(returns.values()), contexts, use_std=not pooled)
    if pooled:
        std = math.sqrt(sum(s**2 for s in step) / max(len(step) - len(set(contexts)), 1))
        step = [s / (std + 1e-6) for s in step]
    return {place: episode[place[0]] + s for place, s in zip(returns, step, strict=True)}


def row_scores(batch, penalty=0.0):
    """Score by (r, t): the rollout's total reward minus the step's penalty."""
    return {
        (r, t): sum(batch.r_env[r][: batch.length[r]]) - penalty * (1 - batch.valid[r][t]) for r, t in live_steps(batch)
    }


def grpo(batch, penalty=0.0):
    scores = row_scores(batch, penalty)
    values = standardise(list(scores.values()), [batch.group[r] for r, _ in scores], singleton="raw")
    return dict(zip(scores, values, strict=True))


def rloo(batch, penalty=0.0):
    scores = row_scores(batch, penalty)
    values = leave_one_out(list(scores.values()), [batch.group[r] for r, _ in scores])
    return dict(zip(scores, values, strict=True))


def gigpo(batch, gamma=0.95, omega=1.0, penalty=0.0):
    returns = {}
    for r, length in enumerate(batch.length):
        for t, g in enumerate(discounted(list(batch.r_env[r][:length]), gamma)):
            returns[r, t] = g - penalty * (1 - batch.valid[r][t])
    step = standardise(list(returns.values()), [batch.context[place] for place in returns])
    episode = grpo(batch, penalty)
    return {place: episode[place] + omega * s for place, s in zip(returns, step, strict=True)}
