"""The sampling loop on the fake world: ids stay as sampled, episodes end for the right reason, alone."""

from random import Random

import jax
import numpy as np
import pytest
from boxes import COMMANDS, Boxes, task
from fake_world import CONFIG, TOKENIZER, ShortPrompt, World

from trca_jax.agents.parse import parse
from trca_jax.agents.prompts import InstructPrompt, WordPrompt
from trca_jax.agents.search_prompt import SearchDialogue
from trca_jax.envs.alfworld.brief import brief
from trca_jax.envs.pool import EnvPool
from trca_jax.policy.decoding import Decoding
from trca_jax.policy.sampler import Buckets, Sampler
from trca_jax.policy.tokens import Decoded
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.pack import pack

GROUP = [task("a")] * 4


@pytest.fixture
def sampled(monkeypatch):
    """Everything that went into the samplers and came out of them: (rows, Turn) by turn."""
    turns, rows = [], []
    start, finish = Sampler.start_turn, Sampler.finish_turn
    monkeypatch.setattr(Sampler, "start_turn", lambda *a: (rows.append([list(r or ()) for r in a[2]]), start(*a))[1])
    monkeypatch.setattr(Sampler, "finish_turn", lambda *a: (turns.append((rows[-1], finish(*a))), turns[-1][1])[1])
    return turns


def same(a, b):
    """Equal episodes; log-probabilities may differ in the last bits, as products of other batch sizes do."""
    assert [len(e.steps) for e in a] == [len(e.steps) for e in b]
    for one, two in zip(a, b, strict=True):
        assert (one.won, one.truncated, one.failure, one.score) == (two.won, two.truncated, two.failure, two.score)
        for s, t in zip(one.steps, two.steps, strict=True):
            assert (s.action, s.action_span, s.before, s.after) == (t.action, t.action_span, t.before, t.after)
            np.testing.assert_array_equal(s.prompt_ids, t.prompt_ids)
            np.testing.assert_array_equal(s.response_ids, t.response_ids)
            np.testing.assert_allclose(s.behaviour_logp, t.behaviour_logp, atol=1e-5)


@pytest.mark.parametrize("decode", ["free", "admissible"])
@pytest.mark.parametrize("prompt", [WordPrompt(brief), ShortPrompt()], ids=["append", "stepwise"])
def test_packed_rows_hold_exactly_the_ids_that_were_sampled(play, sampled, prompt, decode, monkeypatch):
    """No id is made from text again: here decoded words are unknown words."""
    plain = Decoded.text.fget
    monkeypatch.setattr(Decoded, "text", property(lambda self: plain(self).replace("e", "é")))
    episodes = play(GROUP, [0] * 4, prompt=prompt, decode=decode, seed=1)
    assert len(sampled) == max(len(e.steps) for e in episodes) > 1
    for turn, (rows, out) in enumerate(sampled):
        for r, episode in enumerate(episodes):
            if turn >= len(episode.steps):
                assert rows[r] == [] and out.count[r] == 0
                continue
            step = episode.steps[turn]
            n = out.count[r]
            assert n > 0
            np.testing.assert_array_equal(step.response_ids, out.ids[r, :n])
            np.testing.assert_array_equal(step.behaviour_logp, out.logp[r, :n])
            assert (step.allowed is None) == (decode == "free")
            assert rows[r][len(rows[r]) - len(step.prompt_ids) :] == list(step.prompt_ids)
            earlier = [] if prompt.layout == "stepwise" else episode.steps[:turn]
            assert rows[r][: len(rows[r]) - len(step.prompt_ids)] == [
                i for s in earlier for i in [*s.prompt_ids, *s.response_ids]
            ]
    batch = pack(episodes, max_steps=4)
    in_order = [s.response_ids for e in episodes for s in e.steps]
    np.testing.assert_array_equal(batch.tokens[batch.response_mask], np.concatenate(in_order))


def test_actions_come_from_the_sampled_text_and_histories_from_the_episode(play):
    episodes = play(GROUP, [0] * 4, decode="admissible", seed=1)
    world = World().make_env()
    for episode in episodes:
        seen = world.reset(episode.task)
        assert episode.first_observation == seen.text
        for step in episode.steps:
            assert (step.before, step.admissible) == (seen.text, COMMANDS)
            assert step.action == parse(TOKENIZER.decode(step.response_ids), opened=True).action
            assert step.action in COMMANDS and step.action != "help"
            seen = world.step(step.action)
            assert (step.after, step.reward) == (seen.text, seen.reward)
        assert episode.won == seen.won
        assert episode.score == sum(s.reward for s in episode.steps)


def test_a_stepwise_prompt_shows_the_step_before(play):
    for episode in play(GROUP, prompt=ShortPrompt(), decode="admissible"):
        for before, step in zip(episode.steps, episode.steps[1:], strict=False):
            text = f"task open the red box scene {before.before} {before.action} {step.before} <action>"
            assert list(step.prompt_ids) == TOKENIZER.encode(text)


