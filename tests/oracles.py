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
    members = defaultdict(list)
    for i, group in enumerate(groups):
        members[group].append(i)
    result = []
    for i, value in enumerate(values):
        others = [values[k] for k in members[groups[i]] if k != i]
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


def trca(batch, lam=0.8, gamma=0.95, budget=(1, 1, 1), scale=1.0, penalty=0.0, per_item=False, total=False):
    """The advantage by (r, t) of the real steps."""
    rewards = {}
    for r, length in enumerate(batch.length):
        r_f, r_b = rubric_rewards(
            batch.judgement[r][:length], batch.item_category[r], batch.item_mask[r], budget, per_item
        )
        rewards[r] = [(1 - lam) * f + lam * b for f, b in zip(r_f, r_b, strict=True)]
    return compared(batch, rewards, gamma, scale, penalty, total)


def prm(batch, gamma=0.95, scale=1.0, penalty=0.0, total=False):
    scores = {r: list(batch.step_score[r][:length]) for r, length in enumerate(batch.length)}
    return compared(batch, scores, gamma, scale, penalty, total)


def compared(batch, rewards, gamma, scale, penalty, total):
    """rewards: of the real steps of every rollout, NaN where unknown. A step whose return is NaN has no A_S, a rollout
    whose sum is NaN no A_E."""
    returns, values, unknown = {}, {}, set()
    for r, length in enumerate(batch.length):
        if length == 0:
            continue
        sums = [scale * batch.r_env[r][t] + rewards[r][t] for t in range(length)]
        value = sum(sums) if total else batch.outcome[r]
        if not math.isnan(value):
            values[r] = value
        for t, g in enumerate(discounted(sums, gamma)):
            if math.isnan(g):
                unknown.add((r, t))
            else:
                returns[r, t] = g - penalty * (1 - batch.valid[r][t])
    contexts = [batch.context[r][t] for r, t in returns]
    episode = dict(zip(values, standardise(list(values.values()), [batch.group[r] for r in values]), strict=True))
    step = dict(zip(returns, standardise(list(returns.values()), contexts), strict=True))
    return {(r, t): episode.get(r, 0.0) + step.get((r, t), 0.0) for r, t in [*returns, *unknown]}


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
    step = standardise(list(returns.values()), [batch.context[r][t] for r, t in returns])
    episode = grpo(batch, penalty)
    return {place: episode[place] + omega * s for place, s in zip(returns, step, strict=True)}


def graphgpo(batch, penalty=0.0, gamma=0.1, scale=10.0, normalize=False):
    """Distances by a search backwards from the success of each task, one node after another."""
    live, returns = live_steps(batch), {}
    won = {r for r, t in live if sum(batch.r_env[r][: batch.length[r]]) > 0}

    def ends(r, t):
        here, there = ((batch.group[r], int(ids[r][t])) for ids in (batch.context, batch.next_context))
        return here, (batch.group[r], "success") if r in won and t == batch.length[r] - 1 else there

    distance = {(g, "success"): 0 for g in batch.group}
    front, length = set(distance), 0
    while front:
        nearer = [ends(r, t)[0] for r, t in live if ends(r, t)[1] in front and ends(r, t)[0] not in distance]
        front = set(nearer)
        length += 1
        distance |= dict.fromkeys(front, length)
    farthest = defaultdict(int)
    for r, t in live:
        for node in ends(r, t):
            farthest[batch.group[r]] = max(farthest[batch.group[r]], distance.get(node, 0))
    for r, t in live:
        here, there = (distance.get(node, 1 + farthest[batch.group[r]]) for node in ends(r, t))
        power = there - here + 1 if normalize else there
        returns[r, t] = scale * gamma**power - penalty * (1 - batch.valid[r][t])
    step = standardise(list(returns.values()), [batch.context[r][t] for r, t in returns])
    episode = grpo(batch, penalty)
    return {place: episode[place] + s for place, s in zip(returns, step, strict=True)}


def hcapo(batch, t_temp=5.0, low=0.8, high=1.2, gamma=0.95, omega=1.0, smoothing=1.0, do_no_harm=True):
    value, total = {}, {}
    for r, length in enumerate(batch.length):
        if length == 0:
            continue
        total[r] = sum(batch.r_env[r][:length])
        chance = [math.exp(batch.hindsight_logp[r][t] / t_temp) for t in range(length)]
        plain = [
            min(max(p / mean(chance), low), high) * gamma ** (length - 1 - t) * total[r] for t, p in enumerate(chance)
        ]
        for t in range(length):
            later = plain[t + 1] if t + 1 < length else plain[t]
            value[r, t] = smoothing * plain[t] + (1 - smoothing) * later
    macro = dict(zip(total, standardise(list(total.values()), [batch.group[r] for r in total], ddof=0), strict=True))
    micro = standardise(list(value.values()), [batch.group[r] for r, _ in value], ddof=0)
    result = {}
    for (r, t), m in zip(value, micro, strict=True):
        result[r, t] = macro[r] + omega * (max(m, 0.0) if do_no_harm and batch.outcome[r] > 0 else m)
    return result


