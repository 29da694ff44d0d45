"""The build takes the charts' library from vl-convert, so that no report needs vl-convert.

Vega, Vega-Lite and vega-embed are other projects' code: the wheel carries them, the repository does
not.  Everything else is in pyproject.toml.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

LIBRARY = Path(__file__).parent / "src/leakscope/reporting/templates/vega.js.gz"


class WithCharts(build_py):
    """Write the library beside the templates before they are copied; an editable install too."""

    def run(self) -> None:
        """Once: what is there already stays."""
        if not LIBRARY.exists():
            import vl_convert

            bundle = vl_convert.javascript_bundle().encode("utf-8")
            LIBRARY.write_bytes(gzip.compress(bundle, 9, mtime=0))
        super().run()


setup(cmdclass={"build_py": WithCharts})
