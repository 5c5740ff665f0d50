"""The names by which beat and workers speak about writing the results of dead jobs."""

from __future__ import annotations

#: the task that does it, in a worker, where the user's code can be imported
TASK = "tidegate.finalize"

#: what the step of such a job begins with; the scripts know it too: who tells of a death has nobody to tell of its own
STEP = "finalize-"
