"""Audits in the queue: what comes out, giving up, and how many are held."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from leakscope import InputError
from leakscope.data import read_example
from leakscope.results.kinds import kind_named
from leakscope.serving import Limits, audit_job
from leakscope.serving.audit_process import AuditProcess
from leakscope.serving.jobs import Busy, GivenUp, Jobs
from leakscope.serving.wording import STAGE_WORDS, in_page_words
from leakscope.settings import AuditSettings
from serving import client, finished, upload


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    with client(tmp_path_factory.mktemp("wine")) as (found, _):
        wanted = {"example": "wine", "model": "process"}
        job = found.post("/api/jobs", json=wanted).json()["job"]
        yield found, job, finished(found, job)


def test_an_example_is_audited(wine):
    found, job, state = wine
    assert state["state"] == "done", state
    outcome = state["outcome"]
    assert "your model was not examined" in outcome["verdict"]
    assert outcome["records"] == 178
    page = found.get(f"/jobs/{job}")
    assert page.status_code == 200
    assert "stands in for your model, which was not examined" in outcome["examined"]
    assert "Working out the model" in page.text
    assert f"/jobs/{job}" in found.get("/").text
    script = found.get("/static/vega.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "vegaEmbed" in script.text


def test_the_noise_path_is_there_and_is_the_audits_own_in_the_middle(wine):
    noise = wine[2]["outcome"]["noise"]
    own = noise["levels"][noise["audited"]]
    assert own["noise_variance"] == AuditSettings().noise_variance
    from leakscope import audit

    alone = audit(read_example("wine"), settings=AuditSettings(kernel="rbf", sensitivity=False))
    assert own["largest_advantage"] == pytest.approx(alone.advantage.max())
    assert own["top"][0][0] == str(alone.ranking()[0])
    exposed = [level["exposed"] for level in noise["levels"]]
    assert exposed == sorted(exposed, reverse=True)
    assert noise["levels"][-1]["wrong_class"] > own["wrong_class"]


def test_the_report_is_served_as_it_is(wine):
    found, job, _ = wine
    answer = found.get(f"/jobs/{job}/report")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == "frame-ancestors 'self'"
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert answer.headers["cache-control"] == "no-store"
    assert 'http-equiv="Content-Security-Policy"' in answer.text
    assert "content-disposition" not in answer.headers
    saved = found.get(f"/jobs/{job}/report?redact&download")
    assert "attachment" in saved.headers["content-disposition"]
    assert "Redacted: aggregates only" in saved.text
    assert "Redacted: aggregates only" not in answer.text


def test_pictures_of_an_archive_are_in_the_report(tmp_path):
    digits = read_example("digits")
    buffer = io.BytesIO()
    np.savez(buffer, X=digits.features[:60].reshape(60, 8, 8), y=digits.target[:60])
    with client(tmp_path) as (found, _):
        told = upload(found, "pictures.npz", buffer.getvalue()).json()
        assert told["offered"]["target"] == "y"
        assert told["offered"]["task"] == "classification"
        wanted = {
            "upload": told["upload"],
            "target": "y",
            "task": "classification",
            "model": "process",
        }
        job = found.post("/api/jobs", json=wanted).json()["job"]
        assert finished(found, job)["state"] == "done"
        assert found.get(f"/jobs/{job}/report").text.count("data:image/png") >= 12


def test_groups_say_why_there_is_no_slider(tmp_path):
    lines = ["who,a,y"] + [f"p{i // 2},{i * 0.37 % 1},{i * 0.71 % 1}" for i in range(40)]
    with client(tmp_path) as (found, _):
        told = upload(found, "t.csv", "\n".join(lines).encode()).json()
        wanted = {"upload": told["upload"], "target": "y", "group_column": "who"}
        wanted["model"] = "process"
        job = found.post("/api/jobs", json=wanted).json()["job"]
        state = finished(found, job)
        assert state["state"] == "done", state
        assert state["outcome"]["unit"] == "group"
        assert state["outcome"]["noise"] is None
        assert "groups" in state["outcome"]["no_noise"]


@pytest.mark.parametrize(
    ("noise", "told"), [("-1", "greater than 0"), ("much", "number"), (float("inf"), "finite")]
)
def test_bad_settings_are_refused_before_a_job_starts(tmp_path, noise, told):
    with client(tmp_path) as (found, _):
        body = {"example": "iris", "model": "process", "noise_variance": str(noise)}
        answer = found.post("/api/jobs", json=body)
        assert answer.status_code == 400
        assert told in answer.json()["error"]


def test_what_is_too_large_for_memory_is_refused_before_it_starts(tmp_path, monkeypatch):
    from leakscope._numerics import memory

    monkeypatch.setattr(memory, "available_memory", lambda: memory.HEADROOM_BYTES + 1000)
    with client(tmp_path) as (found, _):
        wanted = {"example": "iris", "model": "process"}
        state = finished(found, found.post("/api/jobs", json=wanted).json()["job"])
        assert state["state"] == "failed"
        assert "of memory" in state["problem"]


def test_something_unforeseen_in_an_audit_is_told_without_details(tmp_path, capfd):
    def broken(*_):
        raise RuntimeError("secret detail")

    with client(tmp_path, run=broken) as (found, _):
        state = finished(found, found.post("/api/jobs", json={"example": "iris"}).json()["job"])
        assert state["state"] == "failed"
        assert "secret" not in state["problem"]
    assert "secret detail" in capfd.readouterr().err


def wait_for(condition, seconds=300.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_one_at_a_time_the_rest_wait_and_can_be_given_up():
    jobs = Jobs(Limits(jobs_waiting=2))
    go, running, most = threading.Event(), [0], [0]

    def make(identity):
        def work(on_stage):
            running[0] += 1
            most[0] = max(most[0], running[0])
            try:
                for stage in ("one", "two"):
                    on_stage(stage)
                    go.wait(600)
            finally:
                running[0] -= 1
            return identity

        return work

    first, second = (jobs.add(name, ("one", "two"), make) for name in "ab")
    wait_for(lambda: jobs.get(first.id).state == "running")
    third = jobs.add("c", ("one", "two"), make)
    assert [jobs.get(job.id).ahead for job in (second, third)] == [1, 2]
    with pytest.raises(Busy, match="2 audits are waiting"):
        jobs.add("d", (), make)
    assert jobs.give_up(third.id).state == "cancelled"
    assert jobs.give_up(first.id).state == "running"
    assert jobs.give_up("nothing") is None
    go.set()
    wait_for(lambda: jobs.get(second.id).state == "done")
    assert jobs.get(first.id).state == "cancelled"
    assert jobs.get(second.id).outcome == second.id
    assert most[0] == 1
    assert [job.name for job in jobs.all()] == ["c", "b", "a"]
    jobs.stop()


def test_old_audits_are_dropped_with_what_they_wrote():
    dropped = []
    jobs = Jobs(Limits(jobs_held=2), dropped=dropped.append)
    ids = []
    for number in range(4):
        job = jobs.add(str(number), (), lambda identity: lambda on_stage: None)
        wait_for(lambda job=job: jobs.get(job.id).state == "done")
        ids.append(job.id)
    assert dropped == ids[:2]
    assert jobs.get(ids[0]) is None
    jobs.stop()


def test_a_server_that_stops_does_not_wait_for_long():
    jobs = Jobs(Limits())
    blocked = threading.Event()
    job = jobs.add("a", (), lambda identity: lambda on_stage: blocked.wait(600))
    waiting = jobs.add("b", (), lambda identity: lambda on_stage: None)
    wait_for(lambda: jobs.get(job.id).state == "running")
    started = time.monotonic()
    jobs.stop()
    assert time.monotonic() - started < 300.0
    assert jobs.get(waiting.id).state == "cancelled"
    blocked.set()


def test_giving_up_over_the_web(tmp_path):
    go = threading.Event()

    def slow(request, upload, directory, on_stage):
        directory.mkdir()
        for stage in STAGE_WORDS:
            on_stage(stage)
            go.wait(600)

    with client(tmp_path, run=slow) as (found, _):
        job = found.post("/api/jobs", json={"example": "iris"}).json()["job"]
        wait_for(lambda: found.get(f"/api/jobs/{job}").json()["state"] == "running")
        assert found.get(f"/jobs/{job}/report").status_code == 404
        assert found.post(f"/api/jobs/{job}/give-up").status_code == 200
        go.set()
        assert finished(found, job)["state"] == "cancelled"
        wait_for(lambda: list(tmp_path.iterdir()) == [])


def test_a_full_queue_is_a_sentence(tmp_path):
    go = threading.Event()
    limits = Limits(jobs_waiting=1)
    with client(tmp_path, limits, run=lambda *_: go.wait(600)) as (found, _):
        first = found.post("/api/jobs", json={"example": "iris"}).json()["job"]
        wait_for(lambda: found.get(f"/api/jobs/{first}").json()["state"] == "running")
        assert found.post("/api/jobs", json={"example": "iris"}).status_code == 201
        answer = found.post("/api/jobs", json={"example": "iris"})
        assert answer.status_code == 429
        assert "waiting already" in answer.json()["error"]
        go.set()


class Child:
    """The process and where it writes, closed at the end."""

    def __init__(self, folder):
        self.process, self.folder, self.seen = AuditProcess(), folder, []

    def audit(self, on_stage=None, **wanted):
        request = audit_job.AuditRequest(**wanted)
        name = self.folder / f"run{len(list(self.folder.iterdir()))}"
        return self.process.run(request, None, name, on_stage or self.seen.append)


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    made = Child(tmp_path_factory.mktemp("child"))
    yield made
    made.process.close()


def test_a_process_of_its_own_audits_and_stays(child):
    outcome = child.audit(example="iris", model="process")
    assert "your model was not examined" in outcome.verdict
    assert outcome.report.is_file()
    assert child.seen[0] == "read"
    assert child.seen[-1] == "noise"
    number = child.process._process.pid
    with pytest.raises(InputError, match="no example"):
        child.audit(example="nothing")
    assert child.process._process.pid == number


def test_giving_up_ends_it_at_once_and_another_takes_its_place(child):
    child.process.warm()
    first = child.process._process

    def unwanted(stage):
        raise GivenUp

    with pytest.raises(GivenUp):
        child.audit(unwanted, example="digits")
    with pytest.raises(ValueError, match="closed"):
        first.is_alive()
    child.process.warm()
    assert child.process._process.is_alive()


def test_a_process_that_dies_fails_its_audit_only(child):
    child.process.warm()

    def killed(stage):
        child.process._process.kill()

    with pytest.raises(InputError, match="ended before the audit"):
        child.audit(killed, example="iris")
    child.process.warm()
    assert child.process._process.is_alive()


MORE = ("advise", "verify", "set beside")


def test_the_stages_are_those_of_the_audit():
    process = audit_job.AuditRequest(model="process").stages
    fitted = audit_job.AuditRequest().stages
    assert ("read", *kind_named("process").stages, "report", "noise") == process
    assert ("read", *kind_named("fit").stages, "report") == fitted
    assert fitted == audit_job.AuditRequest(model="ridge").stages
    assert {*process, *fitted, *MORE} == set(STAGE_WORDS)


def test_the_form_asks_for_what_each_model_has():
    fields = audit_job.model_fields()
    assert set(audit_job.model_words()) == {"stand_in", *fields}
    assert fields["logistic"] == ("C",)
    assert fields["linear"] == ()
    assert fields["process"] == ("kernel", "noise_variance")
    request = audit_job.AuditRequest(model="ridge", alpha="3")
    assert request.settings()[1].alpha == 3.0
    again = audit_job.AuditRequest(**request.model_dump())
    assert again.settings() == request.settings()
    for wrong in (
        {"model": "linear", "alpha": 1},
        {"kernel": "rbf"},
        {"given": {"model": "x.onnx"}},
    ):
        with pytest.raises(InputError, match="does not go with"):
            audit_job.AuditRequest(**wrong).settings()


def test_without_a_choice_a_stand_in_is_fitted_and_advice_is_a_job_of_its_own(tmp_path):
    with client(tmp_path) as (found, _):
        job = found.post("/api/jobs", json={"example": "diabetes", "alpha": ""}).json()["job"]
        outcome = finished(found, job)["outcome"]
        assert outcome["noise"] is None
        assert outcome["no_noise"] is None
        assert "Ridge(alpha=" in outcome["examined"]
        assert "stands in for your model, which was not examined" in outcome["examined"]
        assert "Ridge(alpha=" in found.get(f"/jobs/{job}/report").text
        assert outcome["pages"] == []
        assert found.get(f"/jobs/{job}/pages/advice").status_code == 404
        asked = found.post("/api/jobs", json={"again": job, "threshold_advantage": "0.3"})
        advised = asked.json()["job"]
        assert finished(found, advised, 120.0)["outcome"]["pages"] == ["advice"]
        page = found.get(f"/jobs/{advised}/pages/advice")
        assert page.headers["content-security-policy"] == "frame-ancestors 'self'"
        assert "No record has advantage above 0.3" in page.text
        assert "penalty (alpha)" in page.text
        for body, words in (
            ({"again": "gone", "threshold_advantage": 0.1}, "no longer there"),
            ({"again": job}, "Give the advantage"),
            ({"again": job, "threshold_advantage": 2}, "less than 1"),
            ({"again": job, "threshold_ppv": 0.5}, "needs --prior"),
        ):
            answer = found.post("/api/jobs", json=body)
            assert answer.status_code == 400
            assert words in answer.json()["error"]


def test_an_audit_is_verified_and_compared_on_the_page(tmp_path):
    """Both were to be had on the command line only."""
    with client(tmp_path) as (found, _):
        wanted = {"example": "iris", "model": "logistic", "C": "1"}
        first = found.post("/api/jobs", json=wanted).json()["job"]
        assert finished(found, first)["outcome"]["pages"] == []
        assert 'id="beside" aria-label="Comparison" hidden' in found.get(f"/jobs/{first}").text
        asked = found.post("/api/jobs", json={"again": first, "verify": True})
        checked = asked.json()["job"]
        assert finished(found, checked, 120.0)["outcome"]["pages"] == ["verification"]
        page = found.get(f"/jobs/{checked}/pages/verification").text
        assert "shadow models of the same estimator" in page
        assert "<script" not in page
        other = found.post("/api/jobs", json={**wanted, "C": "0.01"}).json()["job"]
        assert finished(found, other)["state"] == "done"
        assert f'<option value="{first}">' in found.get(f"/jobs/{other}").text
        asked = found.post("/api/jobs", json={"again": other, "against": first})
        compared = asked.json()["job"]
        assert finished(found, compared, 120.0)["outcome"]["pages"] == ["comparison"]
        assert "LogisticRegression" in found.get(f"/jobs/{compared}/pages/comparison").text
        for body in (
            {"again": other, "against": "../../etc"},
            {**wanted, "against": "../../etc"},
            {"again": other, "against": "nobody"},
        ):
            answer = found.post("/api/jobs", json=body)
            assert answer.status_code == 400
            assert "no longer there" in answer.json()["error"]


def test_a_named_model_and_its_penalty(tmp_path):
    with client(tmp_path) as (found, _):
        wanted = {"example": "wine", "model": "logistic", "C": "0.01"}
        outcome = finished(found, found.post("/api/jobs", json=wanted).json()["job"])["outcome"]
        assert outcome["verdict"].startswith("Examined: LogisticRegression(C=0.01), C as given;")
        assert "that very model was examined" in outcome["examined"]
        for body in ({"model": "forest"}, {"model": "ridge", "alpha": "-1"}):
            answer = found.post("/api/jobs", json={"example": "wine", **body})
            assert answer.status_code == 400


def test_the_servers_own_process_stays_light():
    program = (
        "import sys, leakscope.serving.server, leakscope.serving.application; "
        "print([name for name in ('jax', 'sklearn', 'altair') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_words_of_the_command_line_become_those_of_the_page():
    assert "--" not in in_page_words("which?  Name it with --target; or --ignore it, or --by x.")
    with pytest.raises(InputError, match="example"):
        audit_job._dataset(audit_job.AuditRequest(), None)
