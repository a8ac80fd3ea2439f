"""From a `config.json` to an Architecture: where it is found, how it is read, one small file per family.

Reading order: `locate` finds the config, `fields` reads it with types, `family` is the registry, `decoder` is the
block that most families share. A new family is one file and one line below.
"""

from catenary.configs import gpt2 as gpt2
from catenary.configs import llama as llama
from catenary.configs import mistral as mistral
from catenary.configs import qwen2 as qwen2
