"""What is fuzzed: every reader with valid files to begin with, and command lines from the tree.

Bytes become a file, the changes of a result, or the options of a command; ``benchmarks/fuzz.py``
mutates them and watches.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer.main

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hostile"))

ODD_TEXTS = (
    *("", " ", "nan", "inf", "-inf", "-1", "0", "1e400", "1e-400", "9" * 400, "0x10", "1_000"),
    *("\x1b[31m", "\u202ea", "é", "\U0001f600", "a" * 3000, "a,b", ",", ";", "=", "-", "--", "y"),
    *("gone.csv", "/", "..", "data.csv", "/dev/null/x", "{{7*7}}", "%s%n", "$(id)", "'", '"', "²"),
)
ODD_NUMBERS = (
    *("0", "-0.0", "1", "-1", "0.5", "2", "1e-300", "1e300", "-1e300", "1e-9", "0.999999", "1e9"),
    *("nan", "inf", "-inf", "1e400", "", "x", "1,5", "0.1", "3"),
)
ODD_COUNTS = ("-1", "0", "1", "2", "3", "5", "-9223372036854775809", "", "x", "1.5", "nan")
HUGE_COUNTS = (*ODD_COUNTS, "1000000000", "9223372036854775808", "1" + "0" * 30)
WORDS: dict[str, tuple[str, ...]] = {
    "--kernel": ("rbf", "matern", "linear", "nngp"),
    "--activation": ("relu", "gelu", "erf", "tanh", "sin", "identity"),
    "--route": ("auto", "dense", "features", "nystrom", "device"),
    "--scaling": ("standard", "none"),
    "--task": ("regression", "classification"),
    "--missing": ("error", "drop", "impute"),
    "--noise-variance": ("0.1", "1e-12", "marginal_likelihood", "leave_one_out"),
    "--fail-above": ("advantage=0.1", "kl=1", "auc=0.9", "advantage=2", "kl=nan"),
    "--form": ("pieces", "printed", "moments"),
    "--knowledge": ("margin", "leaked", "bounded"),
    "--mechanism": ("objective", "output"),
    "--divergence": ("joint", "component_wise", "printed"),
    "--method": ("exact", "asymptotic", "simulated", "adam", "l-bfgs"),
    "--attacker": ("label_known", "label_hidden"),
    "--curve": ("p", "ridge", "noise", "answers"),
    "--climb": ("lood", "correlation", "auto"),
    "--begin": ("box", "records"),
    "--objective": ("kl", "mean_distance"),
    "--depths": ("1", "1,2", "5", "257", "2,2", "0", "-1", "1,", "1.5"),
    "--box": ("0,1", "-1,1", "1,0", "0,0"),
    "--record": ("0", "1", "5", "7"),
    "--target": ("y", "0", "-1", "a"),
    "--id": ("a", "0"),
    "--group": ("b", "a"),
    "--by": ("b", "y"),
    "--ignore": ("a", "b"),
    "--member": ("normal:0,1", "mixture:0.5*0,1+0.5*1,2", "spike:1,1,0.5", "mvn:0,0/1,0;0,1"),
    "--nonmember": ("normal:0,2", "normal:1e300,1", "spike:1,1,0.5", "mvn:0,0/1,0;0,1"),
    "--fpr": ("0.1", "0.1,0.01", "1e-300", "0", "1"),
    "--delta": ("1e-5", "1e-300", "0", "1"),
    "--settings": ("1,2,3", "0", "1e9", "0.1,0.2"),
    "--example": ("none", ""),
    "--queries": ("q.csv", "1", "2"),
    "--access": ("black-box", "weights"),
    "--decision": ("approved", "approved with conditions", "refused"),
    "--expires": ("2027-01-31", "2027-02-31", "tomorrow"),
    "--check": ("model", "data.csv", "decision.json"),
    "--secret": ("a", "c", "y", "g", "gone"),
    "--secret-prior": ("imputed", "shares"),
    "--secret-within": ("0.5", "0", "-1", "nan", "1e300"),
    "--secret-values": ("1,2", "0", "1,1", "nan", ",", "1e300,2"),
    "--observes": ("log_odds", "label", "probabilities", "prediction", "residual"),
    "--question": ("pool", "population"),
    "--fraction": ("0.5", "1", "0.9", "0", "1e-9"),
    "--noise": ("gaussian", "laplace", "0.1", "0"),
    "--convention": ("text", "code"),
    "--set": ("n=50", "n=0", "n=-3", "n=nan", "sigma=0", "D=3", "records=1", "m=3", "=", "n=1e400"),
    "--guesses": ("3,3", "0,0", "60,1", "1", "a,b", "-1,2"),
    "--claimed-epsilon": ("1", "0", "nan", "1e300"),
    "--after": ("mine.skops", "data.csv", "head.safetensors", "gone.skops"),
    "--before": ("mine.skops", "gone.skops"),
    "--known": ("many.csv", "data.csv", "gone.csv"),
    "--pool": ("many.csv", "data.csv", "gone.csv"),
    "--held-out": ("set.csv", "data.csv", "gone.csv"),
    "--try": ("alpha=1,2", "alpha=", "=", "n=1"),
    "--budget": ("0.5", "0", "1", "nan"),
    "--weight-decay": ("0.1", "0", "-1", "nan"),
    "--minutes": ("0", "-1", "nan", "1e300"),
}
# They reach for other machines, start processes, or compute for as long as they are told to.
LEFT_OUT = {
    *("--scheduler", "--workers", "--train", "--help", "--version", "--epochs", "--models"),
    *("--full", "--cluster"),
}
NO_COMMANDS = {"serve"}
# Counts that cost memory, which is estimated first, or nothing; the others cost time by design.
MAY_BE_HUGE = {"--seed", "--top", "--inducing", "--n", "--p", "--dim", "--answers", "--points"}
# What is read, by several spellings; nothing may write over it.
INPUTS = (
    "data.csv",
    "./data.csv",
    "x/../data.csv",
    "model/result.json",
    "model/arrays.npz",
    "q.csv",
    "many.csv",
    "mine.skops",
    "canaries.csv",
)
BASES: dict[str, list[str]] = {
    "audit": ["audit", "data.csv", "--target", "y", "--kernel", "rbf"],
    "audit model": ["audit", "data.csv", "--target", "y", "--model", "ridge", "--alpha", "1"],
    "audit stand-in": ["audit", "data.csv", "--target", "y"],
    "measure models": ["measure", "--logits", "models.npz"],
    "verify model": ["verify", "model", "--models", "20", "--records", "2"],
    "report model": ["report", "model"],
    "measure": ["measure", "--member", "normal:0,1.4", "--nonmember", "normal:0,0.7"],
    "verify": ["verify", "run", "--draws", "100", "--records", "2"],
    "report": ["report", "run"],
    "compare": ["compare", "run", "run2"],
    "decide": ["decide", "model", "--threshold-advantage", "0.5", "--prior", "0.1"],
    "erase": ["erase", "model", "--record", "1"],
    "audit secret": [
        *("audit", "data.csv", "--target", "y", "--model", "ridge", "--alpha", "1"),
        *("--secret", "a"),
    ],
    "audit secret of several": [
        *("audit", "many.csv", "--target", "z", "--task", "classification", "--model", "logistic"),
        *("--C", "1", "--secret", "c"),
    ],
    "audit people": [
        *("audit", "many.csv", "--target", "y", "--model", "ridge", "--alpha", "1"),
        *("--group", "g"),
    ],
    "audit head": [
        *("audit", "many.csv", "--target", "y", "--ignore", "c", "--ignore", "g", "--ignore", "z"),
        *("--model", "head.safetensors", "--weight-decay", "0.1", "--scaling", "none"),
    ],
    "audit stream": [
        *("audit", "data.parquet", "--target", "y", "--kernel", "linear", "--stream"),
    ],
    "audit stream fit": [
        *("audit", "many.parquet", "--target", "y", "--model", "ridge", "--alpha", "1", "--stream"),
    ],
    "erase after": ["erase", "fitted", "--record", "1", "--after", "mine.skops"],
    "erase people": ["erase", "people", "--record", "p1"],
    "verify people": ["verify", "people", "--models", "20", "--records", "2"],
    "advise people": ["advise", "people", "--target-advantage", "0.5"],
    "measure canaries": ["measure", "--canaries", "canaries.csv"],
    "attack membership of a fit": [
        *("attack", "membership", "ridge", "--alpha", "1", "--pool", "many.csv", "--target", "y"),
        *("--queries", "asked.csv", "--answers", "told"),
    ],
    "attack reconstruct of a fit": [
        *("attack", "reconstruct", "mine.skops", "--data", "numbers.csv", "--target", "y"),
    ],
    "plan linear latent": [
        *("plan", "linear", "--model", "latent", "--n", "6", "--p", "4", "--dim", "2"),
        *("--records", "2", "--draws", "8"),
    ],
    "plan lasso of data": [
        *("plan", "lasso", "--data", "many.csv", "--target", "y", "--sigma-eta", "0.2"),
    ],
    "advise": ["advise", "run", "--target-advantage", "0.2"],
    "attack query": [
        *("attack", "query", "data.csv", "--target", "y", "--record", "1"),
        *("--steps", "3", "--starts", "2"),
    ],
    "attack reconstruct": ["attack", "reconstruct", "net.json", "--margin", "0.5"],
    "attack membership": ["attack", "membership", "net.json", "--queries", "q.csv"],
    "reproduce": ["reproduce", "lood-7"],
    "plan network": ["plan", "network", "data.csv", "--target", "y", "--depths", "1"],
    "reproduce set": ["reproduce", "linear-2a", "--set", "records=2"],
    "plan linear": ["plan", "linear", "--n", "10", "--p", "20", "--dim", "40"],
    "plan lasso": [
        *("plan", "lasso", "--alpha", "0.5", "--rho", "0.1", "--sigma-xi", "0.1"),
        *("--lam", "1", "--sigma-eta", "0.2"),
    ],
}


class Choices:
    """Decisions taken from bytes, so that mutated bytes are mutated decisions."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def below(self, count: int) -> int:
        taken = self._data[self._place : self._place + 2].ljust(2, b"\0")
        self._place += 2
        return int.from_bytes(taken, "little") % max(count, 1)

    def pick(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def rest(self) -> bytes:
        return self._data[self._place :]


# One command line, several, or something to call that says what is wrong.
Work = list[str] | list[list[str]] | Callable[[], str | None]
Write = Callable[[Path, bytes], Work]


def _file(name: str, *command: str) -> Write:
    def write(folder: Path, data: bytes) -> list[str]:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return list(command)

    return write


def _member(folder: Path, data: bytes) -> list[str]:
    """The bytes as one member of an archive, with a checksum that is right."""
    from malformed_archives import Y, archive, npy

    (folder / "data.npz").write_bytes(archive({"X.npy": data, "y.npy": npy(Y)}))
    return ["audit", "data.npz"]


def _chunks(folder: Path, data: bytes) -> list[str]:
    """The bytes as the size and the pixels of a PNG, with checksums that are right."""
    from malformed_archives import grey, png_of

    for kind in ("cat", "dog"):
        (folder / "pets" / kind).mkdir(parents=True)
        (folder / "pets" / kind / "1.png").write_bytes(grey(1))
    choices = Choices(data)
    width, height = choices.pick((8, 8, 8, 7, 0, 2**31 - 1)), choices.pick((8, 8, 8, 1, 10**6))
    (folder / "pets" / "dog" / "2.png").write_bytes(png_of(width, height, choices.rest()))
    return ["audit", "pets"]


def _picture(folder: Path, data: bytes) -> list[str]:
    from malformed_archives import grey

    for kind in ("cat", "dog"):
        (folder / "pets" / kind).mkdir(parents=True)
        (folder / "pets" / kind / "1.png").write_bytes(grey(1))
    (folder / "pets" / "dog" / "2.png").write_bytes(data)
    return ["audit", "pets"]


def _law(folder: Path, data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace").replace("\0", "0")
    return ["measure", "--member", text, "--nonmember", "normal:0,1"]


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 1e308, -1e308, 1e-320, 10**30, "", "x", "nan", [], {}, [[]], [1, 2]),
    *({"a": 1}, "0" * 64, "data.csv", "/dev/zero", ["y"], [None], "\x1b[31m", 2, "linear", "nngp"),
)


