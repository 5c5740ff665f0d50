"""`tidegate demo`: the fleet's main job on real input, about a minute, judged by a ledger that the tasks write."""
