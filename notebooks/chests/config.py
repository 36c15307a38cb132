"""PYTHONPATH=notebooks python launch/train.py --config=notebooks/chests/config.py"""

from configs import common


def get_config():
    c = common.get_config()
    c.env.name = "chests:Chests"
    c.env.task_types = ("chest",)
    c.env.max_steps = 12
    c.eval.games = 64
    c.warmstart.steps = 60
    c.warmstart.phases = ((1.0, 0.3, 1024, 32, 3e-3),)
    return c
