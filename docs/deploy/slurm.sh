#!/usr/bin/env bash
# Pre-trains on several machines of a Slurm cluster, one process each, with all GPUs of the machine:
#
#     sbatch --nodes=4 docs/deploy/slurm.sh --data_dir=/shared/records --model_dir=/shared/run \
#         --model_size=base
#
# Submit it from the top of the repository, on a file system that all machines have mounted, after
# `make install`. Arguments after the name are passed to run_pretraining.py. Slurm requeues a job that loses a
# machine, and the same command continues from the newest checkpoint.
#SBATCH --job-name=electra
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

PORT=${PORT:-2222}
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/.*/\"&:$PORT\"/" | paste -sd,)
export hosts

# shellcheck disable=SC2016  # Expanded by each task, which knows its number.
exec srun --kill-on-bad-exit=1 bash -c '
  TF_CONFIG="{\"cluster\": {\"worker\": [$hosts]},
              \"task\": {\"type\": \"worker\", \"index\": $SLURM_PROCID}}"
  export TF_CONFIG
  exec .venv/bin/python run_pretraining.py "$@"' electra "$@"
