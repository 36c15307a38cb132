"""Makes ALFWorld games of all six types in the 120 scenes whose layouts ship with the package `alfworld`.

A game is a function of (VERSION, split, kind, seed, index), the same on every machine: of `random` only `random()` is
used, whose sequence Python keeps. For training and demonstrations without a download; not for published numbers.

Held out for `valid_unseen` are the release's scenes (10, 219, 308, 424) and every scene whose number ends in 0: 15 of
120. `valid_seen` has other games in the scenes of `train`.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from trca_jax.envs.alfworld.engine import entity_names
from trca_jax.envs.alfworld.games import SPLITS, Game

VERSION = 1
SCENES = tuple(room + number for room in (0, 200, 300, 400) for number in range(1, 31))
HELD_OUT = frozenset({219, 308, 424} | {scene for scene in SCENES if scene % 10 == 0})

# What one receptacle holds at most; the others hold what comes.
_ROOM_FOR_ONE = {"StoveBurner", "CoffeeMachine", "Toaster", "TowelHolder", "HandTowelHolder", "ToiletPaperHanger"}
# Things that cannot be taken but stand where they are seen, and where.
_FURNISHING = {
    "DeskLamp": ("Desk", "SideTable", "Dresser", "Shelf"),
    "HousePlant": ("CounterTop", "SideTable", "DiningTable", "CoffeeTable", "Dresser"),
    "Television": ("TVStand", "Dresser", "CoffeeTable"),
}
_APPLIANCE = {"clean": ("Cleanable", "SinkBasin"), "heat": ("Heatable", "Microwave"), "cool": ("Coolable", "Fridge")}
# Constants that the domain names, and must therefore be declared.
_CONSTANTS = {"otype": {"Knife", "ButterKnife", "Sink"}, "rtype": {"SinkBasin", "Microwave", "Fridge"}}
_SENTENCES = {
    "pick_and_place_simple": ("put a {obj} in {recep}.", "put some {obj} on {recep}."),
    "look_at_obj_in_light": ("look at {obj} under the {recep}.", "examine the {obj} with the {recep}."),
    "pick_clean_then_place_in_recep": ("put a clean {obj} in {recep}.", "clean some {obj} and put it in {recep}."),
    "pick_heat_then_place_in_recep": ("put a hot {obj} in {recep}.", "heat some {obj} and put it in {recep}."),
    "pick_cool_then_place_in_recep": ("put a cool {obj} in {recep}.", "cool some {obj} and put it in {recep}."),
    "pick_two_obj_and_place": ("put two {obj} in {recep}.", "find two {obj} and put them in {recep}."),
}
_PLACED = "(objectType ?{o} {obj}Type) (receptacleType ?r {recep}Type) (inReceptacle ?{o} ?r)"
_LOOK = """(:goal (and
    (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot {recep}Type) (toggleable ?ot)
        (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))
    (exists (?o - object ?a - agent) (and (objectType ?o {obj}Type) (holds ?a ?o)))))"""
_TWO = f"""(:goal (and (exists (?r - receptacle) (exists (?o1 - object) (and {_PLACED.replace("{o}", "o1")}
    (exists (?o2 - object) (and (not (= ?o1 ?o2)) {_PLACED.replace("{o}", "o2")})))))))"""
_ONE = f"""(:goal (and (exists (?r - receptacle) (exists (?o - object) (and {_PLACED.replace("{o}", "o")} STATE)))))"""
_GOALS = {
    "pick_and_place_simple": _ONE.replace("STATE", ""),
    "look_at_obj_in_light": _LOOK,
    "pick_clean_then_place_in_recep": _ONE.replace("STATE", "(cleanable ?o) (isClean ?o)"),
    "pick_heat_then_place_in_recep": _ONE.replace("STATE", "(heatable ?o) (isHot ?o)"),
    "pick_cool_then_place_in_recep": _ONE.replace("STATE", "(coolable ?o) (isCool ?o)"),
    "pick_two_obj_and_place": _TWO,
}


def generate(split: str, kinds: Sequence[str], count: int, seed: int) -> list[tuple[str, Game]]:
    """`count` games as (task id, game), the kinds in turn; a larger count has the smaller one's games and some more.

    Raises ValueError on an unknown split, or when the package `alfworld` is not installed.
    """
    if split not in SPLITS:
        raise ValueError(f"no generated split {split!r}; expected one of {', '.join(SPLITS)}")
    return [make_game(split, kinds[i % len(kinds)], seed, i // len(kinds)) for i in range(count)]


def make_game(split: str, kind: str, seed: int, index: int) -> tuple[str, Game]:
    """One game and its task id, `<split>/<kind>-<object>-None-<receptacle>-<scene>/generated_<seed>_<index>`."""
    rng = random.Random(f"{VERSION} {split} {kind} {seed} {index}")

    def draw(options: Sequence):
        return options[int(rng.random() * len(options))]

    scene, choices = draw(_playable(kind, split == "valid_unseen"))
    obj, recep = draw(choices)
    world = _furnish(_scene(scene), kind, obj, recep, rng.random, draw)
    goal = draw(_SENTENCES[kind]).format(obj=obj.lower(), recep=recep.lower())
    identity = f"{split}/{kind}-{obj}-None-{recep}-{scene}/generated_{seed}_{index:05d}"
    domain, grammar = _texts()
    plan = _plan(world, kind, obj, recep)
    return identity, Game.pack(domain, grammar, _problem(world, _GOALS[kind].format(obj=obj, recep=recep)), goal, plan)


@dataclass(frozen=True)
class _Scene:
    """What never changes: a scene's receptacles (id -> type, id -> place), which open, and its kinds of objects."""

    receptacles: dict[str, str]
    places: dict[str, str]
    openable: frozenset[str]
    objects: tuple[str, ...]