def spoilt(document: Any, choices: Choices) -> None:
    """Replace, remove or double a few of a document's values."""
    for _ in range(1 + choices.below(3)):
        place: Any = document
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = choices.pick(keys)
            if isinstance(place[key], (dict, list)) and place[key] and choices.below(4):
                place = place[key]
                continue
            action = choices.below(8)
            if action == 0:
                del place[key]
            elif action == 1 and isinstance(place, list):
                place.append(copy.deepcopy(place[key]))
            else:
                place[key] = copy.deepcopy(choices.pick(ODD_VALUES))
            break


def _odd_document(kind: str) -> Write:
    """A result of one kind, with a few of its values replaced, removed or doubled."""

    def write(folder: Path, data: bytes) -> list[str]:
        choices = Choices(data)
        document = json.loads(SEEDS["results"][kind])
        if "dataset" in document and document["dataset"].get("source"):
            document["dataset"]["source"]["file"] = str(folder / "data.csv")
        spoilt(document, choices)
        (folder / "run" / "result.json").write_text(json.dumps(document))
        verb = choices.pick(("verify", "verify", "report", "compare", "advise", "decide"))
        if verb == "report":
            return ["report", "run"]
        if verb == "decide":
            return ["decide", "run", "--threshold-advantage", "0.2", "--prior", "0.1"]
        if verb in ("compare", "advise"):
            return list(BASES[verb])
        return ["verify", "run", "--draws", "100", "--records", "2"]

    return write


