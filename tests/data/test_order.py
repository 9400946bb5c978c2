"""Every example once an epoch, well mixed, in an order that can be entered anywhere."""

import pytest

from electra_tf.data.records import SHARDS_MIXED, part_of, shuffle_buffers

SIZES = [30, 20, 36, 7]
EPOCH = 93


def positions(**changes) -> list[tuple]:
    """The stream as (part of the shards, shuffle seed, row), one entry per row."""
    arguments = {"seed": 1, "buffer_examples": 40, "start": 0, "stop": EPOCH} | changes
    return [(buffer.part, buffer.seed, row) for buffer in shuffle_buffers(SIZES, **arguments)
            for row in range(buffer.start, buffer.stop)]


def examples_of(buffer) -> list[tuple[int, int]]:
    """(shard, number) of every example in a buffer."""
    return [(shard, number) for shard in buffer.shards
            for number in range(*part_of(SIZES[shard], buffer.part, buffer.parts))]


@pytest.mark.parametrize("buffer", [1, 7, 40, 92, 93, 1000])
def test_an_epoch_holds_every_example_once(buffer):
    seen = list(shuffle_buffers(SIZES, seed=1, buffer_examples=buffer, start=0, stop=EPOCH))
    assert sorted(example for buffer in seen for example in examples_of(buffer)) == sorted(
        (shard, number) for shard, size in enumerate(SIZES) for number in range(size))
    assert all((buffer.start, buffer.stop) == (0, buffer.size) for buffer in seen)
    assert all(buffer.size == len(examples_of(buffer)) for buffer in seen)


@pytest.mark.parametrize("start", [0, 1, 40, 92, 93, 94, 200, 5 * EPOCH + 17])
def test_the_stream_can_be_entered_anywhere_and_differs_by_epoch_and_seed(start):
    whole = positions(stop=6 * EPOCH)
    assert positions(start=start, stop=6 * EPOCH) == whole[start:]
    assert len({str(part) for part in (
        whole[:EPOCH], whole[EPOCH:2 * EPOCH], positions(seed=2))}) == 3


def test_a_buffer_takes_the_same_part_of_every_shard():
    """93 examples in buffers of 31: thirds of 30, 20, 36 and 7."""
    seen = list(shuffle_buffers(SIZES, seed=3, buffer_examples=31, start=0, stop=EPOCH))
    assert [[sum(one == shard for one, _ in examples_of(buffer)) for shard in range(4)]
            for buffer in seen] == [[10, 6, 12, 2], [10, 7, 12, 2], [10, 7, 12, 3]]
    whole = shuffle_buffers(SIZES, seed=3, buffer_examples=EPOCH, start=0, stop=EPOCH)
    assert len(list(whole)) == 1


@pytest.mark.parametrize(("count", "size", "buffer", "groups"), [
    (2 * SHARDS_MIXED, 100, 1000, [64, 64]),
    (2 * SHARDS_MIXED - 1, 100, 1000, [127]),
    (3 * SHARDS_MIXED + 2, 100, 1000, [64, 65, 65]),
    (1000, 10, 2000, [200] * 5),  # 64 wouldn't fill a buffer.
    (5, 100, 1000, [5]),
])
def test_many_shards_are_mixed_so_many_at_a_time(count, size, buffer, groups):
    seen = list(shuffle_buffers(
        [size] * count, seed=1, buffer_examples=buffer, start=0, stop=count * size))
    assert [len(shards) for shards in dict.fromkeys(buffer.shards for buffer in seen)] == groups
    assert max(buffer.size for buffer in seen) <= buffer + max(groups)
