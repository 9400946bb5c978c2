r"""Pre-trains ELECTRA on records that data_prep built, evaluates it, or shows samples.

    python run_pretraining.py --data_dir=records --model_dir=runs/small --model_size=small \
        --recipe=short --train_batch_size=16 --num_train_steps=28000

Hardware: two CPU cores with AVX-512 bfloat16. Time: two hours for 57 million tokens, 7,800
tokens/s. Expect a loss of 45 at the first step (ln V + 50 ln 2) and 27 after some hundred steps.
`--help` lists the flags. `electra-pretrain` of the installed package is the same command.
"""

from electra_tf.pretraining.command import run

if __name__ == "__main__":
    run()
