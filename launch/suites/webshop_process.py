"""What one fresh process needs to play WebShop. python -m launch.suites.webshop_process SOURCE EPISODES

Prints one JSON object: ready_s, CPU seconds from the start of the process to the first observation; ready_mb and mb,
resident memory beyond that of the bare interpreter with one episode and with all of them. It must import little itself.
"""

import json
import random
import sys
import time
from pathlib import Path

STEPS = 15


def resident_mb() -> float | None:
    """Resident memory of this process; None where the system does not tell it as Linux does."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmRSS"))


def main(source: str, episodes: int) -> dict[str, float | None]:
    bare = resident_mb()
    from trca_jax.envs.registry import make_benchmark

    benchmark = make_benchmark("webshop", source=source, queries="offered")
    tasks = benchmark.tasks("train", episodes).tasks
    env = benchmark.make_env()
    seen = [env.reset(tasks[0])]
    ready_s = time.process_time()
    beyond = lambda: None if bare is None else resident_mb() - bare  # noqa: E731
    ready_mb = beyond()
    envs = [env, *(benchmark.make_env() for _ in tasks[1:])]
    seen += [env.reset(task) for env, task in zip(envs[1:], tasks[1:], strict=True)]
    rng = random.Random(0)
    for _ in range(STEPS):
        for i, env in enumerate(envs):
            going = [command for command in seen[i].admissible if command != "click[buy now]"]
            seen[i] = env.step(rng.choice(going))
    return {"ready_s": ready_s, "ready_mb": ready_mb, "mb": beyond()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
