"""Files of tensors: what the safetensors library reads and writes, and errors for damaged files."""

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from trca_jax.policy.tensors import Tensor, read_tensors, write_tensors

RNG = np.random.default_rng(0)
CONTENT = {"a": RNG.standard_normal((3, 5), np.float32), "b.c": RNG.standard_normal(7, np.float32)}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_what_the_library_writes_is_read_without_a_copy(dtype, tmp_path):
    expected = {name: x.astype(dtype) for name, x in CONTENT.items()}
    save_file(expected, tmp_path / "x", metadata={"format": "pt"})
    found = read_tensors(tmp_path / "x")
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        assert found[name].dtype == dtype and not found[name].flags.owndata
        np.testing.assert_array_equal(found[name], x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_library_reads_what_was_written_in_pieces(dtype, tmp_path):
    tensors = [
        Tensor("a", (3, 5), lambda: (CONTENT["a"][:2], CONTENT["a"][2:])),
        Tensor("b.c", (7,), lambda: [CONTENT["b.c"]]),
    ]
    write_tensors(tmp_path / "x", tensors, dtype)
    for name, x in load_file(tmp_path / "x").items():
        np.testing.assert_array_equal(x, CONTENT[name].astype(dtype))  # rounded to the nearest
        assert x.dtype == dtype
    length = int.from_bytes((tmp_path / "x").read_bytes()[:8], "little")
    assert length % 8 == 0 and json.loads((tmp_path / "x").read_bytes()[8 : 8 + length])["__metadata__"]


def test_a_damaged_file_is_refused_by_its_name(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(CONTENT, path)
    good = path.read_bytes()
    length = int.from_bytes(good[:8], "little")

    def with_header(**changes):
        header = json.loads(good[8 : 8 + length])
        header["a"] |= changes
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + good[8 + length :]

    cases = {
        "its header ends at byte 8, the file at byte 0": b"",
        "its header ends at byte 8, the file at byte 8": bytes(8),
        rf"its header ends at byte {8 + length}, the file at byte 60": good[:60],
        rf"its header ends at byte {1 << 62 | 8}": (1 << 62).to_bytes(8, "little") + good[8:],
        "its header cannot be read": good[:20] + b"\xff" + good[21:],
        rf"b.c ends at byte {len(good)}, the file at byte {len(good) - 1}": good[:-1],
        r"a of shape \(3, 4\) and type F32 has 60 bytes": with_header(shape=[3, 4]),
        "its header cannot be read, not enough values": with_header(data_offsets=[0]),
        r"a has dtype F8_E4M3, expected one of F32, F16, BF16; convert": with_header(dtype="F8_E4M3"),
    }
    for message, content in cases.items():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message) as error:
            read_tensors(path)
        assert str(path) in str(error.value)
        assert "copy the file again" in str(error.value) or "convert" in str(error.value)
