"""A worked question in SearchQA's own texts, for prompts that show one. Its names are in no corpus."""

import json

from trca_jax.envs.base import Example


def _found(*documents: tuple[str, str]) -> str:
    text = "\n".join(f'Doc {k}: "{title}"\n{content}' for k, (title, content) in enumerate(documents, 1))
    return f"<information>{json.dumps({'result': text})}</information>"


EXAMPLE = Example(
    "In which town was the composer of the opera The Glass Harbour born?",
    (
        (
            "In which town was the composer of the opera The Glass Harbour born?",
            "I must know who composed The Glass Harbour first.",
            "<search> The Glass Harbour opera composer </search>",
        ),
        (
            _found(
                ("The Glass Harbour", "The Glass Harbour is an opera in two acts by Odile Varenne."),
                ("Harbour", "A harbour is a place where ships lie safely."),
            ),
            "Odile Varenne composed it. Now I look up where Odile Varenne was born.",
            "<search> Odile Varenne born </search>",
        ),
        (
            _found(("Odile Varenne", "Odile Varenne, born 1871 in Saint-Orlan, was a composer and teacher.")),
            "Odile Varenne was born in Saint-Orlan, which answers the question.",
            "<answer> Saint-Orlan </answer>",
        ),
    ),
)
