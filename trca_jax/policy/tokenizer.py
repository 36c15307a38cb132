"""Tokenizers: any Hugging Face folder, and the word-level one that tiny policies read game text with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

PAD, UNKNOWN, OPEN, CLOSE = "<pad>", "<unk>", "<action>", "</action>"
_BRACKETS = str.maketrans("[]", "  ")


def read_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a local Hugging Face folder, its chat template included; nothing is downloaded.

    Raises ValueError if there is none or its files cannot be read.
    """
    folder = Path(folder)
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(f"{folder}: no tokenizer.json; a model folder holds config.json, tokenizer.json and weights")
    try:
        about = folder / "tokenizer_config.json"
        named = json.loads(about.read_text(encoding="utf-8")).get("tokenizer_class") if about.is_file() else None
        # Beside a Qwen2 config.json AutoTokenizer would put its own byte-level splitting over what a plain file says.
        plain = named in (None, "PreTrainedTokenizerFast", PreTrainedTokenizerFast.__name__)
        return (PreTrainedTokenizerFast if plain else AutoTokenizer).from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # the libraries raise all sorts, also bare ones
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{folder}: its tokenizer cannot be read ({reason}); copy the folder again") from error


def check_vocabulary(vocab_size: int, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises ValueError if the tokenizer has ids that a model of so many rows lacks; unused rows do no harm."""
    ids = max(tokenizer.get_vocab().values()) + 1
    if ids > vocab_size:
        raise ValueError(
            f"the tokenizer has {ids} ids, but the model's vocab_size is {vocab_size}; "
            "use the tokenizer that the model was made with"
        )


def word_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer with one id for every lower-cased word of `texts`, sorted, after the four special tokens.

    Encoding splits at white space and at square brackets, which are dropped, so that the words of `click[buy now]` are
    those of a page; decoding joins words by single blanks. `</action>` is the end-of-answer token.
    """
    words = {word for text in texts for word in text.lower().translate(_BRACKETS).split()}
    words = sorted(words - {PAD, UNKNOWN, OPEN, CLOSE})
    vocabulary = {word: i for i, word in enumerate([PAD, UNKNOWN, OPEN, CLOSE, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    brackets = pre_tokenizers.Split(Regex(r"[\[\]]"), "removed")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), brackets])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, unk_token=UNKNOWN, eos_token=CLOSE)
