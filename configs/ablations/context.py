"""What makes two situations comparable: the fields of ALFWorld's decision context.

python launch/sweep.py --config=configs/ablations/context.py
"""

from configs.ablations.grid import grid


def get_config(base: str = "alfworld"):
    own = ("progress", "holding", "target_state", "stage")
    fields = {
        "stage": ("stage",),
        "progress, stage": ("progress", "stage"),
        "own": (),
        "own, place": (*own, "place"),
        "all": (*own, "place", "known_target_places"),
    }
    return grid(base, "context", {name: {"env.rubric.context": chosen} for name, chosen in fields.items()})
