"""A student of a Python program learns from a teacher, and from texts without labels."""

import electra_tf
from tests.support.refusals import refused

TEXTS, LABELS = ["the chef ate", "the piano", "first text", "the meal"], ["a", "b", "b", "a"]


def test_a_teacher_labels_further_texts(directory, tmp_path, capsys):
    arguments = {"init_checkpoint": directory, "dev": (TEXTS, LABELS), "num_train_epochs": 1.0,
                 "train_batch_size": 8}
    electra_tf.finetune("classification", TEXTS, LABELS, model_dir=tmp_path / "teacher",
                        **arguments)
    capsys.readouterr()
    electra_tf.finetune("classification", TEXTS, LABELS[::-1], teacher=tmp_path / "teacher",
                        unlabelled=["the chef"], distillation_weight=0.9, **arguments)
    printed = capsys.readouterr().out
    assert "train 4 and 1 unlabelled as 5 rows" in printed
    assert f"\nteacher  {tmp_path / 'teacher'}, step 1: labels 5 rows; dev: accuracy" in printed
    for needy in ({"distillation_weight": 0.9}, {"unlabelled": ["the chef"]}):
        with refused(f"{min(needy)} needs"):
            electra_tf.finetune("classification", TEXTS, LABELS, **arguments, **needy)
