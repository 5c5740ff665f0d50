"""Celery's settings under Tidegate, each with the reason why it is not the default (measured on Celery 5.7)."""

from __future__ import annotations

from typing import Any

from kombu import Exchange, Queue

from tidegate.config import Settings
from tidegate.transport.binding import OPTION
from tidegate.worker import backend, serializer

#: longest wait for a reply on any connection of Celery, in seconds. kombu's default is for ever, and one command on a
#: connection whose other end is gone then blocks the main loop of a worker
SOCKET_TIMEOUT = 5.0

#: what an app may say about itself; ours is used where it does not
DEFAULTS = ("worker_prefetch_multiplier", "worker_pool", "worker_concurrency", "task_default_queue")


def forced(settings: Settings, fleet: str) -> dict[str, Any]:
    """What must hold, whatever the app says. `fleet`: the name under which the transport finds its fleet."""
    timeout = min(SOCKET_TIMEOUT, settings.worker.lease / 3)
    prefix = f"{{{settings.fleet.name}}}:"
    expires = settings.fleet.result_expires
    return {
        "broker_url": f"tidegate://{settings.fleet.name}/",  # for people; the transport asks the settings
        "broker_read_url": None,
        "broker_write_url": None,
        "broker_transport": "tidegate.transport:Transport",
        "broker_transport_options": {
            OPTION: fleet,
            "global_keyprefix": f"{prefix}k:",
            "socket_timeout": timeout,
            "socket_connect_timeout": min(2.0, timeout),
            "health_check_interval": max(1, round(min(3.0, timeout))),
        },
        "broker_channel_error_retry": True,  # READONLY during a failover would end the worker
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,  # a worker waits for its store as long as it takes
        "broker_heartbeat": 0,
        "result_backend": result_backend(settings),
        "result_backend_transport_options": {"global_keyprefix": f"{prefix}r:"},
        "result_expires": expires,
        "redis_socket_timeout": timeout,
        "redis_socket_connect_timeout": min(2.0, timeout),
        "redis_backend_health_check_interval": None,
        "task_protocol": 2,
        "task_serializer": serializer.NAME,
        "result_serializer": serializer.NAME,
        "accept_content": [serializer.NAME, "json"],  # remote control and events speak plain JSON
        "result_accept_content": None,
        "task_queues": [
            Queue(name, Exchange(name, type="direct"), routing_key=name) for name in settings.queues
        ],
        "task_create_missing_queues": True,  # FleetQueues says which
        "task_create_missing_queue_type": "classic",
        "task_create_missing_queue_exchange_type": "direct",
        "task_default_exchange_type": "direct",
        "task_queue_max_priority": None,
        "task_acks_late": True,  # else a job is reported as done when it starts
        "task_acks_on_failure_or_timeout": None,
        "task_acks_on_failure": True,  # never back to the broker: the store decides
        "task_acks_on_timeout": True,
        "task_reject_on_worker_lost": False,
        "task_retry_on_worker_lost": False,  # publishes a retry from the main process
        "task_inherit_parent_priority": False,
        "worker_consumer": "tidegate.worker.consumer:FleetConsumer",
        "worker_deduplicate_successful_tasks": True,  # after an unknown outcome: was the success stored already?
        "worker_cancel_long_running_tasks_on_connection_loss": False,  # the fence decides, not a TCP reset
        "worker_enable_prefetch_count_reduction": False,  # leases are counted per process
        "worker_disable_prefetch": False,
        "worker_disable_rate_limits": True,  # Celery's would hold claimed jobs in memory
        "worker_soft_shutdown_timeout": settings.worker.drain_timeout,
    }


def default(settings: Settings) -> dict[str, Any]:
    """What holds where the app says nothing itself (the names of DEFAULTS)."""
    return {
        "worker_prefetch_multiplier": 1,  # a job waits in the store, where every worker can take it
        "worker_pool": settings.worker.pool.value,
        "worker_concurrency": settings.worker.concurrency,
        "task_default_queue": "default",
    }


def result_backend(settings: Settings) -> str:
    """The URL that makes Celery use a backend which knows attempts."""
    where = settings.broker.result_backend
    if where == "none":
        return "disabled://"
    return backend.SAME if where == "same" else f"{backend.WRAPPED}+{where}"
