import pytest

from electra_tf.reporting.collapse import CollapseWatch


def trained(step: int, deviation: float, mean: float = -2.0) -> dict:
    return {"kind": "train", "step": step, "discriminator_logit": mean,
            "discriminator_logit_squared": mean**2 + deviation**2}


def evaluated(step: int, auc: float) -> dict:
    return {"kind": "eval", "step": step, "discriminator_auc": auc}


def test_logits_that_became_equal_are_warned_of_once_with_a_way_out():
    watch = CollapseWatch(warmup_steps=0)
    assert not any(watch.take(trained(step, 1e-3)) for step in range(10, 100, 10))
    assert watch.take(trained(100, 0.5)) == ""
    assert watch.take(trained(200, 0.006)) == ""
    said = watch.take(trained(300, 0.004))
    assert "collapsed: at step 300" in said and "--learning_rate" in said
    assert watch.take(trained(400, 0.001)) == ""


@pytest.mark.parametrize(("aucs", "told"), [
    ({0: 0.50, 500: 0.505, 1000: 0.495}, True), ({0: 0.50, 500: 0.52, 1000: 0.50}, False),
    ({0: 0.50, 500: 0.50}, False), ({0: float("nan"), 1000: float("nan")}, False)])
def test_chance_is_told_of_after_a_thousand_steps(aucs, told):
    watch = CollapseWatch(warmup_steps=0)
    said = [watch.take(evaluated(step, auc)) for step, auc in aucs.items()]
    assert bool(said[-1]) is told
    assert not any(said[:-1])


def test_the_warm_up_doesnt_count_nor_a_run_without_discriminator():
    watch = CollapseWatch(warmup_steps=1500)
    assert watch.take({"kind": "eval", "step": 5000, "generator_loss": 3.0}) == ""
    assert not any(watch.take(evaluated(step, 0.5)) for step in (0, 500, 1000, 1500, 2000))
    assert "guesses" in watch.take(evaluated(2500, 0.5))
