"""Every result in short: a title, a few sentences and one table; and how its numbers are written.

A result says in :meth:`Shown.in_short` what matters of it, once; its ``repr``, its HTML in a
notebook, its Markdown and the page of ``leakscope report`` are all made from that.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from leakscope.data.files import printable

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
    rows: Sequence[Sequence[str]] = ()
    warnings: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        """As Markdown; signs of the data stay signs."""
        parts = [f"**{_plain(self.title)}**", *map(_plain, self.sentences)]
        parts += [f"Warning: {_plain(sentence)}" for sentence in self.warnings]
        if self.rows:
            lines = [f"| {' | '.join(map(_plain, row))} |" for row in (self.headings, *self.rows)]
            lines.insert(1, "|---|" + "--:|" * (len(self.headings) - 1))
            parts.append("\n".join(lines))
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
        return f'<div class="leakscope">{"".join(parts)}</div>'


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
        text = printable(" ".join(" ".join(self.in_short().sentences).split()))
        text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        return f"<{type(self).__name__}: {text}>"

    def __str__(self) -> str:
        """The same."""
        return repr(self)

    def _repr_html_(self) -> str:
        return self.in_short().to_html()

    def to_markdown(self) -> str:
        """The result in short as Markdown, for a model card or an issue."""
        return self.in_short().to_markdown()


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
    return "infinite" if value == float("inf") else f"{value:.{most}g}"


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


def counted(count: int, name: str) -> str:
    """A number of things: ``1 record``, ``2 records``."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def are(count: int) -> str:
    """``is`` of one, ``are`` of others."""
    return "is" if count == 1 else "are"


def named(names: Sequence[object], most: int = 10) -> str:
    """The first names with commas between, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(str(name) for name in names[:most]) + more
