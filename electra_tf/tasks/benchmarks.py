"""Benchmarks besides GLUE: tasks as `--task` names them, and what their files are called."""

SQUAD = {"squad": "v1.1", "squad2": "v2.0"}
"""Task -> version in the names of the published files."""
MRQA = {"searchqa": ("SearchQA",), "triviaqa": ("TriviaQA-web", "TriviaQA"),
        "newsqa": ("NewsQA",), "naturalqs": ("NaturalQuestionsShort", "NaturalQuestions")}
"""Task -> what MRQA calls the set, in headers and file names; its download script renames two."""
QUESTIONS = (*SQUAD, *MRQA)
CONLL = {"chunk": ("train.txt", "test.txt"), "ner": ("train.txt", "valid.txt", "test.txt")}
"""Task -> files to train on and to score. CoNLL-2000 has no file for development: its test file is
what is scored."""
