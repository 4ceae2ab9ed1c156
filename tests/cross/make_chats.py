#!/usr/bin/env python3
"""Makes tests/models/data/chats.json: templates of chats as models have them in their tokenizer_config.json, and what
transformers makes of chats with them. Those of templates that ask for the day are written at several times, "seconds", of the
time zone ZONE.

    tests/cross/make_chats.py TRL [FILE]

TRL is the folder chat_templates of the package trl, which has the long templates as the models do. Made with transformers 5.24
and trl 1.16. Prints the hash of each template, which models/tokenizer/read/chat.c knows it by.
"""
import json
import os
import sys
import time
from datetime import datetime

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

CHATML = ("{% for message in messages %}SYSTEM{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
SYSTEM = "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nSAYS<|im_end|>\n' }}{% endif %}"


def chatml(says=None):
    return CHATML.replace("SYSTEM", SYSTEM.replace("SAYS", says) if says else "")


TEMPLATES = [
    ("chatml", "HuggingFaceTB/SmolLM-135M-Instruct", chatml()),
    ("chatml", "Qwen/Qwen1.5-0.5B-Chat", chatml("You are a helpful assistant")),
    ("chatml", "Qwen/Qwen2-0.5B-Instruct", chatml("You are a helpful assistant.")),
    ("chatml", "HuggingFaceTB/SmolLM2-135M-Instruct", chatml("You are a helpful AI assistant named SmolLM, trained by Hugging Face")),
    ("zephyr", "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
     "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n"
     "{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n"
     "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"
     "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"),
    ("llama-3", "meta-llama/Meta-Llama-3-8B-Instruct",
     "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + "
     "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
     "{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
     "{% endif %}"),
    ("mistral", "mistralai/Mistral-7B-Instruct-v0.2",
     "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
     "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
     "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
     "{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}"
     "{% endfor %}"),
]
LONG = [("chatml", "Qwen/Qwen2.5-0.5B-Instruct", "qwen2_5"), ("chatml", "Qwen/Qwen3-4B-Instruct-2507", "qwen3_instruct_2507"),
        ("qwen3", "Qwen/Qwen3-0.6B", "qwen3"), ("llama-3.1", "meta-llama/Llama-3.1-8B-Instruct", "llama3_1"),
        ("llama-3.2", "meta-llama/Llama-3.2-1B-Instruct", "llama3_2")]
SYSTEM_SAYS = ("system", "Be brief.")
TURNS = [("user", "  Hello, wörld?\n"), ("assistant", "\u00a0\x1cHi \U0001f600 there. \u2003"), ("user", "Bye\n\n")]
CHATS = [[SYSTEM_SAYS] + TURNS, TURNS, TURNS[:1], TURNS[:2]]
THOUGHTS = [("user", "1?"), ("assistant", "<think>\nwhy\n\n</think>\n\nyes"), ("user", "2?"),
            ("assistant", "a<think>b<think>\n\nhm </think>\n\n</think>\nno"), ("assistant", "\n\nplain"), ("assistant", "<think>open")]
THINKING = [THOUGHTS, THOUGHTS[:2], THOUGHTS[:4], THOUGHTS[:5], [("assistant", "\n</think>\n\n")], [("user", "a</think>b")] + THOUGHTS[1:2],
            THOUGHTS[:2] + [("user", "<tool_response>x</tool_response>"), ("assistant", "<think>w</think>z")], [("system", "s")]]
HEADED = [[("system", " \u2003s\n")], [("user", "1"), ("system", " s "), ("assistant", "")], [("assistant", "a")],
          [("system", ""), ("system", "s"), ("user", "2")]]
MORE = {"qwen3": THINKING, "llama-3.1": HEADED, "llama-3.2": HEADED}
ZONE = "<+14>-14"  # 14 hours before UTC, so that the days differ at noon
MONTH = 30 * 24 * 3600 + 43000


def hash_of(template):
    value = 0xcbf29ce484222325
    for byte in template.replace("\\n", "\n").encode():
        value = ((value ^ byte) * 0x100000001b3) & ((1 << 64) - 1)
    return value


def stop_clock(seconds):
    class Stopped(datetime):
        @classmethod
        def now(cls):
            return cls.fromtimestamp(seconds)

    chat_template_utils.datetime = Stopped


def write(tokenizer, chat, answer):
    messages = [{"role": role, "content": content} for role, content in chat]
    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=answer)
    except Exception:  # the template's raise_exception
        return None


def write_all(tokenizer, family):
    chats = []
    for chat in CHATS + MORE.get(family, []):
        for answer in (False, True):
            seconds = 1709164799 + len(chats) * MONTH  # of the last second of the 28th, then of the 29th of February 2024 in UTC
            stop_clock(seconds)
            entry = {"messages": chat, "answer": answer, "text": write(tokenizer, chat, answer)}
            chats.append(entry | {"seconds": seconds} if family in ("llama-3.1", "llama-3.2") else entry)
    return chats


def main():
    entries, long = [], []
    os.environ["TZ"] = ZONE
    time.tzset()
    for family, model, name in LONG:
        with open(os.path.join(sys.argv[1], name + ".jinja"), encoding="utf-8") as file:
            long.append((family, model, file.read().removesuffix("\n")))
    for family, model, template in TEMPLATES + long:
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE({"a": 0}, [])), bos_token="<s>", eos_token="</s>")
        tokenizer.chat_template = template
        entries.append({"family": family, "model": model, "template": template, "chats": write_all(tokenizer, family)})
        print(f"0x{hash_of(template):016x} {family} {model}")
    with open(sys.argv[2] if len(sys.argv) > 2 else "tests/models/data/chats.json", "w") as file:
        json.dump(entries, file, indent=1, ensure_ascii=False)
        file.write("\n")


main()