def commands() -> dict[str, Any]:
    """The command tree, flat: ``attack query`` and its parameters."""
    global _COMMANDS
    if not _COMMANDS:
        from leakscope.cli import app

        root: Any = typer.main.get_command(app)
        for name, command in root.commands.items():
            for sub, inner in getattr(command, "commands", {"": command}).items():
                if name not in NO_COMMANDS:
                    _COMMANDS[f"{name} {sub}".strip()] = inner
    return _COMMANDS


_COMMANDS: dict[str, Any] = {}


def _line(folder: Path, data: bytes) -> list[str]:
    """A command line from the tree, mostly near one that works."""
    choices = Choices(data)
    line = list(BASES[choices.pick(sorted(BASES))])
    command = _command(line)
    if not choices.below(12):
        del line[choices.below(len(line))]
    for _ in range(choices.below(4)):
        options = [
            option
            for option in command.params
            if option.param_type_name == "option" and not LEFT_OUT & set(option.opts)
        ]
        option = choices.pick(options)
        flag = option.opts[0]
        if option.is_flag:
            line.append(choices.pick([*option.opts, *option.secondary_opts]))
            continue
        line += [flag, _value(choices, flag, option)]
    if not choices.below(15):
        line.append(choices.pick(ODD_TEXTS))
    return line


