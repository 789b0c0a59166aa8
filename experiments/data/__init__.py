"""The papers' benchmark sets: where they come from, how their files are read, how a set is fetched."""

from experiments.data.fetch import (
    DataNotFoundError,
    data_file,
    fetch_faces,
    fetch_ida,
    fetch_large,
    fetch_set,
    fetch_uci,
)

__all__ = ["DataNotFoundError", "data_file", "fetch_faces", "fetch_ida", "fetch_large", "fetch_set", "fetch_uci"]
