"""One update on eight virtual devices and on one, in a process of its own: prints what differs as JSON.

A script, as the number of devices is fixed when JAX starts; tests/learner/test_mesh.py reads what it prints.
"""

import json
import sys

import jax

jax.config.update("jax_num_cpu_devices", 8)

import dataclasses  # noqa: E402

import numpy as np  # noqa: E402
import optax  # noqa: E402
from tiny import TINY, random_params  # noqa: E402

from trca_jax.learner.critic import critic_params, make_critic_update  # noqa: E402
from trca_jax.learner.state import new_state, optimizer  # noqa: E402
from trca_jax.learner.update import PPOSettings, make_scorer, make_update  # noqa: E402
from trca_jax.policy.decoding import Decoding  # noqa: E402
from trca_jax.policy.qwen2 import param_shardings  # noqa: E402
from trca_jax.policy.replica import Replica  # noqa: E402
from trca_jax.policy.sampler import Buckets, Sampler  # noqa: E402
from trca_jax.policy.sharding import make_mesh  # noqa: E402
from trca_jax.policy.tokens import STOPPED  # noqa: E402
from trca_jax.rollout.pack import TokenBatch  # noqa: E402

B, L, A, R, T = 16, 24, 8, 4, 5


def batch() -> TokenBatch:
    rng = np.random.default_rng(0)
    response = np.zeros((B, L), bool)
    places = np.full((B, A), L, np.int32)
    for b in range(B):
        start, n = 4 + b % 7, 3 + b % 6
        response[b, start : start + n] = True
        places[b, :n] = np.arange(start, start + n)
    draw = lambda scale: (scale * rng.standard_normal((B, L))).astype(np.float32)  # noqa: E731
    return TokenBatch(
        tokens=rng.integers(0, TINY.vocab_size, (B, L)).astype(np.int32), segment_ids=np.ones((B, L), np.int8),
        behaviour_logp=-4 + draw(0.3), response_mask=response, action_mask=response & (np.arange(L) % 3 > 0),
        transition=rng.integers(0, R * T, (B, L)).astype(np.int32),
        place=np.where(response, response.cumsum(axis=1) - 1, 0).astype(np.int32), allowed=None, scored=places,
        reference_logp=-4 + draw(0.3),
    )  # fmt: skip


def run(config, mesh, rows):
    """Gradients (plain descent), two steps of the optimizer, scores and a critic's step on this mesh."""
    rng = np.random.default_rng(1)
    advantage = rng.standard_normal((R, T)).astype(np.float32)
    values, returns = rng.standard_normal((2, R, T, A)).astype(np.float32)
    settings = PPOSettings(micro_rows=8, kl=0.3, entropy=0.05)
    adam = optimizer(lr=1e-3, warmup=0, weight_decay=0.1, clip_norm=1.0, b2=0.99)
    placed = jax.device_put(random_params(config), param_shardings(config, mesh))
    where = lambda state: jax.tree.map(lambda x: x.sharding, state)  # noqa: E731
    out = {}
    with jax.set_mesh(mesh):
        plain = new_state(placed, optax.sgd(1.0), mesh)
        moved, metrics = make_update(config, optax.sgd(1.0), settings, where(plain))(plain, rows, advantage)
        out["gradient"] = jax.tree.map(lambda a, b: np.asarray(a) - np.asarray(b), placed, moved.params)
        out["metrics"] = metrics
        state = new_state(placed, adam, mesh)
        fresh = where(state)
        update = make_update(config, adam, settings, fresh)
        for _ in range(2):
            state, more = update(state, rows, advantage)
        assert where(state) == fresh, "the update moves its state"
        out["more"] = more
        out["scores"] = make_scorer(config, temperature=0.7, micro_rows=8)(placed, rows)
        critic = new_state(critic_params(placed, mesh), adam, mesh)
        step = make_critic_update(config, adam, clip=0.5, micro_rows=8, shardings=where(critic))
        out["critic"] = step(critic, rows, values, returns)[1]
    tokens, out["logp"], cache = sample(config, mesh, placed)
    return jax.device_get(out), state, tokens, cache


def sample(config, mesh, params):
    """Two turns of eight ragged rows: the tokens of the answers, their log-probabilities, the cache."""
    replica = Replica(config, mesh)
    stops = np.zeros((1, config.vocab_size), np.int8)
    stops[:, 3] = STOPPED
    rng = np.random.default_rng(2)
    rows = [list(rng.integers(4, 60, 3 + r % 5)) for r in range(8)]
    tokens, logps = [], []
    with jax.set_mesh(replica.mesh):
        copy = replica(params)
        sampler = Sampler(
            replica.config, 8, max_new=6, stops=stops, buckets=Buckets(chunk=(16,), slots=(32,), commands=(4,))
        )
        for turn in range(2):
            keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(turn), np.arange(8))
            out = sampler.finish_turn(sampler.start_turn(copy, rows, keys, None, Decoding(0.8)))
            tokens.append(out.ids.tolist())
            logps.append(out.logp)
            rows = [[*row, *ids[:n].tolist(), 5] for row, ids, n in zip(rows, out.ids, out.count, strict=True)]
    return tokens, np.stack(logps), sampler._cache


def shapes(tree):
    return [x.addressable_shards[0].data.shape for x in jax.tree.leaves(tree)]


def largest(tree) -> float:
    return max(float(np.abs(x).max()) for x in jax.tree.leaves(tree))


def main():
    config = dataclasses.replace(TINY, tie_embeddings=sys.argv[1] == "tied", remat="layer")
    whole, one, tokens, _ = run(config, make_mesh("", jax.devices()[:1]), batch())
    found = {}
    for mesh in sys.argv[2:]:
        split, state, sampled, cache = run(config, make_mesh(mesh), batch())
        adam = state.opt_state.inner_state[1][0]
        found[mesh] = {
            "difference": {name: largest(jax.tree.map(np.subtract, split[name], whole[name])) for name in whole},
            "size": {name: largest(whole[name]) for name in whole},
            "tokens": sampled == tokens,
            "cache": cache.k.addressable_shards[0].data.shape,
            "gate": state.params["layers"]["gate"]["kernel"].addressable_shards[0].data.shape,
            "moments_as_parameters": shapes(state.params) == shapes(adam.mu) == shapes(adam.nu),
            "bytes": sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(state)),
            "bytes_alone": sum(x.nbytes for x in jax.tree.leaves(one)),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
