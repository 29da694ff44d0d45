"""What a streamed audit says of every record: Parquet files, written as the answers come."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from leakscope.data.files import partial_beside
from leakscope.errors import InputError, required
from leakscope.results.document import to_json


class AnswersFile:
    """A Parquet file that is there whole or not at all, and not where there are no answers."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.partial = partial_beside(path)
        self.settings = json.dumps(json.loads(to_json(settings)))
        self.writer: Any = None

    def __enter__(self) -> AnswersFile:
        required("pyarrow", "A streamed audit")
        try:
            os.close(os.open(self.partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        except OSError as error:
            raise self._failed(error) from error
        return self

    def write(self, columns: dict[str, NDArray[Any]]) -> None:
        """Add the answers about some records; all calls bring the same columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(columns)
        try:
            if self.writer is None:
                # Hardly a number comes twice: a dictionary would cost more than all the rest.
                schema = table.schema.with_metadata({"leakscope": self.settings})
                self.writer = pq.ParquetWriter(self.partial, schema, use_dictionary=False)
            self.writer.write_table(table.cast(self.writer.schema))
        except OSError as error:
            raise self._failed(error) from error

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if self.writer is not None:
                self.writer.close()
            if kind is None and self.writer is not None:
                self.partial.replace(self.path)
        except OSError as error:
            if kind is None:
                raise self._failed(error) from error
        finally:
            self.partial.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> InputError:
        return InputError(f"{self.path} cannot be written: {error.strerror or error}.")
