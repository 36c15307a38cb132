"""What is asked after a failure, how the answer is read, and what the next trial is told."""

from trca_jax.agents.reflexion import ask_reflection, read_reflection, remind


def test_a_task_that_was_not_tried_reads_as_it_is():
    assert remind("open it", ()) == remind("open it", ("", "")) == "open it"


def test_the_last_three_notes_that_say_something_stand_behind_the_task():
    assert remind("open it", ("one", "two", "", "three", "four")).splitlines() == [
        "open it",
        "You have failed at this task before, and noted for yourself:",
        "1. two",
        "2. three",
        "3. four",
    ]


def test_the_question_shows_role_task_notes_steps_and_the_end():
    text = ask_reflection("You act.", "open it", [("a door", "<action>push</action>"), ("shut", "")], "dark", ("pull",))
    lines = text.splitlines()
    assert lines[0] == "You act." and lines[2:5] == [
        "Task: open it",
        "You have failed at this task before, and noted for yourself:",
        "1. pull",
    ]
    assert lines[5:10] == [
        "Observation: a door",
        "<action>push</action>",
        "Observation: shut",
        "",
        "Observation: dark",
    ]
    assert "two to four sentences" in lines[-1]


def test_thoughts_and_tags_are_no_notes():
    assert read_reflection("<think>hm\nhm</think>\n I should\n  look first. ") == "I should look first."
    assert read_reflection("I should <action>look</action> first.") == "I should look first."
    assert read_reflection("<think>never ended") == ""


def test_a_long_note_is_cut_between_words():
    note = read_reflection("word " * 200)
    assert note == "word " * 119 + "word …"
    assert read_reflection("x" * 600) == "x" * 600
