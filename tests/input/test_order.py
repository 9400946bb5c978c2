import pytest

from electra_tf.input.order import ShardSize, windows

SHARDS = [ShardSize(f"s{index}", count) for index, count in enumerate([30, 20, 36, 7])]
EPOCH = 93


def positions(**changes) -> list[tuple]:
    """The stream as (shards of the window, shuffle seed, row), one entry per example."""
    arguments = {"seed": 1, "window_examples": 40, "start": 0, "stop": EPOCH} | changes
    return [(window.shards, window.seed, row) for window in windows(SHARDS, **arguments)
            for row in range(window.start, window.stop)]


def test_an_epoch_holds_every_shard_once():
    seen = [window for window in windows(SHARDS, seed=1, window_examples=40, start=0, stop=EPOCH)]
    assert sorted(name for window in seen for name in window.shards) == ["s0", "s1", "s2", "s3"]
    assert sum(window.examples for window in seen) == EPOCH
    assert all((window.start, window.stop) == (0, window.examples) for window in seen)


@pytest.mark.parametrize("start", [0, 1, 40, 92, 93, 94, 200, 5 * EPOCH + 17])
def test_the_stream_can_be_entered_anywhere(start):
    whole = positions(stop=6 * EPOCH)
    assert positions(start=start, stop=6 * EPOCH) == whole[start:]


def test_a_stop_cuts_the_stream_short():
    assert positions(start=10, stop=50) == positions(stop=2 * EPOCH)[10:50]


def test_epochs_and_seeds_differ():
    first, second = positions(), positions(start=EPOCH, stop=2 * EPOCH)
    assert first != second
    assert positions(seed=2) != first


def test_a_window_holds_whole_shards_up_to_its_size():
    sizes = dict((shard.name, shard.examples) for shard in SHARDS)
    for window in windows(SHARDS, seed=3, window_examples=25, start=0, stop=EPOCH):
        assert window.examples - sizes[window.shards[-1]] < 25
    assert len(list(windows(SHARDS, seed=3, window_examples=EPOCH, start=0, stop=EPOCH))) == 1


def test_an_empty_dataset_is_refused():
    with pytest.raises(ValueError, match="no examples"):
        list(windows([], seed=1, window_examples=1, start=0, stop=1))