def igpo(batch, joint=False, probabilities=False, gamma=1.0):
    rewards, kind = {}, {}
    for r, t in live_steps(batch):
        before, after = (batch.gold_logp[r][k] for k in (t, t + 1))
        final = t == batch.length[r] - 1
        gain = math.exp(after) - math.exp(before) if probabilities else after - before
        rewards[r, t] = sum(batch.r_env[r][: batch.length[r]]) if final else gain
        kind[r, t] = (batch.group[r], final and not joint)
    z = dict(zip(rewards, standardise(list(rewards.values()), [kind[place] for place in rewards], ddof=0), strict=True))
    return {(r, t): sum(gamma ** (k - t) * z[r, k] for k in range(t, batch.length[r])) for r, t in rewards}


def trace(batch, horizon=3, gamma=0.8, epsilon=0.1, terminal=2.0, turn_weight=0.2):
    total = {r: sum(batch.r_env[r][:n]) for r, n in enumerate(batch.length) if n}
    outcome = dict(
        zip(total, standardise(list(total.values()), [batch.group[r] for r in total], ddof=0, eps=0), strict=True)
    )
    result = {}
    for r, t in live_steps(batch):
        turns = int(sum(batch.tool[r][: batch.length[r]]))
        result[r, t] = outcome[r]
        if t >= turns:
            continue
        distance = [epsilon - batch.gold_logp[r][k] for k in range(turns + 1)]
        ahead = range(t, min(t + horizon, turns))
        credit = sum(gamma ** (u - t) * math.log(distance[u] / distance[u + 1]) for u in ahead)
        credit /= sum(gamma ** (u - t) for u in ahead) or 1.0
        if t >= turns - max(horizon, 1):
            credit += terminal * gamma ** (turns - t) * outcome[r]
        result[r, t] += turn_weight * credit
    return result


def token_advantages(batch, rewards, trajectory, gamma=1.0, lam=1.0):
    """Whitened GAE by (r, t, l). rewards: of every live step, paid at the last token of its response."""
    rows = defaultdict(list)
    for r, t in live_steps(batch):
        tokens = [i for i, m in enumerate(batch.token_mask[r][t]) if m]
        for i in tokens:
            reward = rewards[r, t] if i == tokens[-1] else 0.0
            rows[r if trajectory else (r, t)].append(((r, t, i), reward, batch.token_values[r][t][i]))
    plain = {}
    for row in rows.values():
        got = gae([reward for _, reward, _ in row], [value for _, _, value in row], [1] * len(row), gamma, lam)
        plain |= {place: got[i] for i, (place, _, _) in enumerate(row)}
    if len(plain) < 2:
        return dict.fromkeys(plain, 0.0)
    centre, std = mean(list(plain.values())), spread(list(plain.values()), 1)
    return {place: (a - centre) / math.sqrt(std**2 + 1e-8) for place, a in plain.items()}


def mean_of_tokens(advantages):
    steps = defaultdict(list)
    for (r, t, _), a in advantages.items():
        steps[r, t].append(a)
    return {place: mean(values) for place, values in steps.items()}


def ppo(batch, penalty=0.0):
    return mean_of_tokens(token_advantages(batch, row_scores(batch, penalty), trajectory=False))


def stepsearch(batch, scale=0.6):
    rewards = {}
    for r, length in enumerate(batch.length):
        best, golden = defaultdict(float), range(batch.golden_similarity.shape[2])
        known = [i for i in golden if any(batch.golden_similarity[r][t][i] >= 0 for t in range(length))]
        for t in range(length):
            now = {i: batch.golden_similarity[r][t][i] for i in known}
            gain = mean([max(now[i] - best[i], 0.0) for i in known]) if known else 0.0
            best |= {i: max(best[i], now[i]) for i in known}
            rewards[r, t] = batch.r_env[r][t] + (scale * (gain - batch.redundancy[r][t]) if known else 0.0)
    return mean_of_tokens(token_advantages(batch, rewards, trajectory=True))