@dataclass(frozen=True)
class _World:
    """A scene with its objects (id -> type) and where each of them is (id -> receptacle)."""

    scene: _Scene
    objects: dict[str, str]
    where: dict[str, str]


def _package(name: str) -> Path:
    spec = find_spec("alfworld")  # finding does not import: importing makes folders and sets variables
    if spec is None:
        raise ValueError("generated games need the package 'alfworld'; run 'pip install -r requirements.txt'")
    return Path(spec.submodule_search_locations[0]) / name


@cache
def _constants() -> dict:
    """The tables in the package's source, read without running it."""
    wanted = ("OBJECTS", "VAL_RECEPTACLE_OBJECTS", "VAL_ACTION_OBJECTS", "OPENABLE_CLASS_LIST", "MOVABLE_RECEPTACLES")
    nodes = [n for n in ast.parse(_package("gen/constants.py").read_text()).body if isinstance(n, ast.Assign)]
    found = {n.targets[0].id: ast.literal_eval(n.value) for n in nodes if ast.unparse(n.targets[0]) in wanted}
    holds = found["VAL_RECEPTACLE_OBJECTS"]
    tables = dict.fromkeys(("DiningTable", "CoffeeTable", "SideTable"), holds.pop("TableTop"))
    found["HOLDS"] = {r: {o for o in objects if "Sliced" not in o} for r, objects in (holds | tables).items()}
    return found


def vocabulary() -> str:
    """The names that games may use, those that generated games lack included, and the numbers behind them."""
    names = sorted(name.lower() for name in _constants()["OBJECTS"])
    return " ".join([*names, "showercurtain", "showerhead", *map(str, range(1, 61))])


@cache
def _texts() -> tuple[str, str]:
    """Domain and grammar of the release: the package's grammar, and its domain with the one line that differs."""
    line = "(receptacleType ?r SinkType)"
    domain = _package("data/alfred.pddl").read_text().replace(f";{line}", line)
    return domain, _package("data/alfred.twl2").read_text().replace("UNKNOWN GOAL.", Game.PLACEHOLDER)


def _holds(recep: str, obj: str) -> bool:
    return obj in _constants()["HOLDS"].get(recep, ())


def _takeable(obj: str) -> bool:
    return any(obj in objects for objects in _constants()["HOLDS"].values())


