"""Prompts for questions with a search engine: blocks of `<search>` and `<answer>` instead of actions from a list.

Stepwise as verl-agent has it, append as Search-R1 has it; the wording is our own. Source: spec/searchqa.md section 1.1.
"""

from __future__ import annotations

from trca_jax.agents.parse import Parsed, parse_blocks

BLOCKS = ("search", "answer")
_STOPS = tuple(f"</{kind}>" for kind in BLOCKS)


class SearchPrompt:
    """The stepwise layout: question, all that was searched and found in the last steps, and what may be done now.

    role: the sentence that it begins with, as `Benchmark.role`. history: steps that are shown. Raises ValueError for
    less than 0.
    """

    layout, opened, messages, stops, whole = "stepwise", False, True, _STOPS, True

    def __init__(self, role: str, history: int = 4):
        if history < 0:
            raise ValueError(f"prompt history {history} must be at least 0 steps")
        self._role, self._history = role, history

    def first(self, instruction, observation, admissible):
        return self.next(instruction, (), observation, admissible)

    def next(self, instruction, history, observation, admissible):
        lines = [self._role, f"Question: {instruction}"]
        if history:
            answers = [*(seen for seen, _ in history[1:]), observation]
            shown = list(enumerate(zip(history, answers, strict=True), 1))
            lines.append(f"You have taken {len(history)} step(s) so far. The latest, with what they found:")
            lines += [
                f"Step {k}: {action} {found}" for k, ((_, action), found) in shown[max(len(shown) - self._history, 0) :]
            ]
        lines += [
            "First reason inside <think> </think> about what is known and what is missing. Then do one of two things:",
            "(1) if something is missing, put one query inside <search> </search>;",
            "(2) if enough is known, put the short final answer inside <answer> </answer>.",
        ]
        return "\n".join(lines)

    def read(self, answer: str) -> Parsed:
        return parse_blocks(answer, BLOCKS)


class SearchDialogue:
    """The append layout: the question once, then what every search found; the model's own words stay in the row."""

    layout, opened, messages, stops, whole = "append", False, False, _STOPS, True

    def __init__(self, role: str):
        self._role = role

    def first(self, instruction, observation, admissible):
        return (
            f"{self._role} Whenever you have learnt something new, reason inside <think> </think>. To look something "
            "up, write a query inside <search> </search>; the best results come back inside <information> "
            "</information>, as often as you like. When nothing is missing, write the answer alone, without an "
            "explanation, inside <answer> </answer>, for example <answer> Nairobi </answer>.\n"
            f"Question: {instruction}\n"
        )

    def next(self, instruction, history, observation, admissible):
        return f"\n\n{observation}\n\n"

    def read(self, answer: str) -> Parsed:
        return parse_blocks(answer, BLOCKS)


class ReasonPrompt(SearchDialogue):
    """Without a search engine, as R1-Instruct has it: the question, and an answer after some reasoning."""

    def first(self, instruction, observation, admissible):
        return (
            f"{self._role} Reason inside <think> </think> first. Then write the answer alone, without an explanation, "
            "inside <answer> </answer>, for example <answer> Nairobi </answer>.\n"
            f"Question: {instruction}\n"
        )
