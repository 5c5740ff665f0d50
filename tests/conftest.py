"""What holds for every test. Fixtures live in tests/harness/fixtures.py, markers and strictness in pyproject.toml.

Order is random (pytest-randomly prints its seed; `make test SEED=N` repeats it), warnings are errors, and a test that
needs more than two minutes fails with the stacks of all threads.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.harness.fixtures"]

# Other tests share the two cores, so a slow example is no finding. `ci` draws the same examples in each run.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, print_blob=True
)
settings.load_profile(os.environ.get("TIDEGATE_TEST_PROFILE", "local"))

# What a developer has set for a fleet of their own must not reach the tests.
for name in [
    name for name in os.environ if name.startswith("TIDEGATE_") and not name.startswith("TIDEGATE_TEST_")
]:
    del os.environ[name]
