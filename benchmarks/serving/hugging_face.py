"""Worker: `ElectraForSequenceClassification` in PyTorch behind the fast tokenizer.

Runs in the peers' environment.
"""

import torch
import transformers
from transformers import AutoTokenizer, ElectraForSequenceClassification

from benchmarks.serving.workload import MAX_LENGTH, Prepared, Workload, serve


def prepare(workload: Workload) -> Prepared:
    """Loads model and tokenizer."""
    torch.set_num_threads(workload.threads)
    tokenizer = AutoTokenizer.from_pretrained(workload.model)
    if not tokenizer.is_fast:
        raise TypeError("AutoTokenizer gave the slow tokenizer")
    model = ElectraForSequenceClassification.from_pretrained(
        workload.model, attn_implementation="sdpa").eval()
    half = workload.precision == "bfloat16"
    if half and not workload.autocast:
        model = model.to(torch.bfloat16)
    # Not a context around each call, which would turn the weights into bfloat16 every time.
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_enabled("cpu", workload.autocast)
    names = model.config.id2label

    def rows(texts: list[str]) -> transformers.BatchEncoding:
        return tokenizer(texts, padding=True, truncation=True, max_length=MAX_LENGTH,
                         return_tensors="pt")

    def answer(texts: list[str]) -> tuple[list[str], list[list[float]]]:
        with torch.inference_mode():
            logits = model(**rows(texts)).logits.float()
            shares = torch.softmax(logits, dim=-1).numpy()
        return [names[index] for index in shares.argmax(axis=-1).tolist()], shares.tolist()

    how = f", {'autocast' if workload.autocast else 'converted'}" if half else ""
    return Prepared(
        label=f"{workload.precision}{how}",
        versions={"PyTorch": torch.__version__, "transformers": transformers.__version__},
        answer=answer,
        tokens=lambda texts: rows(texts)["attention_mask"].sum(dim=1).tolist())


if __name__ == "__main__":
    serve(prepare)
