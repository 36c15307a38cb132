"""launch/generate_rubrics.py: the question, an answer from a file, an answer from an endpoint."""

import io
from contextlib import redirect_stdout

import pytest
from chat_server import serving
from commands import ROOT

from launch import generate_rubrics
from trca_jax.envs.registry import make_benchmark

CONFIG = "--config=configs/alfworld.py"
SHIPPED = (ROOT / "trca_jax" / "envs" / "alfworld" / "rubric.toml").read_text()
pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections


def test_without_an_answer_the_question_is_printed(commands, capsys):
    assert commands.call(generate_rubrics.main, CONFIG) == 0
    out = capsys.readouterr().out
    assert "called alfworld" in out and "take {object} from {receptacle}" in out and "gained (symbol)" in out


def test_an_answer_in_a_file_becomes_a_library(commands, tmp_path):
    reply, out = tmp_path / "reply.txt", tmp_path / "new"
    reply.write_text(f"```toml\n{SHIPPED}```\n")
    with redirect_stdout(io.StringIO()) as said:
        assert commands.call(generate_rubrics.main, CONFIG, f"--reply={reply}", f"--out={out}") == 0
    assert [path.name for path in out.iterdir()] == ["rubric.toml"]
    fingerprint = make_benchmark("alfworld").library.fingerprint
    assert f"fingerprint {fingerprint[:12]}" in said.getvalue() and "target_placed" in said.getvalue()
    assert commands.call(generate_rubrics.main, CONFIG, f"--reply={reply}", f"--out={out}") == 2  # never over another


def test_an_endpoint_is_asked_once_and_a_bad_answer_is_kept(commands, tmp_path, capfd):
    with serving(lambda body: SHIPPED.replace("accepted and target", "rm and target", 1).replace(
        'when = "not parsed"', "when = \"__import__('os')\""
    )) as server:  # fmt: skip
        flags = (f"--endpoint={server.url}", "--model=m", f"--out={tmp_path}")
        assert commands.call(generate_rubrics.main, CONFIG, *flags) == 2
    assert len(server.seen) == 1 and server.seen[0][0]["messages"][1]["content"].startswith("The benchmark is called")
    line = capfd.readouterr().err.splitlines()[-1]
    assert line.startswith(f"error: {tmp_path / 'reply.txt'}: operator 'unparsed': when: __import__('os') is not part")
    assert [path.name for path in tmp_path.iterdir()] == ["reply.txt"]


@pytest.mark.parametrize(
    "change, says",
    [
        (
            ('when = "regressed"', 'when = "regressed and near == near"'),
            "'regressed': when: near is a symbols",
        ),
        (('when = "regressed"', 'when = "regressed and not changed"'), "operator 'regressed': fires never in"),
        (('when = "repeated"', 'when = "parsed and not accepted or refused"'), "unknown name 'refused'"),
        (
            ('when = "repeated"', 'when = "parsed and not (accepted)"'),
            "'repeated': its condition is that of",
        ),
        (('when = "repeated"', 'when = "not accepted and parsed"'), "'repeated': fires exactly where 'refused' does"),
        (("[context]", "[context"), "the reply is not TOML"),
    ],
)
def test_a_bad_answer_is_refused_in_one_line(commands, tmp_path, capfd, change, says):
    reply, out = tmp_path / "reply.txt", tmp_path / "new"
    assert change[0] in SHIPPED
    reply.write_text(SHIPPED.replace(*change))
    assert commands.call(generate_rubrics.main, CONFIG, f"--reply={reply}", f"--out={out}") == 2
    (line,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("error"))
    assert line.startswith(f"error: {reply}: ")
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(line)
    assert not (out / "rubric.toml").exists()


def test_a_missing_file_or_folder_is_told(commands, tmp_path, capfd):
    for flags, says in (
        ((f"--reply={tmp_path / 'none'}", f"--out={tmp_path}"), "No such file"),
        ((f"--reply={tmp_path / 'none'}",), "--out is missing"),
        (("--reply=a", "--endpoint=http://127.0.0.1:9/v1", "--model=m"), "give one of them"),
        (("--model=m",), "--endpoint and --model go together"),
    ):
        assert commands.call(generate_rubrics.main, CONFIG, *flags) == 2
        assert says in capfd.readouterr().err.splitlines()[-1]
