"""Every result in short: a title, a few sentences and one table, for notebooks and model cards.

A result says in :meth:`Shown.in_short` what matters of it, once; its ``repr``, its HTML in a
notebook, its Markdown and the page of ``leakscope report`` are all made from that.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.data.files import printable
from leakscope.errors import in_python

# A repr is one line of at most so many signs.
LONGEST = 240


@dataclass(frozen=True)
class Short:
    """A result in short.

    Attributes
    ----------
    title
        What it is.
    sentences
        What it says, the answer first.
    headings, rows
        One table, as text.
    warnings
        What to beware of.
    picture
        One chart as SVG, for notebooks; empty where there is none.

    Examples
    --------
    >>> from leakscope.results.shown import Short
    >>> print(Short("Scores", ("All well.",), ("name", "value"), (("AUC", "0.7"),)).to_markdown())
    **Scores**
    <BLANKLINE>
    All well.
    <BLANKLINE>
    | name | value |
    |---|--:|
    | AUC | 0.7 |
    <BLANKLINE>
    """

    title: str
    sentences: tuple[str, ...]
    headings: tuple[str, ...] = ()
    rows: Sequence[Sequence[str]] = field(default=())
    warnings: tuple[str, ...] = ()
    picture: str = ""

    def to_markdown(self) -> str:
        """As Markdown; signs of the data stay signs."""
        parts = [f"**{_plain(self.title)}**", *map(_plain, self.sentences)]
        parts += [f"Warning: {_plain(sentence)}" for sentence in self.warnings]
        if self.rows:
            lines = [self.headings, *self.rows]
            told = [f"| {' | '.join(map(_plain, cells))} |" for cells in lines]
            told.insert(1, "|---|" + "--:|" * (len(self.headings) - 1))
            parts.append("\n".join(told))
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """As a piece of HTML without a script; every text of it is escaped."""
        parts = [f"<p><strong>{_escaped(self.title)}</strong></p>"]
        parts += [f"<p>{_escaped(sentence)}</p>" for sentence in self.sentences]
        parts += [f"<p><em>Warning: {_escaped(s)}</em></p>" for s in self.warnings]
        if self.rows:
            heads = "".join(f"<th>{_escaped(cell)}</th>" for cell in self.headings)
            rows = "".join(
                f"<tr>{''.join(f'<td><bdi>{_escaped(cell)}</bdi></td>' for cell in row)}</tr>"
                for row in self.rows
            )
            parts.append(f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
        return f'<div class="leakscope">{"".join(parts)}{self.picture}</div>'


class Shown:
    """What is shown of a result: on one line, in a notebook, as Markdown.

    Examples
    --------
    >>> import leakscope
    >>> found = leakscope.measure("normal:1,1", "normal:0,1")
    >>> found
    <Measurement: An attacker's advantage is 0.383 (best TPR - FPR) and the AUC 0.76.>
    >>> "<table>" in found._repr_html_()
    True
    """

    def in_short(self) -> Short:
        """What matters of the result, in words and one table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """The answer on one line, not thousands of numbers."""
        text = in_python(printable(" ".join(" ".join(self.in_short().sentences).split())))
        told = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        return f"<{type(self).__name__}: {told}>"

    def __str__(self) -> str:
        """The same."""
        return repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: parameters are called as Python calls them."""
        short = self.in_short()
        sentences, cautions = (
            tuple(map(in_python, texts)) for texts in (short.sentences, short.warnings)
        )
        return replace(short, sentences=sentences, warnings=cautions).to_html()

    def to_markdown(self) -> str:
        """The result in short as Markdown, for a model card or an issue."""
        return self.in_short().to_markdown()


# A picture in a notebook: its size, the room of its axes, and how many units it draws at most.
WIDE, HIGH, LEFT, BELOW, DRAWN = 520, 190, 46, 38, 160


def ranked_picture(
    values: NDArray[np.float64],
    low: NDArray[np.float64] | None,
    high: NDArray[np.float64] | None,
    *,
    heading: str,
    unit: str,
    line: float,
) -> str:
    """Fractions over their ranks, the largest first, with their intervals; SVG without a script.

    Ranks are on a logarithmic axis, so that the few most exposed are seen beside all others; the
    dashed line is ``line``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.results.shown import ranked_picture
    >>> told = ranked_picture(np.array([0.4, 0.1]), None, None, heading="advantage",
    ...                       unit="record", line=0.1)
    >>> told.startswith("<svg"), told.count("h0")  # a dot for each
    (True, 2)
    """
    count = len(values)
    if not count:
        return ""
    drawn = ranks_drawn(count, DRAWN)
    across = np.log(drawn + 1.0) / max(np.log(count), 1e-9)
    x = LEFT + 8 + across * (WIDE - LEFT - 20)

    def up(fraction: Any) -> Any:
        return HIGH - BELOW - np.clip(fraction, 0.0, 1.0) * (HIGH - BELOW - 10)

    dashes = ' stroke-dasharray="5 4"'
    parts = [
        f'<line x1="{LEFT}" x2="{WIDE - 6}" y1="{up(level):.1f}" y2="{up(level):.1f}" '
        f'stroke="currentColor" stroke-opacity="{0.55 if level == line else 0.15}"'
        f"{dashes if level == line else ''}/>"
        for level in (0.0, 0.5, 1.0, line)
    ]
    if low is not None and high is not None:
        ends = zip(x, up(low[drawn]), up(high[drawn]), strict=True)
        bars = "".join(f"M{at:.1f} {one:.1f}V{other:.1f}" for at, one, other in ends)
        parts.append(f'<path d="{bars}" stroke="#1f5a96" stroke-opacity="0.35" stroke-width="2"/>')
    dots = "".join(f"M{at:.1f} {y:.1f}h0" for at, y in zip(x, up(values[drawn]), strict=True))
    parts.append(f'<path d="{dots}" stroke="#1f5a96" stroke-width="5" stroke-linecap="round"/>')
    marks = {10**power for power in range(7) if 10**power <= count} | {count}
    room = 0.0
    for rank in sorted(marks, reverse=True):
        at = LEFT + 8 + np.log(rank) / max(np.log(count), 1e-9) * (WIDE - LEFT - 20)
        if room and room - at < 44:
            continue
        room = at
        parts.append(_words(at, HIGH - BELOW + 15, f"{rank:,}", "middle"))
    parts += [_words(LEFT - 6, up(level) + 4, f"{level:g}", "end") for level in (0.0, 0.5, 1.0)]
    middle = (LEFT + WIDE) / 2
    parts.append(_words(middle, HIGH - 6, f"rank of the {unit}, the most exposed first", "middle"))
    told = f"{heading} of every {unit} by its rank"
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" style="max-width:100%" role="img" '
        f'font-family="system-ui,sans-serif" font-size="11"><title>{_escaped(told)}</title>'
        f"{''.join(parts)}</svg><p><small>{_escaped(heading)} of every {_escaped(unit)}; "
        f"dashed: {line:g}{'; bars: 95% intervals' if low is not None else ''}.</small></p>"
    )


def ranks_drawn(count: int, most: int) -> NDArray[np.intp]:
    """Places in a ranking that a chart draws: all of them, or the first and ever fewer after."""
    if count <= most:
        return np.arange(count)
    found: NDArray[np.intp] = np.unique(np.geomspace(1, count, most).round().astype(np.intp)) - 1
    return found


def _words(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">'
        f"{_escaped(text)}</text>"
    )


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    signs = {"\\": "\\\\", "|": "\\|", "`": "\\`", "<": "&lt;", "*": "\\*", "_": "\\_", "[": "\\["}
    return "".join(signs.get(sign, sign) for sign in printable(text))


def digits(value: float | None, *, infinite: bool = False, most: int = 4) -> str:
    """A few digits, or a word where there is no number.

    Examples
    --------
    >>> from leakscope.results.shown import digits
    >>> digits(0.123456), digits(None), digits(None, infinite=True)
    ('0.1235', '-', 'infinite')
    """
    if value is None:
        return "infinite" if infinite else "-"
    return f"{value:.{most}g}"


def are(count: int) -> str:
    """``is`` of one, ``are`` of others.

    Examples
    --------
    >>> from leakscope.results.shown import are
    >>> are(1), are(2)
    ('is', 'are')
    """
    return "is" if count == 1 else "are"


def ends_text(low: float, high: float, form: str = ".2g") -> str:
    """The ends of a fraction's interval in two digits; what would round to 1 is not certainty.

    Examples
    --------
    >>> from leakscope.results.shown import ends_text
    >>> ends_text(0.01, 1.0), ends_text(0.9, 0.9999), ends_text(0.999, 0.9999)
    ('0.01 to 1', '0.9 to >0.99', '>0.99')
    """
    ends = [">0.99" if 0.995 <= end < 1.0 else f"{end:{form}}" for end in (low, high)]
    return ends[0] if ends[0] == ends[1] == ">0.99" else " to ".join(ends)


def certain(value: float | None) -> str:
    """Four digits of a fraction; what would round to 1 is not certainty.

    Examples
    --------
    >>> from leakscope.results.shown import certain
    >>> certain(0.25), certain(0.999999)
    ('0.2500', '>0.9999')
    """
    if value is None:
        return "-"
    return ">0.9999" if value >= 0.99995 else f"{value:.4f}"
