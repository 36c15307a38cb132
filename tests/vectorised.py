"""The credit methods as one would write them in numpy for speed: bincount, cumulative sums, no loop over rows.

A third opinion beside the kernels and the loops, and what the benchmark compares the kernels with.
"""

import numpy as np


def live(batch):
    return np.arange(batch.r_env.shape[1]) < batch.length[:, None]


def standardise(x, ids, ddof=1, eps=1e-6, singleton="zero", floor=0.0):
    """x, ids: 1-d arrays; every element by the mean and std of its group, 0 where all are equal."""
    count = np.bincount(ids)
    mean = np.bincount(ids, x) / np.maximum(count, 1)
    deviation = x - mean[ids]
    std = np.sqrt(np.bincount(ids, deviation**2) / np.maximum(count - ddof, 1) + floor)
    widest = np.zeros(len(count))
    np.maximum.at(widest, ids, np.abs(deviation))
    flat = widest <= 1e-6 * np.maximum(1, np.abs(mean))
    y = np.where(flat[ids], 0, deviation / (std[ids] + eps))
    return np.where(count[ids] == 1, x / (1 + eps), y) if singleton == "raw" else y


def spread(values, mask):
    """Values of the real steps back in their places."""
    out = np.zeros(mask.shape)
    out[mask] = values
    return out


def discounted(rewards, mask, gamma):
    out, later = np.zeros(mask.shape), np.zeros(len(mask))
    for t in range(mask.shape[1] - 1, -1, -1):
        later = mask[:, t] * (rewards[:, t] + gamma * later)
        out[:, t] = later
    return out


def total_reward(batch, mask):
    return np.where(mask, batch.r_env, 0.0).sum(axis=1)


def row_scores(batch, mask):
    return np.broadcast_to(total_reward(batch, mask)[:, None], mask.shape)


def task_rows(batch, mask):
    return np.broadcast_to(batch.group[:, None], mask.shape)[mask]


def grpo(batch):
    mask = live(batch)
    return spread(standardise(row_scores(batch, mask)[mask], task_rows(batch, mask), singleton="raw"), mask)


def rloo(batch):
    mask = live(batch)
    score, ids = row_scores(batch, mask)[mask], task_rows(batch, mask)
    count = np.bincount(ids)
    deviation = score - (np.bincount(ids, score) / np.maximum(count, 1))[ids]
    scaled = deviation * count[ids] / np.maximum(count[ids] - 1, 1)
    return spread(np.where(count[ids] == 1, score, np.where(np.abs(deviation) <= 1e-6, 0, scaled)), mask)


def gigpo(batch, gamma=0.95):
    mask = live(batch)
    returns = discounted(np.where(mask, batch.r_env, 0.0), mask, gamma)
    return grpo(batch) + spread(standardise(returns[mask], batch.context[mask]), mask)


def graphgpo(batch, gamma=0.1):
    mask = live(batch)
    rollouts, steps = mask.shape
    won = total_reward(batch, mask) > 0
    arrives = (won[:, None] & (np.arange(steps) == batch.length[:, None] - 1))[mask]
    here, there, task = batch.context[mask], batch.next_context[mask], task_rows(batch, mask)
    distance = np.full(rollouts * (steps + 1), np.inf)
    while True:
        before = distance.copy()
        np.minimum.at(distance, here, 1 + np.where(arrives, 0.0, distance[there]))
        if (distance == before).all():
            break
    after = np.where(arrives, 0.0, distance[there])
    far = np.zeros(rollouts)
    for x in (after, distance[here]):
        np.maximum.at(far, task, np.where(np.isfinite(x), x, 0.0))
    returns = 10 * gamma ** np.where(np.isfinite(after), after, 1 + far[task])
    return grpo(batch) + spread(standardise(returns, here), mask)


def trca(batch, lam=0.8, gamma=0.95):
    mask = live(batch)
    fired = np.where(mask[:, :, None], batch.judgement, 0).astype(float)
    weight = np.zeros(batch.item_category.shape)
    for category, sign in ((0, 1.0), (1, -1.0), (2, 1.0)):
        member = (batch.item_category == category) & (batch.item_mask > 0)
        weight += member * sign / np.maximum(member.sum(axis=1, keepdims=True), 1)
    covered = np.maximum.accumulate(fired, axis=1)
    new = np.diff(covered, axis=1, prepend=0)
    reward = (1 - lam) * np.einsum("rtj,rj->rt", fired, weight)
    reward += lam * np.einsum("rtj,rj->rt", new, np.maximum(weight, 0))
    return compared(batch, mask, mask, reward, gamma)


def prm(batch, gamma=0.95):
    mask = live(batch)
    missing = mask & np.isnan(batch.step_score)
    known = mask & ~np.logical_or.accumulate(missing[:, ::-1], axis=1)[:, ::-1]
    return compared(batch, mask, known, np.where(mask & ~missing, batch.step_score, 0.0), gamma)


