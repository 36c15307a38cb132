"""The word-level tokenizer, and reading tokenizers from folders."""

import pytest

from trca_jax.agents.prompts import InstructPrompt
from trca_jax.policy.tokenizer import check_vocabulary, read_tokenizer, word_tokenizer
from trca_jax.rollout.codec import Codec

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


def test_brackets_part_words_and_are_dropped():
    tokenizer = word_tokenizer(["click[Buy Now]", "now [x]"])
    assert set(tokenizer.get_vocab()) == {"<pad>", "<unk>", "<action>", "</action>", "click", "buy", "now", "x"}
    ids = tokenizer.encode("click[buy now] [] </action>", add_special_tokens=False)
    assert tokenizer.convert_ids_to_tokens(ids) == ["click", "buy", "now", "</action>"]


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


@pytest.mark.parametrize("broken", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", "\xff"])
def test_a_broken_file_is_one_clear_line(tokenizer, tmp_path, broken, content):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / broken).write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=rf"{tmp_path.name}: its tokenizer cannot be read \(.+\); copy") as caught:
        read_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_model_needs_a_row_for_every_id(tokenizer):
    check_vocabulary(len(tokenizer), tokenizer)
    check_vocabulary(len(tokenizer) + 271, tokenizer)
    ids = len(tokenizer)
    with pytest.raises(ValueError, match=f"the tokenizer has {ids} ids, but the model's vocab_size is {ids - 1}; use"):
        check_vocabulary(ids - 1, tokenizer)


class TestQwen:
    def test_it_is_the_published_one(self, qwen):
        assert (len(qwen), qwen.eos_token, qwen.eos_token_id, qwen.pad_token) == (
            151_665, "<|im_end|>", 151_645, "<|endoftext|>",
        )  # fmt: skip
        assert qwen.encode("<|im_start|>user\nhi 2024") == [151644, 872, 198, 6023, 220, 17, 15, 17, 19]
        check_vocabulary(151_936, qwen)
        check_vocabulary(152_064, qwen)
        with pytest.raises(ValueError, match="151665 ids, but the model's vocab_size is 151643"):
            check_vocabulary(151_643, qwen)

    def test_a_models_config_beside_it_changes_nothing(self, qwen, qwen_folder, tmp_path):
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (tmp_path / name).symlink_to(qwen_folder.resolve() / name)
        (tmp_path / "config.json").write_text('{"model_type": "qwen2"}')
        again = read_tokenizer(tmp_path)
        text = "<|im_start|>go to desk 10 </action>\n"
        assert (len(again), again.encode(text)) == (len(qwen), qwen.encode(text))
        assert again.chat_template == qwen.chat_template

    def test_an_instruct_prompt_is_a_chat_message(self, qwen):
        prompt = InstructPrompt("You act.")
        codec = Codec(qwen, prompt, 64)
        text = prompt.next("put a mug on the desk", [("a room", "look")], "a desk 1", ("go to desk 1", "look"))
        ids = codec.prompt_ids(text)
        assert codec.decode(ids).text == (
            "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
            f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        )
        assert ids.count(151_644) == 3 and ids.count(151_645) == 2
