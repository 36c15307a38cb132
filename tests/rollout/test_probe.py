"""Sample transitions: scripted play with errors."""

from boxes import COMMANDS, task
from fake_world import World

from trca_jax.rollout.probe import probe
from trca_jax.rubrics.schema import Declaration

TASKS = [task(str(n), goal=("red", "blue", "yellow")[n % 3]) for n in range(60)]


def test_everything_that_a_rubric_may_judge_occurs():
    world = World()
    episodes = probe(world, TASKS, 6, seed=0)
    assert [e.task for e in episodes] == TASKS and [e.group for e in episodes] == list(range(60))
    assert {e.won for e in episodes} == {True, False} and not any(e.won for e in episodes[2::3])
    assert all(e.truncated == (len(e.steps) == 6 and not e.won) for e in episodes)
    actions = [step.action for e in episodes for step in e.steps]
    share = lambda action: actions.count(action) / len(actions)  # noqa: E731
    assert 0.05 < share(None) < 0.15 and 0.05 < share("dance") < 0.15
    assert set(actions) == {None, "dance", *COMMANDS}  # help too, once the plan is lost


def test_each_answer_stands_beside_its_action_and_the_adapter_was_told():
    world = World()
    episodes = probe(world, TASKS[:9], 6, seed=1)
    for episode, adapter in zip(episodes, world.adapters, strict=True):
        steps = episode.steps
        assert adapter.told == [(s.action, s.after, COMMANDS) for s in steps]
        assert [s.before for s in steps] == [episode.first_observation, *(s.after for s in steps[:-1])]
        for step in steps:
            assert ("nothing happens" in step.after) == (step.action in (None, "dance", "help"))


def test_it_is_a_function_of_seed_and_tasks():
    play = lambda seed: [[s.action for s in e.steps] for e in probe(World(), TASKS[:9], 6, seed)]  # noqa: E731
    assert play(0) == play(0) != play(1)


def test_templates_of_actions():
    declared = Declaration((), (), (), ("open {box}", "put {thing} in {box}", "click[< prev]", "click[{text}]", "wait"))
    assert declared.template("open 1") == "open {box}" and declared.template(" wait ") == "wait"
    assert declared.template("put a b in c in d") == "put {thing} in {box}"
    assert declared.template("click[< prev]") == "click[< prev]" and declared.template("click[x]") == "click[{text}]"
    assert declared.template("open") == declared.template("open ") == declared.template("wait for it") == "no command"
    assert declared.template(None) == "no action"
