"""From a `config.json` to an Architecture: where it is found, how it is read, one small file per family.

Reading order: `locate` finds the config, `fields` reads it with types, `family` is the registry, `decoder` is the
block that most families share. A new family is one file and one line below.
"""

from catenary.configs import afmoe as afmoe
from catenary.configs import bamba as bamba
from catenary.configs import bart as bart
from catenary.configs import beam as beam
from catenary.configs import bert as bert
from catenary.configs import biogpt as biogpt
from catenary.configs import bloom as bloom
from catenary.configs import cohere as cohere
from catenary.configs import cohere2_moe as cohere2_moe
from catenary.configs import ctrl as ctrl
from catenary.configs import dbrx as dbrx
from catenary.configs import deepseek as deepseek
from catenary.configs import ernie_moe as ernie_moe
from catenary.configs import falcon as falcon
from catenary.configs import gemma as gemma
from catenary.configs import gemma4 as gemma4
from catenary.configs import glm as glm
from catenary.configs import glm_moe as glm_moe
from catenary.configs import gpt2 as gpt2
from catenary.configs import gpt_bigcode as gpt_bigcode
from catenary.configs import gpt_neo as gpt_neo
from catenary.configs import gpt_neox as gpt_neox
from catenary.configs import gpt_oss as gpt_oss
from catenary.configs import gptj as gptj
from catenary.configs import granite as granite
from catenary.configs import granite_moe as granite_moe
from catenary.configs import inner_norm as inner_norm
from catenary.configs import kolibri as kolibri
from catenary.configs import laguna as laguna
from catenary.configs import layer_norm as layer_norm
from catenary.configs import lfm2 as lfm2
from catenary.configs import llama as llama
from catenary.configs import llama4 as llama4
from catenary.configs import mamba as mamba
from catenary.configs import mimo as mimo
from catenary.configs import minicpm3 as minicpm3
from catenary.configs import minimax as minimax
from catenary.configs import mistral as mistral
from catenary.configs import mixtral as mixtral
from catenary.configs import modernbert_decoder as modernbert_decoder
from catenary.configs import moshi as moshi
from catenary.configs import mpt as mpt
from catenary.configs import nanochat as nanochat
from catenary.configs import nemotron_h as nemotron_h
from catenary.configs import olmo as olmo
from catenary.configs import olmoe as olmoe
from catenary.configs import openai_gpt as openai_gpt
from catenary.configs import opt as opt
from catenary.configs import persimmon as persimmon
from catenary.configs import qwen2 as qwen2
from catenary.configs import qwen_moe as qwen_moe
from catenary.configs import recurrent_gemma as recurrent_gemma
from catenary.configs import xglm as xglm
from catenary.configs import xlm as xlm
