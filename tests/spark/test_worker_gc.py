"""Python workers between tasks."""

import gc

from millstream.spark.host.worker_gc import settle


def test_what_was_loaded_is_no_longer_gone_through() -> None:
    much = [[] for _ in range(100_000)]
    try:
        settle()
        assert gc.get_freeze_count() > len(much)
        assert len(gc.get_objects()) < len(much)
    finally:
        gc.unfreeze()
