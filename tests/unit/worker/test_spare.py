"""The event loop is asked only about pipes that are in it."""

from __future__ import annotations

import os

from kombu.asynchronous import Hub

from tidegate.worker.consumer import _spare


def test_a_pipe_that_is_not_in_the_loop_is_left_alone() -> None:
    hub, (reader, writer) = Hub(), os.pipe()
    asked: list[int] = []
    original = hub.remove_writer
    hub.remove_writer = lambda fd: (asked.append(fd), original(fd))
    _spare(hub)
    try:
        hub.remove_writer(writer)
        assert asked == []
        hub.add_writer(writer, print)
        hub.remove_writer(writer)
        assert (asked, writer in hub.writers) == ([writer], False)
    finally:
        hub.close()
        os.close(reader)
        os.close(writer)
