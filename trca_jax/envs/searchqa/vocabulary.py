"""Every word of the generated world's passages and questions, and of commands, for tokenizers made of words."""

from __future__ import annotations

from trca_jax.envs.searchqa import generator
from trca_jax.envs.searchqa.actions import ANSWER, SEARCH
from trca_jax.envs.searchqa.brief import brief
from trca_jax.envs.searchqa.commands import command


def vocabulary() -> str:
    """Words of texts in few words, and of commands as a tokenizer of words parts them."""
    words = {"doc", "yes", "no"}
    for kind in (SEARCH, ANSWER):
        words.update(command(kind, "").split())
    for passage in generator.corpus():
        words.update(brief(passage.text).split(), passage.title.lower().split())
    for split in generator.SPLITS:
        for q in generator.questions(split):
            words.update(brief(q.question).split(), q.question.lower().rstrip("?").split())
            words.update(q.golden_answers[0].lower().split())
    return " ".join(sorted(words))
