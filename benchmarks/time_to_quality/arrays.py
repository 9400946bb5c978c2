"""Names of what is handed to the peers and back. No imports: their environment reads this too."""

TRAIN = "train.npy"
"""int32 [S, B, L]."""
HELD_OUT = "held_out.npz"
IDS, VALID = "ids", "valid"
"""int32 and bool [batches, B, L]; beside them the corrupted ids, by kind."""
OWN = "own"
"""The kind of corruption that a run's own generator makes."""
