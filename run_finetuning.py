r"""Fine-tunes a pre-trained ELECTRA on a task, scores it, and predicts with it.

    python run_finetuning.py --task=cola --data_dir=glue --init_checkpoint=runs/small \
        --model_dir=runs/cola
    python run_finetuning.py --mode=predict --model_dir=runs/cola --input=new.tsv --output=out.tsv

`--help` lists the flags. `electra-finetune` of the installed package is the same command.
"""

from electra_tf.finetuning.command import run

if __name__ == "__main__":
    run()
