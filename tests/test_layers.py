"""Who may know whom: reads every import statement of the package and holds it against one table."""

import ast
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "trca_jax"
ARRAYS = {"jax", "chex", "jaxtyping"}
ANYTHING = None

# room: (modules of the package it may know beside itself, third parties beside the standard library and numpy)
ALLOWED = {
    "credit": (set(), ARRAYS),
    "rubrics": (set(), ARRAYS),
    "policy": (set(), ARRAYS | {"flax", "safetensors", "transformers", "tokenizers"}),
    "envs": ({"rubrics.schema", "rubrics.library"}, ANYTHING),  # engines; never JAX, tested below
    "agents": ({"envs.base"}, set()),
    "rollout": ({"envs", "agents", "policy", "rubrics", "credit.types"}, ARRAYS | {"flax", "transformers"}),
    "learner": (
        {"credit", "policy", "rollout", "envs.base"},
        ARRAYS | {"flax", "optax", "orbax", "ml_collections", "tensorboardX", "rich"},
    ),
    "evaluation": ({"rollout", "agents", "envs.base"}, ARRAYS | {"matplotlib", "rich"}),
}


class Import(NamedTuple):
    module: str  # absolute; for "from a import b" it is a.b where that is a module of the package, else a
    line: int
    lazy: bool  # inside a function, or only for type checkers


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}
SCRIPTS = [p for folder in ("launch", "configs", "notebooks") for p in sorted((ROOT / folder).rglob("*.py"))]


def imports(path: Path) -> list[Import]:
    found = []

    def visit(node, lazy):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found.extend(Import(alias.name, child.lineno, lazy) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}:{child.lineno}: relative import, expected the full name"
                for alias in child.names:
                    full = f"{child.module}.{alias.name}"
                    found.append(Import(full if full in MODULES else child.module, child.lineno, lazy))
            typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            visit(child, lazy or typing_only or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(ast.parse(path.read_text()), lazy=False)
    return found


def breaches(room: str, path: Path) -> list[str]:
    """What a file of the room imports without leave."""
    known, third_parties = ALLOWED[room]
    found = []
    for module, line, _ in imports(path):
        top, _, inner = module.partition(".")
        if top == PACKAGE:
            legal = any(f"{inner}.".startswith(f"{name}.") for name in known | {room})
        else:
            legal = third_parties is ANYTHING or top in third_parties | {"numpy"} | sys.stdlib_module_names
        if not legal:
            found.append(f"{path.name}:{line}: {room} may not import {module}")
    return found


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_knows_only_what_the_design_allows(room):
    assert [b for path in sorted((ROOT / PACKAGE / room).rglob("*.py")) for b in breaches(room, path)] == []


def test_a_breach_is_found(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text(
        "import optax\ndef f():\n    from trca_jax.learner import loop\nfrom trca_jax.credit import types\n"
    )
    assert breaches("credit", file) == [
        "bad.py:1: credit may not import optax",
        "bad.py:3: credit may not import trca_jax.learner.loop",
    ]
    file.write_text("from trca_jax.credit.types import CreditBatch\nfrom trca_jax.credit.trca import trca\n")
    assert breaches("rollout", file) == ["bad.py:2: rollout may not import trca_jax.credit.trca"]


def test_every_file_is_in_a_known_room():
    rooms = {name.split(".")[1] for name in MODULES if "." in name}
    assert rooms <= set(ALLOWED)
    assert imports(MODULES[PACKAGE]) == []


def test_nothing_imports_torch_or_the_folders_above():
    for path in [*MODULES.values(), *SCRIPTS]:
        tops = {module.split(".")[0] for module, _, _ in imports(path)}
        above = set() if path.relative_to(ROOT).parts[0] == "launch" else {"launch"}
        assert not tops & {"torch", "tests", *above}, path
        if path not in SCRIPTS:
            assert "configs" not in tops, path


def test_benchmarks_do_not_know_each_other():
    for name, path in MODULES.items():
        place = name.split(".")
        if len(place) < 4 or place[1] != "envs":
            continue
        for module, line, _ in imports(path):
            inner = module.split(".")
            foreign = (
                inner[:2] == [PACKAGE, "envs"] and len(inner) > 2 and (ROOT / PACKAGE / "envs" / inner[2]).is_dir()
            )
            assert not foreign or inner[2] == place[2], f"{path}:{line}: {place[2]} imports {module}"


def loads(name: str) -> set[str]:
    """Modules of the package that run when this one is imported: what it imports, and the packages around those."""
    eager = {i.module for i in imports(MODULES[name]) if not i.lazy and i.module in MODULES}
    around = {m[:cut] for m in eager | {name} for cut, letter in enumerate(m) if letter == "."}
    return (eager | (around & set(MODULES))) - {name}


def test_no_import_runs_in_a_circle():
    eager = {n: {i.module for i in imports(p) if not i.lazy and i.module in MODULES} - {n} for n, p in MODULES.items()}
    done, path = set(), []

    def visit(name):
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name not in done:
            path.append(name)
            for other in sorted(eager[name]):
                visit(other)
            done.add(path.pop())

    for name in eager:
        visit(name)


def test_environments_load_no_jax():
    """Also not through a package's __init__: a worker process must stay small and fork-safe."""
    reached, todo = set(), [name for name in MODULES if name.startswith(f"{PACKAGE}.envs")]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo.extend(loads(name))
            heavy = {i.module.split(".")[0] for i in imports(MODULES[name]) if not i.lazy} & {"jax", "flax", "optax"}
            assert not heavy, f"{name} imports {heavy} and an environment imports it"