def compared(batch, mask, known, reward, gamma):
    returns = discounted(reward + np.where(mask, batch.r_env, 0.0), mask, gamma)
    step = spread(standardise(returns[known], batch.context[known]), known)
    played = mask[:, 0]
    episode = spread(standardise(batch.outcome[played].astype(float), batch.group[played]), played)
    return np.where(mask, episode[:, None] + step, 0.0)


def hcapo(batch, gamma=0.95):
    mask = live(batch)
    total, left = total_reward(batch, mask), batch.length[:, None] - 1 - np.arange(mask.shape[1])
    chance = np.where(mask, np.exp(np.where(mask, batch.hindsight_logp, 0.0) / 5.0), 0.0)
    mean = chance.sum(axis=1) / np.maximum(batch.length, 1)
    ratio = np.clip(chance / np.where(mean > 0, mean, 1)[:, None], 0.8, 1.2)
    value = ratio * gamma ** np.maximum(left, 0) * total[:, None]
    micro = spread(standardise(value[mask], task_rows(batch, mask), ddof=0), mask)
    micro = np.where((batch.outcome > 0)[:, None], np.maximum(micro, 0), micro)
    played = mask[:, 0]
    macro = spread(standardise(total[played], batch.group[played], ddof=0), played)
    return np.where(mask, macro[:, None] + micro, 0.0)


def igpo(batch):
    mask = live(batch)
    final = np.arange(mask.shape[1]) == batch.length[:, None] - 1
    reward = np.where(final, total_reward(batch, mask)[:, None], np.diff(batch.gold_logp, axis=1))
    ids = task_rows(batch, mask) * 2 + final[mask]
    return discounted(spread(standardise(reward[mask], ids, ddof=0, floor=1e-8), mask), mask, 1.0)


def trace(batch, horizon=3, gamma=0.8):
    mask = live(batch)
    tool = mask & (batch.tool > 0)
    turns, steps = tool.sum(axis=1), mask.shape[1]
    played = mask[:, 0]
    outcome = spread(standardise(total_reward(batch, mask)[played], batch.group[played], ddof=0, eps=1e-30), played)
    known = np.arange(steps + 1) <= turns[:, None]
    value = -np.log(0.1 - np.where(known, batch.gold_logp, 0.0))
    delta = np.pad(np.where(tool, np.diff(value, axis=1), 0.0), ((0, 0), (0, horizon)))
    there = np.pad(tool, ((0, 0), (0, horizon)))
    credit = sum(gamma**k * delta[:, k : k + steps] for k in range(horizon))
    weight = sum(gamma**k * there[:, k : k + steps] for k in range(horizon))
    left = turns[:, None] - np.arange(steps)
    turn = credit / np.maximum(weight, 1e-9)
    turn += (left <= horizon) * 2.0 * gamma ** np.maximum(left, 0) * outcome[:, None]
    return np.where(mask, outcome[:, None] + 0.2 * np.where(tool, turn, 0.0), 0.0)


def whitened_tokens(batch, mask, left):
    """Token advantages with γ = λ = 1, where the sums telescope: what is still earned − V, whitened; mean of a step."""
    tokens = mask[:, :, None] & (batch.token_mask > 0)
    plain = np.where(tokens, left[:, :, None] - np.where(tokens, batch.token_values, 0.0), 0.0)
    n = tokens.sum()
    centre = plain.sum() / (n + 1e-8)
    variance = ((plain - centre) ** 2 * tokens).sum() / (n + 1e-8) * n / max(n - 1, 1)
    white = np.where(tokens, (plain - centre) / np.sqrt(variance + 1e-8), 0.0)
    return white.sum(axis=2) / np.maximum(tokens.sum(axis=2), 1)


def ppo(batch):
    mask = live(batch)
    return whitened_tokens(batch, mask, row_scores(batch, mask))


def stepsearch(batch, scale=0.6):
    mask = live(batch)
    similarity = np.where(mask[:, :, None], batch.golden_similarity, -1.0)
    known = (similarity >= 0).any(axis=1, keepdims=True)
    best = np.maximum.accumulate(np.maximum(similarity, 0), axis=1)
    before = np.concatenate([np.zeros_like(best[:, :1]), best[:, :-1]], axis=1)
    gain = np.where(known, np.maximum(similarity - before, 0), 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    shaped = np.where(known.any(axis=2), gain - np.where(mask, batch.redundancy, 0.0), 0.0)
    left = discounted(np.where(mask, np.where(mask, batch.r_env, 0.0) + scale * shaped, 0.0), mask, 1.0)
    return whitened_tokens(batch, mask, left)
