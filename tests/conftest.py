"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
from commands import Commands, write_small_model

from trca_jax.policy.tokenizer import read_tokenizer


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real games and golden values beside the checkout; tests that need it say so when it is missing."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip("real games and golden values (../shared/data) are not here; this test did not run")
    return path


@pytest.fixture(scope="session")
def qwen_folder() -> Path:
    """A folder with the published tokenizer of Qwen2.5; tests that need it say so when it is missing."""
    folder = os.environ.get("TRCA_QWEN_TOKENIZER")
    if not folder:
        pytest.skip("TRCA_QWEN_TOKENIZER names no folder with Qwen2.5's tokenizer; this test did not run")
    return Path(folder)


@pytest.fixture(scope="session")
def qwen(qwen_folder):
    return read_tokenizer(qwen_folder)


@pytest.fixture(scope="session")
def commands(tmp_path_factory) -> Commands:
    """The commands of launch/ with a start policy that fits any machine."""
    model = write_small_model(tmp_path_factory.mktemp("start") / "model")
    return Commands(model, tmp_path_factory.mktemp("compiled"))
