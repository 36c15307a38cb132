"""The world: a study with four drawers, a key in three of them, and three locked chests."""

from trca_jax.envs.base import Observation, Task

COLOURS = ("red", "blue", "green")
DRAWERS = ("1", "2", "3", "4")
NOTHING_HAPPENS = "Nothing happens."


class ChestsEnv:
    def reset(self, task: Task) -> Observation:
        self.goal, self.keys = task.payload["goal"], dict(task.payload["keys"])  # drawer -> colour
        self.seen, self.hand, self.unlocked = set(), None, set()
        return self._show("You are in a study with drawer 1, drawer 2, drawer 3, drawer 4 and three locked chests.")

    def step(self, action: str) -> Observation:
        if action not in self._admissible():
            return self._show(NOTHING_HAPPENS)
        verb, what, *rest = action.split()
        if verb == "take":
            self.hand = what
            return self._show(f"You take the {what} key.")
        if verb == "unlock":
            self.unlocked.add(what)
            return self._show(f"You unlock the {what} chest.")
        if what in COLOURS:
            return self._show(f"You open the {what} chest.", won=what == self.goal)
        colour = self.keys.get(rest[0])
        self.seen |= {colour} - {None}
        return self._show(f"In drawer {rest[0]} is {f'a {colour} key' if colour else 'nothing'}.")

    def _admissible(self) -> tuple[str, ...]:
        return (
            *(f"open drawer {number}" for number in DRAWERS),
            *(f"take {colour} key" for colour in COLOURS if colour in self.seen and colour != self.hand),
            *(f"unlock {colour} chest" for colour in COLOURS if colour == self.hand and colour not in self.unlocked),
            *(f"open {colour} chest" for colour in COLOURS if colour in self.unlocked),
        )

    def _show(self, text: str, won: bool = False) -> Observation:
        return Observation(text, self._admissible(), float(won), won, won)
