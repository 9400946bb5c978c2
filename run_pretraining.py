r"""Pre-trains ELECTRA on records that data_prep built, evaluates it, or shows samples.

    python run_pretraining.py --tpu=NAME --model_size=base
    python run_pretraining.py --data_dir=records --model_dir=runs/small --model_size=small \
        --recipe=short --train_batch_size=16 --num_train_steps=28000

The first command has the paper's settings, 766,000 steps of 256 rows; the paper's run took 4 days
on 16 TPU v3 and reached 85.1 on GLUE's dev sets (ELECTRA, table 1). It was not repeated here. The
second command takes two hours on two CPU cores with AVX-512 bfloat16. `--help` lists the flags.
"""

from electra_tf.pretraining.command import run

if __name__ == "__main__":
    run()
