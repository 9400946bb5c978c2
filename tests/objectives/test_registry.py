import pytest

from electra_tf.config.objectives import OBJECTIVES, measures, objective_class, panels
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform.errors import UserError
from tests.support.golden_batch import CONTEXT


def config(name):
    return override(PretrainingConfig(), {"objective.name": name})


def test_a_registered_name_gives_its_objective_whose_losses_are_drawn():
    for name, settings in OBJECTIVES.items():
        objective = objective_class(name)(config(name), CONTEXT)
        assert type(objective) is objective_class(name)
        assert type(objective.config.objective) is type(settings)
        assert settings.name == name
        for loss in objective.coefficients:
            assert measures()[loss].unit and loss in panels()[measures()[loss].panel]


def test_the_losses_weights_are_the_papers_unless_configured():
    assert objective_class("electra")(PretrainingConfig(), CONTEXT).coefficients == {
        "generator_loss": 1.0, "discriminator_loss": 50.0}
    changed = override(PretrainingConfig(), {"objective.discriminator_loss_weight": 10})
    assert objective_class("electra")(changed, CONTEXT).coefficients["discriminator_loss"] == 10.0


def test_another_objectives_setting_is_refused_by_name():
    assert "objective.discriminator_loss_weight" not in flatten(config("mlm"))
    with pytest.raises(UserError, match="objective.discriminator_loss_weight isn't a setting of "
                       r"this run: it belongs to objective.name=electra, electra_15, [\w, ]+, "
                       r"and this one is mlm"):
        override(config("mlm"), {"objective.discriminator_loss_weight": 5})