@cache
def _scene(number: int) -> _Scene:
    layouts = _package("gen/layouts")
    poses = json.loads((layouts / f"FloorPlan{number}-openable.json").read_text())
    kinds = sorted(set(json.loads((layouts / f"FloorPlan{number}-objects.json").read_text())))
    rng = random.Random(f"{VERSION} scene {number}")
    receptacles, places, openable = {}, {}, set()
    for name, (x, z, turn, tilt) in sorted(poses.items()):
        kind = name.split("|")[-1] if name.endswith("Basin") else name.split("|")[0]
        receptacles[name] = kind
        places[name] = f"loc|{round(x * 4)}|{round(z * 4)}|{turn // 90}|{tilt}"
        # About 15 % of the release's cabinets and drawers cannot be opened and show what they hold.
        if kind in _constants()["OPENABLE_CLASS_LIST"] and (kind not in ("Cabinet", "Drawer") or rng.random() > 0.15):
            openable.add(name)
    # The package has no poses for what needs none to be opened: burners (two at a spot), holders, small appliances.
    absent = [k for k in kinds if k in _constants()["HOLDS"] and k not in receptacles.values()]
    for kind in absent:
        if kind not in _constants()["MOVABLE_RECEPTACLES"]:
            for i in range(4 if kind == "StoveBurner" else 1):
                name = _identify(kind, rng.random)
                receptacles[name], places[name] = kind, f"loc|{40 + i // 2}|{len(places) - i}|0|45"
    kinds = tuple(k for k in kinds if _takeable(k) or k in _FURNISHING)
    return _Scene(receptacles, places, frozenset(openable), kinds)


def _identify(kind: str, uniform: Callable[[], float]) -> str:
    """An id as the simulator makes them: `Apple|+01.20|+00.95|-00.40`, and `Sink|...|SinkBasin`."""
    spot = "|".join(f"{6 * uniform() - 3:+06.2f}" for _ in range(3))
    return f"{kind.removesuffix('Basin')}|{spot}|{kind}" if kind.endswith("Basin") else f"{kind}|{spot}"


@cache
def _playable(kind: str, held_out: bool) -> list[tuple[int, list[tuple[str, str]]]]:
    """The scenes where a game of this kind can be made, each with its choices of (object, target)."""
    found = []
    for number in SCENES:
        if (number in HELD_OUT) == held_out and (choices := list(_choices(_scene(number), kind))):
            found.append((number, choices))
    return found


def _choices(scene: _Scene, kind: str) -> Iterable[tuple[str, str]]:
    present = sorted(set(scene.receptacles.values()))
    takeable = [o for o in scene.objects if _takeable(o)]
    if kind == "look_at_obj_in_light":
        if "DeskLamp" in scene.objects and set(_FURNISHING["DeskLamp"]) & set(present):
            yield from ((o, "DeskLamp") for o in takeable if any(_holds(r, o) for r in present))
        return
    action = next((entry for word, entry in _APPLIANCE.items() if f"_{word}_" in kind), None)
    for obj in takeable:
        if action is None or (obj in _constants()["VAL_ACTION_OBJECTS"][action[0]] and action[1] in present):
            homes = [r for r in present if _holds(r, obj)]
            # Two things do not fit where one does; and the object must have a place to be found in.
            targets = [r for r in homes if not (kind.startswith("pick_two") and r in _ROOM_FOR_ONE)]
            yield from ((obj, r) for r in targets if set(homes) - {r} - _ROOM_FOR_ONE)


def _furnish(scene: _Scene, kind: str, obj: str, recep: str, uniform: Callable[[], float], draw: Callable) -> _World:
    """Puts one to three of each kind of object into a random one of a random kind of receptacle that can hold it.

    Objects of the goal's kind start elsewhere than in the goal's kind of receptacle, so no game is won at the start.
    """
    objects: dict[str, str] = {}
    where: dict[str, str] = {}
    by_kind: dict[str, list[str]] = {}
    for name, what in scene.receptacles.items():
        by_kind.setdefault(what, []).append(name)
    # The goal's objects first: nothing else may take their room.
    for what in sorted(scene.objects, key=lambda o: (o != obj, o)):
        copies = 1 if what in _FURNISHING else 1 + int(3 * uniform())
        if what == obj and kind.startswith("pick_two"):
            copies = max(copies, 2)
        for _ in range(copies):
            homes = [r for r in by_kind if (r in _FURNISHING[what] if what in _FURNISHING else _holds(r, what))]
            free = {r: [n for n in by_kind[r] if r not in _ROOM_FOR_ONE or n not in where.values()] for r in homes}
            homes = [r for r in homes if free[r] and not (what == obj and r == recep)]
            if homes:
                name = _identify(what, uniform)
                objects[name], where[name] = what, draw(free[draw(homes)])
    return _World(scene, objects, where)