def every_line() -> Iterator[list[str]]:
    """Every option of every command with every odd value, one at a time.

    Of a command's second base and the next every fifth line, since they share most of their way.
    """
    seen: dict[str, int] = {}
    for _, base in sorted(BASES.items()):
        command = _command(base)
        before = seen.get(command.name, 0)
        seen[command.name] = before + 1
        stride = 5 if before else 1
        yield from itertools.islice(_lines(base), before % stride, None, stride)


def _lines(base: list[str]) -> Iterator[list[str]]:
    for option in _command(base).params:
        flag = option.opts[0]
        if option.param_type_name != "option" or LEFT_OUT & set(option.opts):
            continue
        for value in _values(flag, option) if not option.is_flag else (None,):
            yield [*base, flag, *([] if value is None else [value])]


def _command(line: list[str]) -> Any:
    """The command of a line that works."""
    return commands().get(line[0]) or commands()[" ".join(line[:2])]


def _value(choices: Choices, flag: str, option: Any) -> str:
    if flag in WORDS and choices.below(3):
        return str(choices.pick(WORDS[flag]))
    return str(choices.pick(_values(flag, option)))


def _values(flag: str, option: Any) -> tuple[str, ...]:
    """The odd values that an option may be given, by what it takes."""
    if flag in ("--json", "--sacro", "--keep"):
        return (*INPUTS, "-", "out.json", "gone/out.json", "run", "", "/dev/full", "a" * 5000)
    if flag in ("--run-dir", "--output", "--html", "--save", "--picture"):
        return (*INPUTS, "new", "run", "data.csv", "new.html", "gone/x.html", "", ".", "a" * 5000)
    kind = option.metavar or ""
    if flag in MAY_BE_HUGE:
        return HUGE_COUNTS
    if kind == "COUNT":
        return ODD_COUNTS
    if kind in ("NUMBER", "FRACTION"):
        return ODD_NUMBERS
    return (*WORDS.get(flag, ()), *ODD_TEXTS)


