"""Run folders as launch/train.py leaves them, written by hand."""

import json

FIGURES = ("useful", "useful_failed", "all_failed_groups", "valid", "steps", "foundational", "breakthrough")


def write_run(folder, method, held_out, success=(), seed=0, setting="", repeats=1, **other):
    """held_out: for each evaluation (iteration, {kind: letters}); a letter an episode, 1, 0 or -, game by game.
    success: of each iteration of four rollouts; all other figures are a tenth of the iteration's number from 1."""
    folder.mkdir(parents=True)
    record = {"training": "games", "evaluation": "others", "rubric": "r", "weights": "w"} | other
    config = {"method": method, "seed": seed, "env": {"name": "alfworld", "task_types": ["heat", "cool"]}}
    config |= {"sweep": {"setting": setting, "name": "by hand"}} if setting else {}
    (folder / "run.json").write_text(json.dumps(record | {"config": config}))
    lines = []
    for i, value in enumerate(success):
        figures = dict.fromkeys(FIGURES, (i + 1) / 10) | {"rollouts": 4 * (i + 1), "success": value}
        lines.append({"kind": "train", "iteration": i} | figures | {"items": {"taken": value}})
    for iteration, kinds in held_out:
        results = [
            {"task": f"{kind}{i // repeats}", "kind": kind, "repeat": i % repeats, "won": letter == "1", "steps": 3,
             "failure": "broke" if letter == "-" else None}
            for kind, letters in kinds.items() for i, letter in enumerate(letters)
        ]  # fmt: skip
        lines.append({"kind": "eval", "iteration": iteration, "rollouts": 4 * iteration})
        (folder / f"evaluation-{iteration}.json").write_text(json.dumps({"results": results}))
    lines.sort(key=lambda line: (line["iteration"], line["kind"]))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
