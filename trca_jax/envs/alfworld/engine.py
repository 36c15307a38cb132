"""Plays ALFWorld games: Fast Downward's state machine, the game's own grammar, nothing computed twice.

Feedback, admissible commands and `won` equal those of TextWorld's `PddlEnv` with ALFWorld's names, state by state.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from functools import lru_cache

from trca_jax.envs.alfworld.games import Game
from trca_jax.envs.alfworld.grammar import grammar
from trca_jax.envs.alfworld.translate import Fact, fast_downward, load_library, parse_atom, translate
from trca_jax.envs.base import Observation, Task

NOTHING = "Nothing happens."
_MENUS = 2000  # menus kept a game, 5 KB each
_INTS = 258  # C ints in one Operator record: id, 1,024 bytes of name, number of effects


class LoadedGame:
    """What all slots that play one game share: translation, names, the texts met so far. No slot's state lives here."""

    def __init__(self, game: Game):
        translation = translate(game)
        self.sas = translation.sas
        self.grammar = grammar(game.grammar)
        self.parameters = translation.parameters
        self.names = entity_names({entity for _, *entities in translation.facts for entity in entities})
        self.facts: dict[str, frozenset[Fact]] = {}
        for predicate, *entities in translation.facts:
            self.facts.setdefault(predicate, set()).add(tuple(entities))
        self.facts = {predicate: frozenset(known) for predicate, known in self.facts.items()}
        self.intro = self.grammar.intro(self.facts, self.names).replace(game.PLACEHOLDER, game.goal)
        self._operators: dict[int, tuple[str, str, dict[str, str]]] = {}  # command, action, its parameters
        self._menus: dict[bytes, tuple[tuple[str, ...], dict[str, tuple[int, int]]]] = {}
        self._effects: dict[bytes, tuple[str, str, Fact]] = {}

    def menu(self, library, buffer: _Buffer) -> tuple[tuple[str, ...], dict[str, tuple[int, int]]]:
        """The admissible commands now, sorted, and for each its (operator, number of effects)."""
        count = library.get_applicable_operators_count()
        records, ints = buffer.operators(count)
        library.get_applicable_operators(records)
        ids, effects = ints[0 : count * _INTS : _INTS], ints[_INTS - 1 : count * _INTS : _INTS]
        key = ids.tobytes() + effects.tobytes()
        found = self._menus.get(key)
        if found is None:
            chosen: dict[str, tuple[int, int]] = {}
            for i, (number, size) in enumerate(zip(ids.tolist(), effects.tolist(), strict=True)):
                chosen.setdefault(self._command(number, records[i]), (number, size))
            if len(self._menus) >= _MENUS:
                self._menus.clear()
            found = self._menus[key] = (tuple(sorted(chosen)), chosen)
        return found

    def _command(self, number: int, record) -> str:
        if number not in self._operators:
            action, *entities = record.name.split()
            binding = dict(zip(self.parameters[action], entities, strict=False))
            # A command's words depend on constant facts only, so the start's will do.
            command = self.grammar.command(action, binding, self.facts, self.names)
            self._operators[number] = command, action, binding
        return self._operators[number][0]

    def feedback(self, number: int, facts: dict) -> str:
        """The answer to an operator once `facts` hold its effects."""
        _, action, binding = self._operators[number]
        return self.grammar.feedback(action, binding, facts, self.names)

    def effect(self, atom: bytes) -> tuple[str, str, Fact]:
        """An effect as (predicate that now holds, predicate that no longer holds, entities)."""
        found = self._effects.get(atom)
        if found is None:
            holds, (predicate, *entities) = parse_atom(atom.decode("cp1252"))
            pair = (predicate, "not_" + predicate) if holds else ("not_" + predicate, predicate)
            found = self._effects[atom] = (*pair, tuple(entities))
        return found


@lru_cache(maxsize=32)  # a kitchen's planning task takes 2 MB
def load_game(game: Game) -> LoadedGame:
    """The game, ready to play; shared by every slot of the process that plays it now."""
    return LoadedGame(game)


class AlfworldEnv:
    """One slot: plays one game at a time. Raises ValueError on a broken game; see `trca_jax.envs.base.Env`."""

    def __init__(self) -> None:
        self._library = None  # loaded at the first reset, in the process that plays

    def reset(self, task: Task) -> Observation:
        """The first observation of `task` (its payload is a `Game`)."""
        if self._library is None:
            fast_downward()
            self._library, self._buffer = load_library(), _Buffer()
        self._game = game = load_game(task.payload)
        self._library.load_sas(game.sas)
        self._facts = {predicate: set(known) for predicate, known in game.facts.items()}
        self._won = self._library.check_goal()
        admissible, self._commands = game.menu(self._library, self._buffer)
        return Observation(game.intro, admissible, done=self._won, won=self._won)

    def step(self, action: str) -> Observation:
        """The answer to a command; anything that is not admissible answers "Nothing happens." and changes nothing."""
        already_won, text = self._won, NOTHING
        chosen = self._commands.get(action.strip())
        if chosen is not None:
            number, effects = chosen
            atoms = self._buffer.atoms(effects)
            self._library.apply_operator(number, atoms)
            for i in range(effects):
                now, before, entities = self._game.effect(atoms[i]._name)
                if before in self._facts:
                    self._facts[before].discard(entities)
                self._facts.setdefault(now, set()).add(entities)
            text = self._game.feedback(number, self._facts)
            self._won = self._library.check_goal()
        admissible, self._commands = self._game.menu(self._library, self._buffer)
        return Observation(text, admissible, float(self._won and not already_won), self._won, self._won)

    def hidden_facts(self) -> frozenset[Fact]:
        """The full state with entities' names, for tests only: (predicate, name, ...). Agents must never see it."""
        names = self._game.names
        return frozenset((p, *(names[e].strip() for e in fact)) for p, known in self._facts.items() for fact in known)


class _Buffer:
    """Records that the library writes to, kept between steps because one is 1 KB."""

    def __init__(self) -> None:
        self._records, self._ints, self._atoms = (), memoryview(b""), {}

    def operators(self, count: int):
        """Room for `count` Operator records, and the same memory as C ints."""
        if len(self._records) < count:
            kind = fast_downward().Operator * (count + 64)
            memory = bytearray(ctypes.sizeof(kind))
            self._records, self._ints = kind.from_buffer(memory), memoryview(memory).cast("i")
        return self._records, self._ints

    def atoms(self, count: int):
        if count not in self._atoms:
            self._atoms[count] = (fast_downward().Atom * count)()
        return self._atoms[count]


def entity_names(ids: set[str]) -> dict[str, str]:
    """`cabinet_bar__plus_00...` -> `cabinet 3`, numbered downward in sorted order as ALFWorld does."""
    counts, names = Counter(), {}
    for entity in sorted(ids, reverse=True):
        name, *place = entity.split("_bar_", 1)
        if place:
            name += "basin" if "basin" in entity else ""
            counts[name] += 1
            names[entity] = f"{name} {counts[name]}"
        else:
            names[entity] = f"{name} "  # the trailing blank is ALFWorld's
    return names