def test_a_malformed_answer_is_no_action_and_the_world_hears_an_empty_one(play, monkeypatch):
    heard = []
    step = Boxes.step
    monkeypatch.setattr(Boxes, "step", lambda self, action: (heard.append(action), step(self, action))[1])
    episodes = play(GROUP, decode="free")
    actions = [s.action for e in episodes for s in e.steps]
    assert None in actions and any(actions)
    assert sorted(heard) == sorted(a or "" for a in actions)
    for s in (s for e in episodes for s in e.steps):
        text = TOKENIZER.decode(s.response_ids)
        assert (s.action is None) == (not text.endswith(" </action>"))
        assert s.action_span == ((0, 0) if s.action is None else (0, len(s.response_ids)))


def test_only_the_step_limit_truncates_and_only_the_world_says_won(play):
    """Without a box of the colour nobody wins; a world may end by itself, also at the limit; one first box wins."""
    tasks = [
        task("a", "yellow"),
        task("b", "yellow", ends=2),
        task("c", "yellow", ends=4),
        task("d", colours=["red"] * 3),
    ]
    limit, ended, at_limit, solved = play(tasks, decode="admissible", seed=4)
    assert (len(limit.steps), limit.truncated, limit.won) == (4, True, False)
    assert (len(ended.steps), ended.truncated, ended.won) == (2, False, False)
    assert (len(at_limit.steps), at_limit.truncated, at_limit.won) == (4, False, False)
    assert (solved.truncated, solved.won, solved.steps[-1].reward) == (False, True, 1.0)
    assert solved.steps[-1].action.startswith("open")
    assert limit.steps[-1].after  # the last action was answered


def test_a_row_without_room_for_another_turn_is_truncated(play, params):
    """13 tokens of the first prompt, at most 4 of an answer, 3-5 of a later prompt, 4 kept for the next answer."""
    small = Buckets(chunk=(32,), slots=(26,), commands=(4,))
    for episode in play([task("a", "yellow")] * 4, decode="free", buckets=small, max_steps=9):
        used = sum(len(s.prompt_ids) + len(s.response_ids) for s in episode.steps)
        assert episode.truncated and 1 <= len(episode.steps) < 9
        assert used <= 26 and used + 3 + 4 > 26
        assert all(s.after for s in episode.steps)  # the last action was still played


def test_a_first_prompt_longer_than_the_buckets_names_the_setting(play):
    """An episode without any step would be counted as played."""
    message = "task a: its first prompt has 13 tokens, but the largest bucket of agent.buckets.chunk is 8; enlarge"
    with pytest.raises(ValueError, match=message):
        play([task("a")], buckets=Buckets(chunk=(8,), slots=(96,), commands=(4,)))
    message = r"has 13 tokens and an answer another 4, but the largest bucket of agent\.buckets\.slots is 16; enlarge"
    with pytest.raises(ValueError, match=message):
        play([task("a")], buckets=Buckets(chunk=(32,), slots=(16,), commands=(4,)))