def _symbol(name: str) -> str:
    for sign, word in (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_")):
        name = name.replace(sign, word)
    return name


def _problem(world: _World, goal: str) -> str:
    """The PDDL problem in the release's vocabulary."""
    scene, actions = world.scene, _constants()["VAL_ACTION_OBJECTS"]
    start = "loc|0|0|0|30|start"  # the middle of the room, where no receptacle is
    okinds, rkinds = set(world.objects.values()), set(scene.receptacles.values())
    declared = ["agent1 - agent", f"{start} - location"]
    declared += [f"{kind}Type - otype" for kind in sorted(okinds | _CONSTANTS["otype"])]
    declared += [f"{kind}Type - rtype" for kind in sorted(rkinds | _CONSTANTS["rtype"])]
    declared += [f"{name} - object" for name in world.objects]
    declared += [f"{name} - receptacle" for name in scene.receptacles]
    declared += [f"{place} - location" for place in sorted(set(scene.places.values()))]
    facts = [f"atLocation agent1 {start}"]
    facts += [f"canContain {r}Type {o}Type" for r in sorted(rkinds) for o in sorted(okinds) if _holds(r, o)]
    for name, kind in scene.receptacles.items():
        facts += [f"receptacleType {name} {kind}Type", f"receptacleAtLocation {name} {scene.places[name]}"]
        facts += [f"openable {name}"] * (name in scene.openable)
    for name, kind in world.objects.items():
        facts += [f"objectType {name} {kind}Type", f"inReceptacle {name} {world.where[name]}"]
        facts += [f"objectAtLocation {name} {scene.places[world.where[name]]}"]
        facts += [f"pickupable {name}"] * _takeable(kind)
        facts += [f"isReceptacleObject {name}"] * (kind in _constants()["MOVABLE_RECEPTACLES"])
        facts += [f"{able.lower()} {name}" for able in sorted(actions) if kind in actions[able]]
    init = "\n".join(f"    ({fact})" for fact in facts)
    objects = "\n".join(f"    {line}" for line in declared)
    # A type name or number is never signed, so the whole text can be mangled, the dashes of declarations excepted.
    body = _symbol(f"{objects}\n)\n(:init\n{init}\n)".replace(" - ", "\0")).replace("\0", " - ")
    return f"(define (problem generated)\n(:domain alfred)\n(:objects\n{body}\n{goal}\n)\n"


def _plan(world: _World, kind: str, obj: str, recep: str) -> list[str]:
    """Commands that win, in the words of the game."""
    scene = world.scene
    ids = [*world.objects, *scene.receptacles]
    names = entity_names({_symbol(i).lower() for i in ids})
    say = {i: names[_symbol(i).lower()] for i in ids}
    plan: list[str] = []
    here, opened = None, set()

    def reach(name: str, inside: bool = True) -> None:
        nonlocal here
        if scene.places[name] != here:  # at the spot already, `go to` is not offered
            plan.append(f"go to {say[name]}")
            here = scene.places[name]
        if inside and name in scene.openable and name not in opened:
            plan.append(f"open {say[name]}")
            opened.add(name)

    copies = [name for name, what in world.objects.items() if what == obj]
    action = next((word for word in _APPLIANCE if f"_{word}_" in kind), None)
    target = next((name for name, what in scene.receptacles.items() if what == recep), "")
    for name in copies[: 2 if kind == "pick_two_obj_and_place" else 1]:
        reach(world.where[name])
        plan.append(f"take {say[name]} from {say[world.where[name]]}")
        if action:
            tool = next(n for n, what in scene.receptacles.items() if what == _APPLIANCE[action][1])
            reach(tool, inside=False)
            plan.append(f"{action} {say[name]} with {say[tool]}")
        if kind == "look_at_obj_in_light":
            lamp = next(n for n, what in world.objects.items() if what == recep)
            reach(world.where[lamp], inside=False)
            plan.append(f"use {say[lamp]}")
        else:
            reach(target)
            plan.append(f"move {say[name]} to {say[target]}")
    return plan
