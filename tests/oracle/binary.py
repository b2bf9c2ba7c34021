"""The teratron binary as the oracle tests ask it: JSON in, JSON out."""
import json
import subprocess
import sys


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


class Binary:
    def __init__(self, path, flags):
        self.path, self.flags = path, flags

    def lines(self, command, objects):
        """One JSON value for each of `objects`: ids of texts (encode), or texts of ids (decode)."""
        text = "".join(json.dumps(o) + "\n" for o in objects)
        done = subprocess.run([self.path, "tokenizer", command, "--json", *self.flags], input=text.encode(),
                              stdout=subprocess.PIPE, check=True)
        answers = [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]
        check(len(answers) == len(objects), f"{command}: {len(answers)} answers to {len(objects)} inputs")
        return answers
