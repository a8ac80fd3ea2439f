"""The command line: exit codes, one clean line per error, JSON that parses, help with examples, no torch to predict."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from catenary.cli.main import main

VERBS = (
    "profile", "predict", "atlas", "measure", "pathways", "rollout", "strengths", "boundaries", "compare",
    "report", "doctor", "order", "evolve", "learn",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, cwd: Path | None = None) -> Done:
    """The command within this process, for starting torch anew takes seconds; what needs its own starts it itself."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["catenary", *arguments])
        if cwd:
            patch.chdir(cwd)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as left:
            main()
    return Done(int(left.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predicted") / "run"
    done = run("predict", "toy", "--length", "64", "--out", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def test_predict_prints_shape_and_card_and_writes_a_page(predicted: Path) -> None:
    assert (predicted / "report.html").is_file()
    assert {p.name for p in predicted.iterdir()} >= {"result.json", "profiles.nc", "profile.csv", "figures"}
    shown = run("predict", "toy", "--length", "64")
    assert "last-token spike" in shown.stdout
    assert "note: " in shown.stdout
    assert "preset toy" in shown.stderr


def test_predict_json_is_the_profile(predicted: Path) -> None:
    import catenary

    shown = json.loads(run("predict", "toy", "--length", "64", "--json", "--quiet").stdout)
    expected = catenary.predict(catenary.read_config("toy"), length=64).values
    assert shown["values"] == pytest.approx(expected.tolist(), rel=1e-12)
    assert shown["card"]["logit_variance"] == pytest.approx(0.13, rel=0.01)


def test_predict_takes_ids_from_a_file(tmp_path: Path) -> None:
    import catenary

    ids = [0, 1] * 32
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    command = ("predict", "toy", "--length", "64", "--ids", str(tmp_path / "ids.json"), "--json", "--quiet")
    shown = json.loads(run(*command).stdout)
    expected = catenary.predict(catenary.read_config("toy"), length=64, ids=ids).values
    assert shown["values"] == pytest.approx(expected.tolist(), rel=1e-12)
    (tmp_path / "ids.json").write_text("[1, 2")
    refused = run(*command)
    assert refused.returncode == 2
    assert "ids must be a .npy file or a JSON list" in refused.stderr


def test_predict_needs_no_torch() -> None:
    program = (
        "import sys; sys.argv = ['catenary', 'predict', 'toy', '--length', '64', '--quiet'];\n"
        "from catenary.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "heavy = {'torch', 'transformers', 'xarray', 'altair', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_import_and_help_are_light() -> None:
    program = (
        "import sys, catenary, catenary.cli.main\n"
        "heavy = {'torch', 'transformers', 'xarray', 'altair', 'scipy', 'numba', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy - {'pydantic'}, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("predict", "no-such-model"), "no-such-model"),
        (("predict", "qwen2-0.5"), "did you mean 'qwen2-0.5b'"),
        (("predict", "toy", "--theory", "cesarro"), "Did you mean 'cesaro'"),
        (("predict", "toy", "--coupling", "weak"), "coupling"),
        (("predict", "toy", "--repeat-probability", "1.5"), "repeat_probability must be in [0, 1), got 1.5"),
        (("measure", "toy", "--tokens", "poems"), "unknown tokens 'poems'"),
        (("measure", "toy", "--weights", "pretrained", "--tokens", "vanilla"), "no weights"),
        (("measure", "toy", "--dtype", "int3"), "dtype"),
        (("measure", "toy", "--device", "cuda:9"), "device 'cuda:9' is not available here"),
        (("measure", "toy", "--output", "²"), "unknown output"),
        (("rollout", "toy", "--out", os.devnull), f"cannot write {os.devnull}"),
        (("pathways", "toy", "--out", os.devnull), f"cannot write {os.devnull}"),
        (("strengths", "toy", "--out", os.devnull), f"cannot write {os.devnull}"),
        (("profile", "toy", "--device", "tpu-vm"), "device 'tpu-vm' is not available here"),
        (("report", "nowhere"), "no finished run in nowhere"),
        (("compare", "nowhere"), "no finished run"),
        (("profile", "toy", "--conditions", "vanilla,poems"), "conditions"),
        (("profile", "--rerun", "nothing.json"), "rerun must be the result.json"),
    ],
)
def test_user_errors_are_one_line_and_exit_2(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("catenary: error")]
    assert len(lines) == 1
    assert list(tmp_path.rglob("*.part")) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--grid", "grid.toml", "--length", "64", "--probes", "2"), "write --length, --probes there"),
        (("--grid", "grid.toml", "toy"), "leave MODEL out"),
        (("toy", "--budget", "1"), "--jobs, --cluster and --budget go with --grid"),
    ],
)
def test_options_that_would_be_ignored_are_refused(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = run("measure", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_where() -> None:
    assert "Traceback" in run("--debug", "predict", "no-such-model").stderr
    assert "Traceback" in run("predict", "no-such-model", "--debug").stderr


def test_our_own_bugs_exit_1_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from catenary.cli import main as cli

    monkeypatch.setattr("catenary.configs.locate.locate_config", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["catenary", "predict", "toy"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert "internal error: ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(verb: str) -> None:
    shown = run(verb, "--help").stdout
    assert f"catenary {verb}" in shown
    assert "Examples" in shown


def test_compare_and_report_of_a_stored_run(predicted: Path, tmp_path: Path) -> None:
    twice = run("compare", f"{predicted}:predicted", str(predicted), "--json")
    assert twice.returncode == 0, twice.stderr
    assert json.loads(twice.stdout)["comparisons"][0]["a"].endswith(":predicted")
    again = run("report", str(predicted), "--out", str(tmp_path / "page"), "--title", "Mine <b>")
    assert again.returncode == 0, again.stderr
    assert "Mine &lt;b&gt;" in (tmp_path / "page" / "report.html").read_text()
    alone = run("compare", str(predicted))
    assert alone.returncode == 2
    assert "name two" in alone.stderr


def test_measure_stores_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = run("measure", "toy", "--length", "32", "--windows", "2", "--probes", "2", "--out", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["config"]["request"]["probes"] == 2
    assert (folder / "profiles.nc").is_file()


def test_measure_picks_probes_for_a_target_error(tmp_path: Path) -> None:
    command = ("measure", "toy", "--length", "32", "--windows", "1", "--target-error", "0.08", "--out", str(tmp_path))
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert "probes per window reach a relative error of 0.08" in done.stderr


def test_doctor_looks_at_environment_and_model() -> None:
    done = run("doctor", "toy", "--json")
    assert done.returncode == 0, done.stderr
    topics = {finding["topic"] for finding in json.loads(done.stdout)["findings"]}
    assert {"versions", "config", "architecture", "weights", "tokenizer", "prediction", "network"} <= topics
    network = next(f["text"] for f in json.loads(done.stdout)["findings"] if f["topic"] == "network")
    assert "model.layers x 2" in network
    assert "positions rotary, final norm model.norm (" in network
    too_long = run("doctor", "gpt2", "--length", "2048")
    assert too_long.returncode == 2
    assert "2048 tokens of at most 1024" in too_long.stdout


@pytest.mark.demo
def test_doctor_tells_bos_of_a_real_tokenizer(demo_folder: Path) -> None:
    shown = run("doctor", str(demo_folder / "smollm2-135m")).stdout
    assert "puts nothing in front" in shown
    assert "MiB of safetensors" in shown


def test_docs_of_the_command_line_are_current() -> None:
    script = Path(__file__).parent.parent / "scripts" / "generate_docs.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)


def test_an_interrupt_is_one_line_and_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C inside a command, which typer catches and reports by its exit code, and outside of one."""

    def command(*_: object, **__: object) -> int:
        return 130

    def startup(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    for interrupted in (command, startup):
        monkeypatch.setattr("catenary.cli.app.app", interrupted)
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 130
        assert capsys.readouterr().err == (
            "catenary: interrupted; what a profile or measurement finished is kept, the same command resumes\n"
        )


def test_what_if_and_atlas_print_and_write(tmp_path: Path) -> None:
    done = run("predict", "toy", "-L", "64", "--vary", "num_hidden_layers=2:4:2", "--sensitivities", "--json",
               "--out", str(tmp_path / "vary"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["num_hidden_layers"] for row in found["variation"]] == [2, 4]
    assert found["sensitivities"][0]["field"]
    assert {path.name for path in (tmp_path / "vary").iterdir()} >= {
        "variation.csv", "variation.json", "sensitivities.json", "report.html", "figures"
    }
    done = run("atlas", "toy", "gpt2", "-L", "64", "--no-knobs", "--out", str(tmp_path / "atlas"))
    assert done.returncode == 0, done.stderr
    assert "gpt2" in done.stdout
    assert (tmp_path / "atlas" / "atlas.html").exists()
    done = run("predict", "toy", "-q", "--vary", "hidden_size=8,,9", "--ids", "x.npy")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_nothing_finished_is_replaced_unasked(tmp_path: Path) -> None:
    """Variations, sensitivities and atlases as runs: the same again is fine, anything else needs --overwrite."""
    vary = ("predict", "toy", "-q", "-L", "32", "--vary")
    atlas = ("atlas", "-q", "-L", "32", "--no-knobs", "toy")
    out = ("--out", str(tmp_path / "vary"))
    page = ("--out", str(tmp_path / "atlas"))
    for command, other, different in (
        ((*vary, "num_hidden_layers=2", *out), (*vary, "num_hidden_layers=3", *out), "vary"),
        ((*atlas, *page), (*atlas, "gpt2", *page), "models"),
    ):
        assert run(*command).returncode == 0
        before = {path: path.read_bytes() for path in Path(command[-1]).iterdir() if path.is_file()}
        assert run(*command).returncode == 0
        assert {path: path.read_bytes() for path in before} == before
        done = run(*other)
        assert done.returncode == 2
        assert f"(different: {different})" in done.stderr
        assert {path: path.read_bytes() for path in before} == before
    done = run("predict", "toy", "-q", "-L", "32", *out)
    assert done.returncode == 2
    assert "result of another command (variation.json)" in done.stderr
    assert run(*vary, "num_hidden_layers=3", *out, "--overwrite").returncode == 0


def test_a_folder_written_for_another_content_of_the_same_file_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    small = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2}
    config.write_text(json.dumps(small))
    command = ("predict", str(config), "--length", "32", "--out", str(tmp_path / "out"))
    assert run(*command).returncode == 0
    assert run(*command).returncode == 0
    config.write_text(json.dumps({**small, "n_layer": 3}))
    done = run(*command)
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
