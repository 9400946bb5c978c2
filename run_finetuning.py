r"""Fine-tunes a pre-trained ELECTRA on a task, scores it, and predicts with it.

    python run_finetuning.py --task=squad
    python run_finetuning.py --task=cola --data_dir=glue --init_checkpoint=runs/small \
        --model_dir=runs/cola
    python run_finetuning.py --mode=predict --model_dir=runs/cola --input=new.tsv --output=out.tsv

The first command fine-tunes google/electra-small-discriminator and is meant for a GPU. Google's
code reports an exact match of 75.8 on dev for this encoder; the command was not measured here. The
second takes 1.3 minutes a trial on a CPU core with AVX-512 bfloat16; expect a Matthews correlation
of 15 for an encoder of 4 layers after 57 million tokens. `--help` lists the flags.
"""

from electra_tf.finetuning.command import run

if __name__ == "__main__":
    run()
