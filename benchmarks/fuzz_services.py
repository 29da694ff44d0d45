"""What is fuzzed beside files and command lines: the server, and training functions of a user's.

The server is asked in two ways: the application itself, in this process (uploads, requests, audits
and their pages), and ``leakscope serve`` as a process of its own, over a socket and with bytes that
may be no HTTP.  A training function comes from a list of those that a user may write by mistake;
the bytes choose it and the options of ``verify`` beside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ODD_HEADERS = (
    *({}, {}, {}, {"origin": "http://evil.example"}, {"origin": "null"}, {"host": "evil.example"}),
    *({"content-length": "5"}, {"content-length": "x"}, {"content-length": "-1"}, {"cookie": "a"}),
    *({"cookie": ""}, {"content-type": "multipart/form-data"}, {"transfer-encoding": "chunked"}),
    *({"range": "bytes=0-3"}, {"if-none-match": "*"}, {"accept": "\xff"}, {"x": "y" * 9000}),
)
PATHS = (
    *("/", "/api/jobs", "/api/uploads", "/api/jobs/{job}", "/jobs/{job}", "/jobs/{job}/report"),
    *("/api/jobs/{job}/give-up", "/static/page.js", "/static/page.css", "/static/vega.js"),
    *("/jobs/{job}/report?redact", "/jobs/{job}/report?download", "/api/uploads?name=a.csv"),
    *("/static/..%2f..%2fetc%2fpasswd", "/jobs/%00", "/api/jobs/" + "a" * 3000, "//", "/?token=x"),
    *("/api/uploads?name=", "/api/uploads?name=%ff.csv", "/api/uploads?name=../a.csv", "/\u202e"),
)
METHODS = ("GET", "GET", "POST", "POST", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "X")
# 431 and 505 are uvicorn's own.
ANSWERS = {200, 201, 206, 303, 304, 307, 400, 403, 404, 405, 411, 413, 416, 421, 429, 431, 501, 505}
LONGEST_SECONDS = 60.0

_House = tuple[Any, dict[str, Any]]


@functools.cache
def _house() -> _House:
    """The application with a client that is let in, for as long as this process lives."""
    from starlette.testclient import TestClient

    from leakscope.serving import Limits
    from leakscope.serving.application import application
    from leakscope.serving.audit_job import run_audit
    from leakscope.serving.security import Access
    from leakscope.subjects.process import choices

    choices.COMPARED_UP_TO = 1  # audits under other kernels take seconds and are not asked
    access = Access(port=8000)
    folder = Path(tempfile.mkdtemp(prefix="leakscope-fuzz-serve-"))
    limits = Limits(upload_bytes=200_000, table_bytes=200_000_000)
    client = TestClient(
        application(access, folder, limits, run=run_audit), base_url="http://127.0.0.1:8000"
    )
    client.__enter__()
    client.headers["origin"] = "http://127.0.0.1:8000"
    assert client.get("/", params={"token": access.token}).status_code == 200
    return client, {"job": "none"}


def served_upload(suffix: str) -> Callable[[Path, bytes], Callable[[], str | None]]:
    """The bytes as an upload; what is taken is audited as the page would offer."""

    def write(_: Path, data: bytes) -> Callable[[], str | None]:
        def ask() -> str | None:
            client, _ = _house()
            name = f"data{suffix}"
            answer = client.post("/api/uploads", params={"name": name}, content=data)
            if answer.status_code != 200:
                return _problem(answer)
            told = answer.json()
            wanted = {**told["offered"], "upload": told["upload"]}
            return _audited(client, json.dumps(wanted).encode())

        return ask

    return write


def served_audit(_: Path, data: bytes) -> Callable[[], str | None]:
    """The bytes as the request for an audit; ``@`` stands for a file that is held."""

    def ask() -> str | None:
        from malformed_tables import GOOD

        client, _ = _house()
        body = data
        if b"@" in data:
            told = client.post("/api/uploads", params={"name": "a.csv"}, content=GOOD.encode())
            body = data.replace(b"@", told.json()["upload"].encode())
        # Those take half a minute each.
        return _audited(client, body.replace(b"digits", b"iris").replace(b"breast_cancer", b"wine"))

    return ask


def _audited(client: Any, body: bytes) -> str | None:
    answer = client.post("/api/jobs", content=body)
    if answer.status_code != 201:
        return _problem(answer)
    job = answer.json()["job"]
    _house()[1]["job"] = job
    until = time.monotonic() + LONGEST_SECONDS
    while True:
        told = client.get(f"/api/jobs/{job}").json()
        if told["state"] not in ("waiting", "running"):
            break
        if time.monotonic() > until:
            return "an audit that does not end"
        time.sleep(0.01)
    if told["state"] == "failed":
        sentence = told["problem"]
        unforeseen = "unforeseen" in sentence or not sentence.endswith((".", "?"))
        return f"a failed audit says {sentence[:60]!r}" if unforeseen else None
    for path in (f"/jobs/{job}", f"/jobs/{job}/report", f"/jobs/{job}/report?redact"):
        page = client.get(path)
        if page.status_code != 200:
            return f"{path} of a finished audit has status {page.status_code}"
    return None


def served_request(_: Path, data: bytes) -> Callable[[], str | None]:
    """A method, a path and headers by the first bytes, the others as the body."""
    from fuzz_inputs import Choices

    choices = Choices(data)
    method, path, headers = choices.pick(METHODS), choices.pick(PATHS), choices.pick(ODD_HEADERS)

    def ask() -> str | None:
        client, held = _house()
        where = path.replace("{job}", held["job"])
        sent = {name: value.encode("latin-1") for name, value in headers.items()}
        with contextlib.suppress(UnicodeEncodeError):  # no URL for the client itself
            return _problem(
                client.request(method, where, content=choices.rest() or None, headers=sent)
            )
        return None

    return ask


def _problem(answer: Any) -> str | None:
    if answer.status_code not in ANSWERS:
        return f"the server answered {answer.status_code}"
    if answer.status_code in (400, 413, 429) and answer.headers.get("content-type", "").endswith(
        "json"
    ):
        sentence = answer.json()["error"]
        if not sentence.endswith((".", "?")) or "Traceback" in sentence:
            return f"no sentence: {sentence[:60]!r}"
    return None


@functools.cache
def _process() -> tuple[subprocess.Popen[str], int, str, Path]:
    """``leakscope serve``, which ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="leakscope-fuzz-socket-"))
    errors = folder / "stderr.txt"
    die = ctypes.CDLL(None).prctl
    with errors.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-W", "default", "-m", "leakscope", "serve"],
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
            env={**os.environ, "TMPDIR": str(folder)},
            preexec_fn=lambda: die(1, signal.SIGTERM),  # PR_SET_PDEATHSIG
        )
    assert process.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", process.stdout.readline())
    assert found is not None
    return process, int(found[1]), found[2], errors


