import dataclasses

import pytest

from electra_tf.command_line import UserError
from electra_tf.config.pretraining import ObjectiveConfig, PretrainingConfig
from electra_tf.modeling.masking import SpecialTokens
from electra_tf.objectives.registry import OBJECTIVES, build_objective

SPECIAL = SpecialTokens(pad=0, cls=2, sep=3, mask=4)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_registered_name_gives_its_objective(name):
    config = dataclasses.replace(PretrainingConfig(), objective=ObjectiveConfig(name=name))
    assert isinstance(build_objective(config, SPECIAL), OBJECTIVES[name])


def test_an_unknown_name_is_refused_with_the_known_ones():
    config = dataclasses.replace(PretrainingConfig(), objective=ObjectiveConfig(name="gan"))
    with pytest.raises(UserError, match="objective.name must be one of electra, mlm.*'gan'"):
        build_objective(config, SPECIAL)


def test_the_losses_weights_are_the_papers_unless_configured():
    config = PretrainingConfig()
    assert build_objective(config, SPECIAL).coefficients == {
        "generator_loss": 1.0, "discriminator_loss": 50.0}
