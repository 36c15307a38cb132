"""Fixtures that every test may use."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real games and golden values beside the checkout; tests that need it say so when it is missing."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip("real games and golden values (../shared/data) are not here; this test did not run")
    return path