def raw_socket(_: Path, data: bytes) -> Callable[[], str | None]:
    """The bytes as they are, to a server in a process of its own; TOKEN becomes its token."""

    def ask() -> str | None:
        process, port, token, errors = _process()
        with contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=5.0)) as one:
            with contextlib.suppress(OSError):
                one.sendall(data.replace(b"TOKEN", token.encode()))
                one.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(OSError):
                while chunk := one.recv(65536):
                    answer += chunk
        if process.poll() is not None:
            return f"the server ended with status {process.returncode}"
        if said := errors.read_text(errors="replace"):
            errors.write_text("")
            return f"the server said on stderr: {said.strip().splitlines()[-1][:80]}"
        status = re.match(rb"HTTP/1\.[01] (\d+)", answer)
        if status is not None and int(status[1]) not in ANSWERS:
            return f"the server answered {int(status[1])} over a socket"
        return None

    return ask


TRAINERS = {
    "mean": "return lambda Q: np.full(len(Q), np.mean(y))",
    "nearest": "return lambda Q: y[np.argmin(((Q[:, None] - X) ** 2).sum(-1), axis=1)]",
    "solved": "w = np.linalg.pinv(X) @ y\n    return lambda Q: Q @ w",
    "noisy": "r = np.random.default_rng(seed)\n    return lambda Q: r.normal(size=len(Q))",
    "an_object": "class A:\n        predict = lambda self, Q: Q[:, 0]\n    return A()",
    "nothing": "pass",
    "text": "return 'a model'",
    "words": "return lambda Q: ['a'] * len(Q)",
    "mixed": "return lambda Q: [None, 'a'] + [1.0] * (len(Q) - 2)",
    "complex_numbers": "return lambda Q: np.ones(len(Q)) * 1j",
    "ragged": "return lambda Q: [[1.0], [1.0, 2.0]]",
    "too_few": "return lambda Q: [1.0]",
    "too_many": "return lambda Q: np.ones((len(Q), 7))",
    "a_number": "return lambda Q: 3.0",
    "infinite": "return lambda Q: np.full(len(Q), np.inf)",
    "not_numbers": "return lambda Q: np.full(len(Q), np.nan)",
    "large": "return lambda Q: np.full(len(Q), 1e308)",
    "constant": "return lambda Q: np.zeros(len(Q))",
    "dates": "return lambda Q: np.full(len(Q), np.datetime64('2020-01-01'))",
    "masked": "return lambda Q: np.ma.masked_all(len(Q))",
    "truths": "return lambda Q: Q[:, 0] > 0",
    "objects": "return lambda Q: np.array([object()] * len(Q))",
    "fails": "raise ValueError('no')",
    "fails_later": "return lambda Q: 1 / 0",
    "leaves": "sys.exit(0)",
    "leaves_at_once": "os._exit(0)",
    "leaves_later": "return lambda Q: os._exit(0)",
    "leaves_with_words": "raise SystemExit('enough')",
    "spoils": "X[:] = np.nan\n    y[:] = 0.0\n    return lambda Q: Q.fill(0.0) or np.zeros(len(Q))",
    "prints": "print('warning: mine')\n    return lambda Q: np.zeros(len(Q))",
    "recurses": "return train_recurses(X, y, seed)",
    "warns": "import warnings\n    warnings.warn('mind')\n    return lambda Q: np.zeros(len(Q))",
    "wide": "return lambda Q: np.zeros((len(Q), 1, 1))",
    "a_list": "return lambda Q: [float(v) for v in Q[:, 0]]",
    "a_generator": "return lambda Q: (v for v in Q[:, 0])",
}
MODULE = "import os, sys\nimport numpy as np\n\n" + "\n".join(
    f"def train_{name}(X, y, seed):\n    {body}\n" for name, body in TRAINERS.items()
)
_COUNT = itertools.count()


