"""Text that goes into a page without becoming part of it.

jinja2 escapes what stands between tags.  Inside ``<script>`` the browser looks for ``</script``
and ``<!--`` before it looks at anything else, so JSON and JavaScript need their own care.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from typing import Any

from leakscope._numerics.memory import require_address_space

# What the JavaScript engine inside vl_convert reserves as it starts, and dies where it cannot;
# it takes a few hundredths of it.
ADDRESS_SPACE = 68 * 10**9

# Unicode's bidirectional controls: an id must not turn itself, or the sentence it stands in, round.
TURNING = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")


def in_order(text: str) -> str:
    """Text without the signs that turn the direction of what follows; U+FFFD in their places.

    Examples
    --------
    >>> from leakscope.reporting import in_order
    >>> in_order("\\u202eevil") == "\\ufffdevil"
    True
    """
    return text.translate(TURNING)


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element, whatever strings it holds.

    Examples
    --------
    >>> from leakscope.reporting import script_json
    >>> print(script_json({"id": "</script><!-- & \\u2028"}))
    {"id":"\\u003c/script\\u003e\\u003c!-- \\u0026 \\u2028"}
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def inline_script(source: str) -> str:
    """JavaScript of a library that can stand inside a script element, with the same meaning.

    ``</script`` and ``<!--`` occur in strings and regular expressions only, where a backslash
    before the sign changes nothing.

    Examples
    --------
    >>> from leakscope.reporting import inline_script
    >>> inline_script("x = '</script>'")
    "x = '<\\\\/script>'"
    """
    return re.sub(r"<(/script|!--)", r"<\\\1", source, flags=re.IGNORECASE)


def script_digest(source: str) -> str:
    """How a content security policy names a script: nothing else on the page may run.

    Examples
    --------
    >>> from leakscope.reporting import script_digest
    >>> script_digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed in one script, in a scope of their own.

    Examples
    --------
    >>> from leakscope.reporting import chart_library
    >>> "vegaEmbed" in chart_library(), "</script" in chart_library()
    (True, False)
    """
    import vl_convert

    require_address_space(
        ADDRESS_SPACE, "the library of the charts", "raise ulimit -v for this command"
    )
    # Its type stub asks for the code to bundle with; left out, the whole library is meant.
    convert: Any = vl_convert
    bundle: str = convert.javascript_bundle()
    return inline_script(f"(() => {{{bundle}\n}})();")


def png_address(content: bytes) -> str:
    """A picture as an address that needs no network.

    Examples
    --------
    >>> from leakscope.reporting import png_address
    >>> png_address(b"x")
    'data:image/png;base64,eA=='
    """
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")
