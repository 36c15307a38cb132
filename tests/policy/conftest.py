"""The tiny models that the tests of this room share."""

import pytest
from tiny import TINY, UNTIED, random_params

from trca_jax.policy.hf import write_model


@pytest.fixture(scope="session")
def params():
    return random_params(TINY)


@pytest.fixture(scope="session", params=[TINY, UNTIED], ids=["tied", "untied"])
def config(request):
    return request.param


@pytest.fixture(scope="session")
def weights(config):
    return random_params(config, seed=3)


@pytest.fixture(scope="session")
def folder(config, weights, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "new" / "folder"
    write_model(folder, config, weights)
    return folder