SEEDS: dict[str, Any] = {}


def prepare_seeds() -> dict[str, tuple[Write, list[bytes]]]:
    """Every target by name: how its bytes are used, and valid bytes to begin with."""
    import malformed_archives as archives
    import malformed_documents as documents
    import malformed_tables as tables
    import numpy as np

    table = tables.good_table()
    audit = ("--target", "y")
    network = documents._json_network().encode()
    npz = archives.npz(w=documents.W, b=documents.B, v=documents.V)
    packed = _safetensors()
    run = documents.run_files()
    SEEDS["run"], SEEDS["models"] = run, _log_odds()
    SEEDS["parquet"] = tables.parquet(_arrow_table())
    SEEDS["model"] = _run("--model", "ridge", "--alpha", "1")
    SEEDS["groups"] = _run("--kernel", "rbf", "--group", "a")
    fitted = ("--model", "ridge", "--ignore", "c", "--ignore", "g", "--ignore", "z")
    SEEDS["fitted"] = _run(*fitted, "--alpha", "1", "--scaling", "none", text=MANY)
    SEEDS["fitted2"] = _run(*fitted, "--alpha", "5", "--scaling", "none", text=MANY)
    SEEDS["people"] = _run("--model", "ridge", "--alpha", "1", "--group", "g", text=MANY)
    SEEDS["mine"], SEEDS["head"] = _skops_without(), _head()
    SEEDS["results"] = _results()
    csv_seeds = [text.encode() for text in (tables.GOOD, "id,c,y\na,x,1\nb,z,2\nc,x,3\n")]
    csv_seeds.append(b'"a ""q""",b,y\n1,2,3\n"4\n",5,6\n')
    targets: dict[str, tuple[Write, list[bytes]]] = {
        "csv": (_file("data.csv", "audit", "data.csv", *audit), csv_seeds),
        "csv classes": (
            _file(
                *("data.csv", "audit", "data.csv", *audit, "--task", "classification"),
                *("--missing", "impute"),
            ),
            csv_seeds,
        ),
        "tsv": (
            _file("data.tsv", "audit", "data.tsv", *audit, "--missing", "drop"),
            [tables.GOOD.replace(",", "\t").encode()],
        ),
        "parquet": (
            _file("data.parquet", "audit", "data.parquet", *audit),
            [tables.parquet(table)],
        ),
        "npy": (
            _file("data.npy", "audit", "data.npy", "--target", "0"),
            [archives.npy(archives.X), archives.npy(archives.X.astype("f2"))],
        ),
        "npz": (
            _file("data.npz", "audit", "data.npz"),
            [archives.npz(X=archives.X, y=archives.Y)],
        ),
        "npz member": (_member, [archives.npy(archives.X), archives.npy(archives.X.astype("U3"))]),
        "picture": (
            _picture,
            [archives.grey(3), archives.picture(np.zeros((8, 8), dtype=np.uint8), "JPEG")],
        ),
        "picture chunks": (_chunks, [bytes(4) + bytes(72)]),
        "scores csv": (
            _file(
                *("s.csv", "measure", "--member-scores", "s.csv"),
                *("--nonmember-scores", "q.csv"),
            ),
            [b"score\n0.1\n0.2\n0.3\n0.25\n", b"1\n2\n3\n4\n5\n"],
        ),
        "scores npy": (
            _file(
                *("s.npy", "measure", "--member-scores", "s.npy"),
                *("--nonmember-scores", "q.csv"),
            ),
            [archives.npy(archives.Y)],
        ),
        "network json": (_file("net.json", "attack", "reconstruct", "net.json"), [network]),
        "network npz": (_file("net.npz", "attack", "reconstruct", "net.npz"), [npz]),
        "network safetensors": (
            _file("w.safetensors", "attack", "membership", "w.safetensors", "--queries", "q.csv"),
            [packed],
        ),
        "queries": (
            _file("q.csv", "attack", "membership", "net.json", "--queries", "q.csv"),
            [b"x\n1\n2\n-1\n"],
        ),
        "training set": (
            _file("set.csv", "attack", "reconstruct", "net.json", "--data", "set.csv"),
            [b"x,y\n1,1\n-1,-1\n"],
        ),
        "law text": (
            _law,
            [
                law.encode()
                for law in (*WORDS["--member"], *WORDS["--nonmember"], "mixture:0.2*-1,2+0.8*3,1")
            ],
        ),
        "command line": (_line, [bytes([i, 0] * 12) for i in range(40)]),
        "canaries": (
            _file("canaries.csv", "measure", "--canaries", "canaries.csv"),
            [CANARIES.encode()],
        ),
        "head safetensors": (_file("head.safetensors", *BASES["audit head"]), [SEEDS["head"]]),
        "erased skops": (_file("mine.skops", *BASES["erase after"]), [SEEDS["mine"]]),
        "pool": (_file("many.csv", *BASES["attack membership of a fit"]), [MANY.encode()]),
        "people": (_file("many.csv", *BASES["audit people"]), [MANY.encode()]),
        "secret": (_file("many.csv", *BASES["audit secret of several"]), [MANY.encode()]),
        "plan data": (_file("many.csv", *BASES["plan lasso of data"]), [MANY.encode()]),
        "network records": (
            _file(
                *("set.csv", "attack", "network", "set.csv", "--width", "4", "--steps", "20"),
            ),
            [b"a,b,y\n1,2,1\n-1,0.5,-1\n0.2,-1,1\n-2,1,-1\n"],
        ),
    }
    targets |= _model_files() | _services() | _labels() | _folders()
    for name in ("result.json", "settings.json", "arrays.npz"):
        targets[f"run {name}"] = (_file(f"run/{name}", "report", "run"), [run[name]])
    gallery = documents._gallery("a.png").encode()
    targets["run gallery.json"] = (_file("run/gallery.json", "report", "run"), [gallery])
    for kind in SEEDS["results"]:
        targets[f"odd {kind}"] = (_odd_document(kind), [bytes(8), bytes(range(40))])
    return targets


