"""A workload small enough to count by hand, and one that a real worker runs in seconds."""

from benchmarks.pretraining.workload import Encoder, Workload

BY_HAND = Workload(
    case="toy", batch=2, length=8, predictions=3, vocab_size=50, threads=1,
    discriminator=Encoder(embedding_size=4, hidden_size=6, num_layers=2, num_heads=2,
                          intermediate_size=10),
    generator=Encoder(embedding_size=4, hidden_size=4, num_layers=1, num_heads=1,
                      intermediate_size=7))