def test_a_failure_ends_one_episode_and_leaves_the_others_as_they_were(play):
    whole = play(GROUP, [0] * 4, seed=2)
    broken = [task("a"), task("a", breaks=0), task("a", breaks=2), task("a")]
    episodes = play(broken, [0] * 4, seed=2)
    same([episodes[0], episodes[3]], [whole[0], whole[3]])
    assert [e.failure for e in episodes] == [None, "RuntimeError: broken at 0", "RuntimeError: broken at 2", None]
    assert not episodes[1].steps and not episodes[1].won and not episodes[2].won
    batch = pack(episodes, max_steps=4)
    assert set((batch.transition[batch.response_mask] // 4).tolist()) == {0, 3}


@pytest.mark.parametrize("decode", ["free", "admissible"])
def test_equal_keys_give_equal_episodes_whatever_the_halves(play, decode):
    one = play(GROUP, [0] * 4, decode=decode, seed=5)
    same(play(GROUP, [0] * 4, decode=decode, seed=5), one)
    same(play(GROUP, [0] * 4, decode=decode, seed=5, halves=2), one)
    same(play(GROUP[:2], [0] * 2, decode=decode, seed=5), one[:2])  # fewer tasks than slots
    other = play(GROUP, [0] * 4, decode=decode, seed=6)
    assert [s.action for e in other for s in e.steps] != [s.action for e in one for s in e.steps]


@pytest.mark.parametrize("prompt", [WordPrompt(brief), ShortPrompt()], ids=["append", "stepwise"])
def test_processes_that_play_a_share_each_sample_what_one_would(play, prompt):
    whole = play(GROUP, [0] * 4, prompt=prompt, seed=5)
    first = play(GROUP[:2], [0] * 2, prompt=prompt, seed=5, slots=2)
    second = play(GROUP[2:], [0] * 2, prompt=prompt, seed=5, slots=2, call={"first": 2})
    same([*first, *second], whole)


class Late(EnvPool):
    """A pool in which about every second answer is not in yet when it is looked for."""

    def __init__(self, seed):
        super().__init__(Boxes, slots=4, workers=0)
        self.rng, self.missed = Random(seed), 0

    def ready(self, slots, patience_s):
        found = super().ready(slots, patience_s)
        if patience_s > 0:  # a wait; the collector looks again at what is in
            return found
        here = [slot for slot in found if self.rng.random() < 0.5]
        self.missed += len(found) - len(here)
        return here


@pytest.mark.parametrize("decode", ["free", "admissible"])
@pytest.mark.parametrize("prompt", [WordPrompt(brief), ShortPrompt()], ids=["append", "stepwise"])
@pytest.mark.parametrize("halves", [1, 2])
def test_tokens_are_the_same_whoever_was_late(play, sampled, prompt, decode, halves):
    """Rows are played in other batches, in other orders, and their caches wait for them meanwhile."""
    tasks = [task("a", "yellow"), task("b", "yellow", ends=2), task("c"), task("d", breaks=3)]
    plain = play(tasks, prompt=prompt, decode=decode, seed=3)
    in_step = len(sampled)
    for seed in range(2):
        pool = Late(seed)
        same(play(tasks, prompt=prompt, decode=decode, seed=3, halves=halves, pool=pool), plain)
        assert pool.missed > 4
    assert len(sampled) - in_step > 2 * in_step


def test_a_row_that_waits_for_its_environment_does_not_hold_up_the_rest(play, sampled):
    """One world naps in its first step; the others end their four steps meanwhile."""
    tasks = [task("a", "yellow"), task("b", "yellow"), task("c", "yellow", naps=1), task("d", "yellow")]
    plain = play([task(name, "yellow") for name in "abcd"], seed=1)

    def turns(patience_s):
        """Which rows played in each turn."""
        pool = EnvPool(Boxes, slots=4, workers=4)
        pool.reset(range(4), tasks)  # the workers are up before the clock runs
        pool.receive(range(4))
        sampled.clear()
        same(play(tasks, seed=1, pool=pool, patience_s=patience_s), plain)
        return [[len(row) > 0 for row in rows] for rows, _ in sampled]

    assert [row[2] for row in turns(0.4)][-4:] == [False, True, True, True]
    assert turns(30) == [[True] * 4] * 4  # with more patience they go on together


def test_an_evaluation_may_be_greedy_and_training_is_as_before(params):
    codec = Codec(TOKENIZER, WordPrompt(brief), 4)
    with EnvPool(Boxes, slots=4, workers=0) as pool:
        collector = Collector(
            CONFIG, codec, pool, max_steps=4, max_new=4, halves=1,
            buckets=Buckets(chunk=(32,), slots=(96,), commands=(4,)),
        )  # fmt: skip
        before = collector(params, GROUP, [0] * 4, jax.random.key(1))
        greedy = collector(params, GROUP, [0] * 4, jax.random.key(1), decoding=Decoding(0.0))
        for episode in greedy:
            assert [s.response_ids.tolist() for s in episode.steps] == [
                s.response_ids.tolist() for s in greedy[0].steps
            ]
        same(collector(params, GROUP, [0] * 4, jax.random.key(1)), before)


def test_members_of_a_group_differ(play):
    """Equal prompts, own keys: or every advantage would be 0."""
    episodes = play(GROUP, [0] * 4, decode="free")
    first = [tuple(e.steps[0].response_ids) for e in episodes]
    assert len({tuple(e.steps[0].prompt_ids) for e in episodes}) == 1
    assert len(set(first)) > 2
    # And the turns of one episode do not repeat a draw.
    assert len({tuple(s.response_ids) for s in episodes[0].steps}) > 1


def test_a_collector_starts_again_from_empty_rows(params):
    codec = Codec(TOKENIZER, WordPrompt(brief), 4)
    ticks = []
    with EnvPool(Boxes, slots=4, workers=0) as pool:
        collector = Collector(
            CONFIG, codec, pool, max_steps=4, max_new=4, halves=1, decode="admissible",
            buckets=Buckets(chunk=(32,), slots=(96,), commands=(4,)),
        )  # fmt: skip
        one = collector(params, GROUP, [0] * 4, jax.random.key(1), lambda turn, live: ticks.append((turn, live)))
        collector(params, GROUP, [0] * 4, jax.random.key(2))
        same(collector(params, GROUP, [0] * 4, jax.random.key(1)), one)
        assert [t for t, _ in ticks] == list(range(1, len(ticks) + 1))
        assert ticks[0][1] == 4 and [n for _, n in ticks] == sorted((n for _, n in ticks), reverse=True)
        assert all(half.sampler._cache is None for half in collector._halves)  # the update has the memory
        with pytest.raises(ValueError, match="5 episodes do not fit into 4 environment slots"):
            collector(params, [task("a")] * 5, [0] * 5, jax.random.key(0))


class TestCodec:
    def test_commands_are_answers_that_end_with_the_stop_token(self):
        codec = Codec(TOKENIZER, WordPrompt(brief), 3)
        assert codec.answer_ids("open 1")[-1] == TOKENIZER.eos_token_id and codec.ends_commands
        offered = codec.commands(COMMANDS)
        assert list(offered.values()) == ["open 1", "open 2", "open 3", "wait"]
        assert [codec.decode(ids).text for ids in offered] == [f"{command} </action>" for command in offered.values()]
        # What is longer than an answer can be is left out, and so is help.
        assert codec.commands(["open the box", "help", "wait"]) == {codec.answer_ids("wait"): "wait"}

    def test_a_command_in_brackets_is_its_words_and_comes_back_as_it_was_offered(self):
        codec = Codec(TOKENIZER, WordPrompt(brief), 4)
        assert codec.commands(["open[1]", "Open[2]"]) == {
            codec.answer_ids("open 1"): "open[1]", codec.answer_ids("open 2"): "Open[2]",
        }  # fmt: skip
        # Of two commands that read the same the first one is meant.
        assert list(codec.commands(["open[1]", "open 1", "open [1]"]).values()) == ["open[1]"]

    def test_a_chat_template_is_used_where_a_row_begins(self):
        pytest.importorskip("jinja2", reason="jinja2 is not installed: chat templates were not tested")
        tokenizer = type(TOKENIZER)(tokenizer_object=TOKENIZER.backend_tokenizer, eos_token="</action>")
        tokenizer.chat_template = "see {{ messages[0].content }}{% if add_generation_prompt %} wait{% endif %}"
        chat, plain = TOKENIZER.encode("see red box wait"), TOKENIZER.encode("red box")
        cases = ((ShortPrompt(), chat, chat), (WordPrompt(brief), plain, plain), (SearchDialogue("find"), chat, plain))
        for prompt, first, later in cases:
            assert Codec(tokenizer, prompt, 4).prompt_ids("red box") == first
            assert Codec(tokenizer, prompt, 4).prompt_ids("red box", [5]) == later
            assert Codec(TOKENIZER, prompt, 4).prompt_ids("red box") == plain


def test_settings_that_do_not_go_together_are_refused():
    with EnvPool(Boxes, slots=2, workers=0) as pool:
        make = lambda codec, **more: Collector(CONFIG, codec, pool, max_steps=2, max_new=4, **more)  # noqa: E731
        with pytest.raises(ValueError, match="decode 'greedy' is unknown, expected 'free' or 'admissible'"):
            make(Codec(TOKENIZER, WordPrompt(brief), 4), decode="greedy")
        with pytest.raises(ValueError, match="decode 'admissible' needs a prompt that ends inside <action>"):
            make(Codec(TOKENIZER, InstructPrompt("You act."), 4), decode="admissible")
        with pytest.raises(ValueError, match=r"temperature 0 must be above 0 in training; only an evaluation can be"):
            make(Codec(TOKENIZER, WordPrompt(brief), 4), temperature=0)
        with pytest.raises(ValueError, match="patience_s 0 must be above 0 seconds"):
            make(Codec(TOKENIZER, WordPrompt(brief), 4), patience_s=0)
        other_end = type(TOKENIZER)(tokenizer_object=TOKENIZER.backend_tokenizer, eos_token="red")
        with pytest.raises(ValueError, match="decode 'admissible' needs </action> as the tokenizer's end token"):
            make(Codec(other_end, WordPrompt(brief), 4), decode="admissible")


class Listener(Boxes):
    """A world of boxes that keeps what it is told."""

    def reset(self, task):
        self.told = []
        task.payload["slots"].append(self.told)
        return super().reset(task)

    def step(self, action):
        self.told.append(action)
        return super().step(action)


class Whole(ShortPrompt):
    whole = True


@pytest.mark.parametrize(("prompt", "field"), [(ShortPrompt(), "action"), (Whole(), "answer")])
def test_environments_get_what_the_prompt_says(prompt, field, play):
    told = []
    asked = [task(f"t{i}", "none", slots=told) for i in range(4)]
    episodes = play(asked, prompt=prompt, pool=EnvPool(Listener, slots=4, workers=0))
    assert told == [[getattr(step, field) or "" for step in e.steps] for e in episodes]
    assert any(step.answer != (step.action or "") for e in episodes for step in e.steps)