# Enough records for a fit to be trusted: numbers, a column of text, people of two rows, classes.
def _table(count: int) -> str:
    return "a,b,g,c,z,y\n" + "".join(
        f"{i * 37 % 11},{i * 17 % 7 + 0.5},p{i // 2},{'uvw'[i % 3]},{int(i * 7 % 5 > 2)},"
        f"{i * 29 % 13 / 2}\n"
        for i in range(count)
    )


MANY = _table(30)
CANARIES = "score,included\n" + "".join(
    f"{i * 37 % 101 / 50 + i % 2},{'true' if i % 2 else 'false'}\n" for i in range(60)
)


def _arrow_table() -> Any:
    import pyarrow.csv

    return pyarrow.csv.read_csv(io.BytesIO(_table(200).encode())).drop(["g"])


def _many() -> tuple[Any, Any]:
    import numpy as np

    rows = [line.split(",") for line in MANY.split()[1:]]
    table = np.array([[row[0], row[1], row[5]] for row in rows], dtype=np.float64)
    return table[:, :2], table[:, 2]


def _skops_without() -> bytes:
    """The ridge regression of ``fitted`` without record 1."""
    import numpy as np
    import skops.io
    from sklearn.linear_model import Ridge

    X, y = _many()
    kept = np.arange(len(y)) != 1
    return bytes(skops.io.dumps(Ridge(alpha=1.0).fit(X[kept], y[kept])))


def _head() -> bytes:
    """A linear head at its optimum, whose weight decay of 0.1 leaves the bias alone."""
    from safetensors.numpy import save
    from sklearn.linear_model import Ridge

    X, y = _many()
    model = Ridge(alpha=0.1 * len(y) / 2.0).fit(X, y)
    return bytes(save({"weight": model.coef_[None], "bias": model.intercept_.reshape(1)}))


