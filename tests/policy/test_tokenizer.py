"""The word-level tokenizer, and reading tokenizers from folders."""

import pytest

from trca_jax.policy.tokenizer import read_tokenizer, word_tokenizer

TEXTS = ["task put mug scene desk 1", "go to Desk 1", "take mug 1 from desk 1", "it's here ."]


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer(TEXTS)


def test_special_tokens_come_first_and_words_are_sorted(tokenizer):
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3]) == ["<pad>", "<unk>", "<action>", "</action>"]
    words = tokenizer.convert_ids_to_tokens(range(4, len(tokenizer)))
    assert words == sorted({word for text in TEXTS for word in text.lower().split()})
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.eos_token_id) == (0, 1, 3)
    assert len(word_tokenizer(["<action> a", "</action> <pad>"])) == 5


@pytest.mark.parametrize("text", ["go to desk 1 </action>", "it's here . <action>", "mug mug mug", "1 ."])
def test_encoding_and_decoding_known_words_is_a_round_trip(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert len(ids) == len(text.split())
    assert tokenizer.decode(ids) == text
    # The text of a prefix is a prefix of the text: what the search for the action's tokens relies on.
    assert all(text.startswith(tokenizer.decode(ids[:n])) for n in range(len(ids) + 1))


def test_case_is_folded_and_unknown_words_share_one_id(tokenizer):
    assert tokenizer.encode("DESK  1\n", add_special_tokens=False) == tokenizer.encode("desk 1")
    assert tokenizer.decode(tokenizer.encode("go to sofa 1")) == "go to <unk> 1"


def test_a_saved_tokenizer_reads_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}')  # must not bring in Qwen2's own splitting of text
    again = read_tokenizer(tmp_path)
    text = "<action> take mug 1 from sofa </action>"
    assert again.encode(text, add_special_tokens=False) == tokenizer.encode(text)
    assert again.decode(again.encode(text)) == "<action> take mug 1 from <unk> </action>"
    assert (again.pad_token_id, again.eos_token_id, len(again)) == (0, 3, len(tokenizer))
    assert not again.chat_template


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no tokenizer\.json; a model folder holds"):
        read_tokenizer(tmp_path)
