"""The config.json of published models: sizes, both ways to say a thing, and what is refused."""

import json

import jax
import pytest
from tiny import TINY, UNTIED

from trca_jax.policy.config import PRESETS, hf_config, preset, read_config
from trca_jax.policy.qwen2 import init_params, parameter_count

# As published: in all, and in billions in all and without the embedding and the head (rounded down, more or less).
PUBLISHED = {
    "qwen2.5-0.5b": (494_032_768, 0.49, 0.36),
    "qwen2.5-1.5b": (1_543_714_304, 1.54, 1.31),
    "qwen2.5-3b": (3_085_938_688, 3.09, 2.77),
    "qwen2.5-7b": (7_615_616_512, 7.61, 6.53),
    "qwen2.5-14b": (14_770_033_664, 14.7, 13.1),
    "qwen2.5-32b": (32_763_876_352, 32.5, 31.0),
    "qwen2.5-72b": (72_706_203_648, 72.7, 70.0),
}


def written(folder, **changes):
    """A folder with the config of the tiny model, changed; None removes an entry."""
    content = {**hf_config(TINY, "bfloat16"), **changes}
    (folder / "config.json").write_text(json.dumps({k: x for k, x in content.items() if x is not None}))
    return folder


@pytest.mark.parametrize("name", PRESETS)
def test_the_sizes_have_the_published_numbers_of_parameters(name):
    exact, total, inner = PUBLISHED[name]
    found, without = parameter_count(preset(name))
    assert found == exact
    assert (found / 1e9, without / 1e9) == pytest.approx((total, inner), rel=0.01)
    assert preset(name).head_dim == (64 if name == "qwen2.5-0.5b" else 128)


@pytest.mark.parametrize("config", [TINY, UNTIED], ids=["tied", "untied"])
def test_parameters_are_counted_as_they_are(config):
    params = jax.jit(init_params, static_argnums=0)(config, jax.random.key(0))
    table = config.vocab_size * config.hidden_size * (1 if config.tie_embeddings else 2)
    total = sum(x.size for x in jax.tree.leaves(params))
    assert parameter_count(config) == (total, total - table)


def test_a_preset_can_be_changed_and_must_exist():
    assert preset("qwen2.5-7b", dtype="bfloat16").dtype == "bfloat16"
    with pytest.raises(ValueError, match=r"model size 'qwen3-4b' is unknown, expected one of qwen2\.5-0\.5b, .*-72b"):
        preset("qwen3-4b")


def test_both_places_of_the_rope_base_and_the_head_size_are_read(tmp_path):
    assert read_config(written(tmp_path, head_dim=None), remat="none") == TINY  # published files leave head_dim out
    with pytest.raises(ValueError, match=r"config\.json: rope_theta missing"):
        read_config(written(tmp_path, rope_theta=None))
    new = {"rope_theta": TINY.rope_theta, "rope_type": "default"}
    assert read_config(written(tmp_path, rope_theta=None, rope_parameters=new), remat="none") == TINY
    assert read_config(tmp_path, dtype="bfloat16").dtype == "bfloat16"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "llama"}, "model_type is 'llama', expected 'qwen2'; give a Qwen2"),
        ({"use_sliding_window": True}, "use_sliding_window is true, expected false"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "RoPE is scaled by 'yarn', expected plain RoPE"),
        ({"rope_parameters": {"rope_type": "linear", "rope_theta": 1e6}}, "RoPE is scaled by 'linear'"),
        ({"hidden_size": None, "vocab_size": None}, "vocab_size, hidden_size missing"),
    ],
)
def test_other_models_are_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=rf"config\.json: {message}"):
        read_config(written(tmp_path, **change))


def test_what_is_said_but_off_is_no_matter(tmp_path):
    assert read_config(written(tmp_path, use_sliding_window=False, rope_scaling=None), remat="none") == TINY


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"config\.json: no such file; a model folder holds config\.json"):
        read_config(tmp_path)
    for broken in ("{", "[]"):
        (tmp_path / "config.json").write_text(broken)
        with pytest.raises(ValueError, match=r"config\.json .*copy it again"):
            read_config(tmp_path)