def trained_verification(folder: Path, data: bytes) -> list[list[str]]:
    """``verify --train`` with a function of the list and odd options; sometimes resumed."""
    from fuzz_inputs import ODD_COUNTS, ODD_NUMBERS, ODD_TEXTS, Choices

    choices = Choices(data)
    # A module is imported once under one name.
    module = f"trainers_{os.getpid()}_{next(_COUNT)}"
    broken = choices.pick(("", "", "", "", "1 / 0\n", "raise SystemExit\n", "def\n", "\0", "é\n"))
    (folder / f"{module}.py").write_text(MODULE + broken, encoding="utf-8")
    importlib.invalidate_caches()
    names = [f"train_{name}" for name in TRAINERS]
    text = f"{module}:{choices.pick(names)}"
    if not choices.below(12):
        text = choices.pick(
            (
                *(":", "a:", ":b", ".x:y", "json:dumps", "math:nothing", f"{module}:np", "a:b:c"),
                *ODD_TEXTS[:12],
            )
        )
    line = ["verify", choices.pick(("run", "run", "run", "model", "groups")), "--train", text]
    line += ["--models", choices.pick(("2", "3", "4", "8", *ODD_COUNTS))]
    line += ["--records", choices.pick(("1", "2", "3", *ODD_COUNTS))]
    if not choices.below(3):
        option = choices.pick(("--seed", "--draws", "--network", "--epochs", "--learning-rate"))
        if option == "--network":
            line[2:4] = ["--network", choices.pick(("2", "3,3", "0", "x", "", "1,,2"))]
            line += ["--epochs", "2"]
        else:
            line += [option, choices.pick((*ODD_COUNTS, *ODD_NUMBERS))]
    if not choices.below(3):
        line += ["--run-dir", choices.pick(("again", "run", "data.csv", "", "a" * 300))]
        return [line, line]
    return [line]


