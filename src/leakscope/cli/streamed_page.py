"""``leakscope audit`` of files that are streamed: the cost first, a bar, and one screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leakscope.cli.audit_page import subgroup_tables
from leakscope.cli.output import cells_bar, fraction, say, table, wrapped
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, DataSettings, ModelSettings

if TYPE_CHECKING:
    from leakscope.results import StreamedAuditDocument


def is_streamed(file: Path | None, stream: bool | None, cluster: str | None) -> bool:
    """Whether the records are to be read in blocks: because asked for, or because of their size."""
    from leakscope.auditing import stream_cost

    cost = None if file is None or stream is False else stream_cost(file)
    if cost is None and (stream or cluster is not None):
        raise InputError(
            "--stream and --cluster are for .parquet, .arrow and .feather files, and for folders "
            "of .parquet files."
        )
    return cost is not None and (bool(stream) or cluster is not None or cost.too_large)


def stream(
    file: Path,
    data: DataSettings,
    settings: AuditSettings,
    chosen: ModelSettings,
    place: Path,
    cluster: str | None,
) -> StreamedAuditDocument:
    """Say what it costs, and do it."""
    from leakscope import auditing
    from leakscope.results import require_free
    from leakscope.running import cluster_client

    if (place / "result.json").exists():
        require_free(place)  # before a cost is stated that nobody will pay
    if chosen.model is not None or not settings.of_process():
        raise InputError(
            f"{file} is streamed, and a fitted model is examined in memory only: give --kernel "
            "linear for the Gaussian process of linear regression, or audit a sample."
        )
    cost = auditing.stream_cost(file)
    assert cost is not None
    with cluster_client(scheduler=cluster) as client, cells_bar() as on_progress:
        workers = None if client is None else max(1, sum(client.nthreads().values()))
        told = f"{cost.sentence(workers)} If it stops, go on with --run-dir {place}"
        for line in wrapped(told).splitlines():
            say(line)
        return auditing.audit_streamed(
            file,
            directory=place,
            settings=settings,
            client=client,
            on_progress=on_progress,
            **dict(data),
        )


def streamed_page(found: StreamedAuditDocument, top: int) -> str:
    """The most exposed, and what to make of them."""
    rows = [
        [
            str(record.record_id),
            f"{record.kl:.4g}" if record.kl is not None else "infinite",
            fraction(record.advantage),
            fraction(record.auc),
            fraction(record.leverage),
            "yes" if record.trusted else "NO",
        ]
        for record in found.records[:top]
    ]
    about = found.dataset
    parts = [f"{about.name}: {about.records:,} records, {about.features} features, streamed"]
    if rows:
        headings = ["record_id", "kl", "advantage", "auc", "leverage", "trusted"]
        parts.append(f"The {len(rows)} most exposed, by KL:\n\n{table(headings, rows)}")
    parts += subgroup_tables(found.subgroups, "record")
    parts += [wrapped(found.verdict), f"Every record: the Parquet files in {found.answers}/."]
    return "\n\n".join(parts)


def exceeded(found: StreamedAuditDocument, above: dict[str, float]) -> list[str]:
    """A sentence for each limit of --fail-above that some record exceeds, or may exceed."""
    worst = {name: found.worst[name] for name in above}
    sentences = [
        f"the largest {name} is {'infinite' if value is None else f'{value:.4g}'}, above "
        f"{above[name]:g}."
        for name, value in worst.items()
        if value is None or value > above[name]
    ]
    if above and found.untrusted:
        sentences.append(
            f"{found.untrusted} records are not resolved by float64, so that nobody knows whether "
            "they are within the limit: raise --noise-variance."
        )
    return sentences