def _run(*options: str, text: str = "") -> dict[str, bytes]:
    """A whole run of an audit with these options, file by file."""
    from malformed_tables import GOOD

    from leakscope.cli import main

    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        Path("data.csv").write_text(text or GOOD)
        line = ["audit", "data.csv", "--target", "y", *options, "--run-dir", "run"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(line) in (0, 3, 4)
        return {file.name: file.read_bytes() for file in Path("run").iterdir()}


def _log_odds() -> bytes:
    import malformed_archives as archives
    import numpy as np

    rng = np.random.default_rng(0)
    chosen = np.arange(4)[:, None] % 2 == rng.integers(0, 2, 20)
    return archives.npz(log_odds=rng.normal(size=(4, 20)) + chosen, trained_on=chosen)


def _odds_member(folder: Path, data: bytes) -> list[str]:
    """The bytes as the log-odds of an archive whose other member is right."""
    import malformed_archives as archives
    import numpy as np

    chosen = archives.npy(np.arange(4)[:, None] % 2 == np.arange(20) % 2)
    (folder / "models.npz").write_bytes(
        archives.archive({"log_odds.npy": data, "trained_on.npy": chosen})
    )
    return ["measure", "--logits", "models.npz"]


def _skops_schema(folder: Path, data: bytes) -> list[str]:
    """The bytes as the schema of a skops file, in an archive that is whole."""
    import zipfile

    with (
        zipfile.ZipFile(io.BytesIO(SEEDS["skops"])) as old,
        zipfile.ZipFile(folder / "mine.skops", "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, data if name == "schema.json" else old.read(name))
    return ["audit", "data.csv", "--target", "y", "--model", "mine.skops"]


def _model_files() -> dict[str, tuple[Write, list[bytes]]]:
    """A fitted model from a file, and the log-odds of a few models."""
    import zipfile

    import malformed_archives as archives
    import numpy as np
    import skops.io
    from malformed_tables import GOOD
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.array([line.split(",") for line in GOOD.split()[1:]], dtype=np.float64)
    model = make_pipeline(StandardScaler(), Ridge(alpha=1.0)).fit(rows[:, :2], rows[:, 2])
    SEEDS["skops"] = skops.io.dumps(model)
    schema = zipfile.ZipFile(io.BytesIO(SEEDS["skops"])).read("schema.json")
    audit = ("audit", "data.csv", "--target", "y", "--model")
    odds = archives.npy(np.linspace(-3.0, 3.0, 80).reshape(4, 20))
    return {
        "model skops": (_file("mine.skops", *audit, "mine.skops"), [SEEDS["skops"]]),
        "model skops schema": (_skops_schema, [schema]),
        "model skops parts": (_odd_model, [bytes(8), bytes(range(16)), bytes(range(5, 40, 3))]),
        "logits": (_file("models.npz", "measure", "--logits", "models.npz"), [SEEDS["models"]]),
        "logits member": (_odds_member, [odds]),
    }


def _odd_model(folder: Path, data: bytes) -> list[str]:
    """A scikit-learn model in a skops file, some of its parts replaced."""
    import numpy as np
    import skops.io
    from malformed_tables import GOOD
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    choices = Choices(data)
    rows = np.array([line.split(",") for line in GOOD.split()[1:]], dtype=np.float64)
    kind = choices.pick((Ridge, LinearRegression, PoissonRegressor, LogisticRegression))
    y = rows[:, 2] > np.median(rows[:, 2]) if kind is LogisticRegression else np.abs(rows[:, 2])
    inner = kind().fit(rows[:, :2], y)
    parts = ("alpha", "C", "coef_", "intercept_", "n_features_in_", "classes_", "fit_intercept")
    values: tuple[Any, ...] = (
        None,
        "a",
        0.0,
        -1.0,
        np.nan,
        np.inf,
        [],
        np.zeros(3),
        np.zeros((2, 2)),
    )
    values += (np.array(["a"]), True, 10**30, np.zeros((1, 1, 1)), np.array([np.nan, 1.0]), {})
    for _ in range(1 + choices.below(3)):
        setattr(inner, choices.pick(parts), choices.pick(values))
    step = choices.pick((None, StandardScaler(), PolynomialFeatures(choices.pick((1, 2, 14)))))
    model = inner if step is None else make_pipeline(step.fit(rows[:, :2]), inner)
    if step is not None and not choices.below(2):
        setattr(
            step,
            choices.pick(("mean_", "scale_", "degree", "n_features_in_")),
            choices.pick(values),
        )
    skops.io.dump(model, folder / "mine.skops")
    line = ["audit", "data.csv", "--target", "y", "--model", "mine.skops"]
    return [*line, *choices.pick(([], ["--task", "classification"], ["--scaling", "none"]))]


def _labels() -> dict[str, tuple[Write, list[bytes]]]:
    """Ids, groups, classes and subgroups as they are written."""
    text = "id,g,c,x,y\n" + "".join(
        f"{10**18 + i},{i % 4}.1{'0' * (i % 2)},{'ab'[i % 2]},{i * 37 % 11},{i % 3}\n"
        for i in range(16)
    )
    line = ("audit", "data.csv", "--target", "y", "--id", "id", "--group", "g", "--by", "c")
    classes = ("--task", "classification", "--model", "logistic", "--C", "1", "--ignore", "g")
    return {
        "labels": (_file("data.csv", *line, "--kernel", "rbf"), [text.encode()]),
        "labels classes": (
            _file("data.csv", *line[:6], "--by", "c", *classes),
            [text.encode()],
        ),
    }


def _services() -> dict[str, tuple[Write, list[bytes]]]:
    """The user's training functions."""
    import fuzz_services as services

    return {
        "verify train": (
            [bytes([0, 0, i, 0, 1, 0, 0, 0, 2, 0, 1, 0, 1, 0, 1, 0]) for i in range(35)],
        ),
        "audit train": (
            services.trained_audit,
            [bytes([i, 0, 1, 0, 1, 0, 1, 0, i % 5, 0]) for i in range(37)],
        ),
        "any model": (
            services.any_model,
            [bytes([i % 4, 0, i, 0, i % 3, 0, i % 4, 0, 0, 0, i % 6, 0]) for i in range(34)],
        ),
        "erase": (services.erased, [bytes(20), bytes(range(40)), bytes(range(3, 60, 2))]),
        "decide": (services.decided, [bytes(20), bytes(range(40)), bytes(range(3, 60, 2))]),
        "verify models": (services.shadow_verification, [bytes(12), bytes(range(24))]),
    }


def _folders() -> dict[str, tuple[Write, list[bytes]]]:
    """Filed records and streamed files."""
    from fuzz_folders import folder_targets

    return folder_targets()


def _safetensors() -> bytes:
    import malformed_documents as documents
    import numpy as np
    from safetensors.numpy import save

    return save(
        {"w": np.array(documents.W), "b": np.array(documents.B), "v": np.array(documents.V)}
    )


def _results() -> dict[str, str]:
    """One result of every kind that a small command gives."""
    from leakscope.cli import main

    found = {}
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        furnish(Path(place))
        for name, line in BASES.items():
            if line[0] in ("verify", "report", "compare", "advise") or {"latent", "--set"} & set(
                line
            ):
                continue
            with contextlib.redirect_stdout(io.StringIO()) as out:
                # 3 and 4: a limit is passed, or that cannot be told
                assert main([*line, "--json", "-"]) in (0, 3, 4), name
            found[name] = out.getvalue()
    return found


def furnish(folder: Path) -> None:
    """What the commands expect beside the file in question."""
    from malformed_documents import _json_network
    from malformed_tables import GOOD, good_table, parquet

    (folder / "data.csv").write_text(GOOD)
    (folder / "data.parquet").write_bytes(parquet(good_table()))
    (folder / "net.json").write_text(_json_network())
    (folder / "q.csv").write_text("x\n1\n2\n-1\n0.5\n")
    (folder / "models.npz").write_bytes(SEEDS["models"])
    (folder / "many.csv").write_text(MANY)
    (folder / "many.parquet").write_bytes(SEEDS["parquet"])
    columns = [line.split(",") for line in MANY.split()]
    for name, kept in (("numbers.csv", (0, 1, 5)), ("asked.csv", (0, 1, 2, 3, 4, 5, 5))):
        text = "\n".join(",".join(row[k] for k in kept) for row in columns) + "\n"
        (folder / name).write_text(text.replace("y,y\n", "y,told\n"))
    (folder / "canaries.csv").write_text(CANARIES)
    (folder / "set.csv").write_text("a,b,y\n1,2,1\n-1,0.5,-1\n0.2,-1,1\n-2,1,-1\n")
    (folder / "mine.skops").write_bytes(SEEDS["mine"])
    (folder / "head.safetensors").write_bytes(SEEDS["head"])
    for name in ("run", "run2", "model", "groups", "fitted", "fitted2", "people"):
        (folder / name).mkdir()
        files = SEEDS.get(name, SEEDS["run"])
        for file, held in files.items():
            # By its digests any change would be seen before the file is looked at.
            if file != "digests.json":
                (folder / name / file).write_bytes(held)
        document = json.loads(files["result.json"])
        data = "many.csv" if name in ("fitted", "fitted2", "people") else "data.csv"
        document["dataset"]["source"]["file"] = str(folder / data)
        (folder / name / "result.json").write_text(json.dumps(document))
