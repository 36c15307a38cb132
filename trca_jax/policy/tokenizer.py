"""Tokenizers: any Hugging Face folder, and the word-level one that tiny policies read game text with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

PAD, UNKNOWN, OPEN, CLOSE = "<pad>", "<unk>", "<action>", "</action>"


def read_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a local Hugging Face folder. Raises ValueError if there is none; nothing is downloaded."""
    if not (Path(folder) / "tokenizer.json").is_file():
        raise ValueError(f"{folder}: no tokenizer.json; a model folder holds config.json, tokenizer.json and weights")
    # AutoTokenizer would see a Qwen2 config.json and put its own byte-level splitting over what the file says.
    return PreTrainedTokenizerFast.from_pretrained(str(folder), local_files_only=True)


def word_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer with one id for every lower-cased word of `texts`, sorted, after the four special tokens.

    Encoding splits at white space; decoding joins words by single blanks. `</action>` is the end-of-answer token.
    """
    words = sorted({word for text in texts for word in text.lower().split()} - {PAD, UNKNOWN, OPEN, CLOSE})
    vocabulary = {word: i for i, word in enumerate([PAD, UNKNOWN, OPEN, CLOSE, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, unk_token=UNKNOWN, eos_token=CLOSE)
