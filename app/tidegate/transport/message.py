"""A message for a task by its name, made without Celery and without the user's code: what beat sends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidegate.domain.header import HEADER, JobHeader

#: Celery's embedded part of a message: nothing comes after this job
_ALONE: Final = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
#: characters of arguments in logs and in `celery inspect`
_SHOWN: Final = 1024


def task_message(
    task: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    task_id: str,
    header: JobHeader,
    **headers: Any,
) -> dict[str, Any]:
    """The message, for `new_job`. args and kwargs: what JSON can carry; headers: more of Celery's (`ignore_result`)."""
    return {
        "body": json.dumps(
            [list(args), dict(kwargs), _ALONE], ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ),
        "content-type": "application/x-tidegate+json",
        "content-encoding": "utf-8",
        "headers": {
            "task": task,
            "id": task_id,
            "root_id": task_id,
            "argsrepr": _shown(tuple(args)),
            "kwargsrepr": _shown(dict(kwargs)),
            **headers,
            HEADER: header.as_dict(),
        },
        "properties": {"correlation_id": task_id},
    }


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
