"""A worked episode in ALFWorld's own texts, for prompts that show one. Its game is no game of the benchmark."""

from trca_jax.envs.base import Example

_TASK = "put a clean cup in shelf."

EXAMPLE = Example(
    _TASK,
    (
        (
            "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you "
            "see a countertop 1, a fridge 1, a garbagecan 1, a shelf 1, a sidetable 1, and a sinkbasin 1.\n\nYour task "
            f"is to: {_TASK}",
            "I need to find a cup, clean it with the sinkbasin, and move it to the shelf. A cup may be on the "
            "countertop.",
            "go to countertop 1",
        ),
        (
            "You arrive at countertop 1. On the countertop 1, you see a knife 1, and a plate 2.",
            "There is no cup here. The fridge is another likely place.",
            "go to fridge 1",
        ),
        (
            "You arrive at fridge 1. The fridge 1 is closed.",
            "I cannot see what is in it before I open it.",
            "open fridge 1",
        ),
        (
            "You open the fridge 1. The fridge 1 is open. In it, you see a apple 1, and a cup 1.",
            "Here is a cup.",
            "take cup 1 from fridge 1",
        ),
        (
            "You pick up the cup 1 from the fridge 1.",
            "I hold the cup. Before I put it on the shelf it must be clean, so I go to the sinkbasin.",
            "go to sinkbasin 1",
        ),
        (
            "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.",
            "Now I can clean the cup.",
            "clean cup 1 with sinkbasin 1",
        ),
        (
            "You clean the cup 1 using the sinkbasin 1.",
            "The cup is clean. What is left is to bring it to the shelf.",
            "go to shelf 1",
        ),
        (
            "You arrive at shelf 1. On the shelf 1, you see a vase 1.",
            "Putting the cup here completes the task.",
            "move cup 1 to shelf 1",
        ),
    ),
)