def trained_audit(folder: Path, data: bytes) -> list[list[str]]:
    """``audit --train`` with a function of the list, and what is then done with the run."""
    from fuzz_inputs import ODD_COUNTS, ODD_NUMBERS, Choices

    choices = Choices(data)
    module = f"audited_{os.getpid()}_{next(_COUNT)}"
    (folder / f"{module}.py").write_text(MODULE, encoding="utf-8")
    # Enough records for what they have in common to be seen.
    rows = [f"{i * 37 % 11},{i * 17 % 7},{i % 2 if i % 5 else i % 3}" for i in range(24)]
    (folder / "many.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    importlib.invalidate_caches()
    named = [f"{module}:train_{name}" for name in TRAINERS]
    named += ["sklearn.linear_model:Ridge", "sklearn.neighbors:KNeighborsClassifier"]
    line = ["audit", "many.csv", "--target", "y", "--train", choices.pick(named)]
    line += ["--models", choices.pick(("2", "2", "4", *ODD_COUNTS))]
    if not choices.below(3):
        line += ["--task", choices.pick(("classification", "regression", "x"))]
    if not choices.below(4):
        flag = choices.pick(
            (
                *("--seed", "--time-limit", "--keep", "--json", "--by", "--scaling", "--group"),
                *("--answer-noise", "--observes", "--fraction", "--sample", "--secret"),
            )
        )
        kept = ("kept", "run", "many.csv", f"{module}.py", "run/result.json", "")
        line += [flag, choices.pick((*ODD_NUMBERS, "b", "none", *kept))]
    elif not choices.below(8):
        # It goes on for as long as it is told to.
        line += ["--minutes", choices.pick(("0.001", "0.01", "0", "-1", "nan", "x", "1e-300"))]
    line += ["--run-dir", "trained"]
    more = choices.pick(
        (
            ["report", "trained"],
            ["verify", "trained", "--models", "20", "--records", "2"],
            ["decide", "trained", "--threshold-advantage", "0.5", "--output", "signed"],
            ["compare", "trained", "trained"],
            line,
        )
    )
    return [line, more]


def decided(folder: Path, data: bytes) -> list[list[str]]:
    """``decide`` on runs whose results have odd values, with odd declarations."""
    from fuzz_inputs import ODD_NUMBERS, ODD_TEXTS, Choices, spoilt

    choices = Choices(data)
    name = choices.pick(("model", "run", "groups", "people", "fitted"))
    file = folder / name / "result.json"
    document = json.loads(file.read_text())
    if choices.below(4):
        spoilt(document, choices)
        file.write_text(json.dumps(document))
    line = ["decide", name, *choices.pick(([], [], ["models.json"], ["run2"]))]
    line += [choices.pick(("--threshold-advantage", "--threshold-tpr", "--threshold-ppv"))]
    line += [choices.pick(("0.5", "0.9", *ODD_NUMBERS)), "--prior", choices.pick(("0.1", "0", "x"))]
    if not choices.below(2):
        flag = choices.pick(("--model", "--reason", "--approver", "--expires", "--conditions"))
        line += [flag, choices.pick((*ODD_TEXTS, "2027-01-31", "![a](http://b/c.png)", "net.json"))]
    line += ["--output", choices.pick(("signed", "signed", "run", "data.csv"))]
    return [line, ["decide", "--check", "signed"], ["report", "signed/decision.json"]]


def shadow_verification(folder: Path, data: bytes) -> list[str]:
    """``verify --models`` of an audit of a named model, whose result has odd values."""
    from fuzz_inputs import ODD_COUNTS, ODD_NUMBERS, Choices, spoilt

    choices = Choices(data)
    file = folder / "model" / "result.json"
    document = json.loads(file.read_text())
    if choices.below(3):
        spoilt(document, choices)
        file.write_text(json.dumps(document))
    line = ["verify", "model", "--models", choices.pick(("20", "25", "30", *ODD_COUNTS))]
    line += ["--records", choices.pick(("1", "2", *ODD_COUNTS))]
    if not choices.below(3):
        line += [choices.pick(("--seed", "--draws", "--data")), choices.pick(ODD_NUMBERS)]
    return line


MODELS = (
    *("sklearn.svm:SVC", "sklearn.svm:SVR", "sklearn.svm:LinearSVC", "sklearn.svm:NuSVC"),
    *("sklearn.linear_model:Lasso", "sklearn.linear_model:HuberRegressor", "lasso", "elastic_net"),
    *("sklearn.linear_model:QuantileRegressor", "sklearn.linear_model:SGDClassifier"),
    *("sklearn.linear_model:LassoCV", "sklearn.linear_model:BayesianRidge", "kernel_ridge"),
    *("sklearn.linear_model:LogisticRegression", "sklearn.linear_model:GammaRegressor"),
    *("sklearn.naive_bayes:GaussianNB", "sklearn.naive_bayes:MultinomialNB", "poisson", "linear"),
    *("sklearn.discriminant_analysis:LinearDiscriminantAnalysis", "sklearn.dummy:DummyClassifier"),
    *("sklearn.neighbors:NearestCentroid", "sklearn.tree:DecisionTreeRegressor", "sklearn.svm:x"),
    *("sklearn.gaussian_process:GaussianProcessRegressor", "sklearn.cluster:KMeans"),
    *("sklearn.preprocessing:StandardScaler", "sklearn.pipeline:Pipeline", "sklearn.base:clone"),
)


def any_model(folder: Path, data: bytes) -> list[list[str]]:
    """``audit --model`` of whatever scikit-learn has, and what is then done with the run."""
    from fuzz_inputs import ODD_NUMBERS, ODD_TEXTS, Choices

    choices = Choices(data)
    line = ["audit", "many.csv", "--target", choices.pick(("y", "z", "z", "c"))]
    line += ["--model", choices.pick(MODELS), "--models", "2"]
    line += choices.pick(([], ["--task", "classification"], ["--task", "regression"]))
    line += choices.pick(([], [], ["--group", "g"], ["--ignore", "c", "--ignore", "g"]))
    for _ in range(choices.below(3)):
        flag = choices.pick(
            (
                *("--alpha", "--C", "--gamma", "--fraction", "--answer-noise", "--scaling"),
                *("--observes", "--question", "--by", "--sample", "--secret", "--id", "--missing"),
            )
        )
        words = ("none", "label", "prediction", "population", "c", "g", "12", "drop")
        line += [flag, choices.pick((*ODD_NUMBERS, *words, *ODD_TEXTS[:6]))]
    line += ["--run-dir", "of"]
    more = choices.pick(
        (
            ["report", "of"],
            ["verify", "of", "--models", "20", "--records", "2"],
            ["decide", "of", "--threshold-tpr", "0.1"],
            ["compose", "of", "fitted"],
            ["erase", "of", "--record", choices.pick(("1", "p1", "0", "x")), "--save", "w.skops"],
            ["advise", "of", "--target-advantage", "0.5"],
        )
    )
    return [line, more]


def composed(folder: Path, data: bytes) -> list[list[str]]:
    """``compose`` and ``erase`` of runs whose results have odd values."""
    from fuzz_inputs import ODD_NUMBERS, Choices, spoilt

    choices = Choices(data)
    name = choices.pick(("fitted", "fitted2", "people"))
    file = folder / name / "result.json"
    document = json.loads(file.read_text())
    if choices.below(5):
        spoilt(document, choices)
        file.write_text(json.dumps(document))
    others = [choices.pick(("fitted", "fitted2", "people", "run", "model")) for _ in range(2)]
    line = ["compose", name, *others[: 1 + choices.below(2)]]
    if not choices.below(3):
        line += ["--budget", choices.pick(ODD_NUMBERS)]
    erased = ["erase", name, "--record", choices.pick(("1", "p1", "29", "30", "-1", ""))]
    erased += choices.pick(([], ["--after", "mine.skops"], ["--save", "made.skops"]))
    return [line, erased]


def users_own(problem: BaseException, folder: Path) -> bool:
    """Whether an exception comes from the user's own function, which keeps its traceback."""
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_code.co_filename.startswith(str(folder))
