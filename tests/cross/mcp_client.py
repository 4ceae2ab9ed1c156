#!/usr/bin/env python3
"""Talks to `sigma mcp` with the public client of the Model Context Protocol, and checks what comes back.

    python3 -m venv venv && venv/bin/pip install mcp
    venv/bin/python tests/cross/mcp_client.py build/release/sigma

A check by hand, against a client that was written by others; nothing else needs it. It trains iris flowers in a folder of
its own for a moment. The client itself checks every message against the schema of the protocol, and every structured
result against the schema of its tool.
"""
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

SIGMA = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release/sigma")
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
checks = {True: 0, False: 0}


def check(what, good, shown=None):
    checks[bool(good)] += 1
    print("%-4s %s" % ("ok" if good else "BAD", what))
    if not good:
        print("    ", shown)


def text_of(result):
    return result.content[0].text


async def look(folder, mode):
    server = StdioServerParameters(command=SIGMA, args=["mcp", folder])
    async with Client(stdio_client(server), mode=mode) as client:
        check("%s: connects, version %s" % (mode, client.protocol_version), True)
        tools = (await client.list_tools()).tools
        names = [tool.name for tool in tools]
        check("%s: lists %d tools, all for reading" % (mode, len(names)),
              "get_curves" in names and "set_value" not in names and all(t.annotations.read_only_hint for t in tools), names)
        runs = await client.call_tool("list_runs", {})
        check("%s: lists runs" % mode, {r["run"] for r in runs.structured_content["runs"]} == {"live"}, runs)
        curves = await client.call_tool("get_curves", {"run": "live", "points": 10})
        check("%s: reads curves" % mode, len(curves.structured_content["curves"][0]["x"]) == 10, curves)
        refused = await client.call_tool("set_value", {"run": "live", "identifier": "optimiser.learning_rate", "value": 0.5,
                                                       "reason": "not my role"})
        check("%s: is refused outside of its role" % mode, refused.is_error and "--role steer" in text_of(refused), refused)
        resources = (await client.list_resources()).resources
        config = await client.read_resource(str(resources[0].uri))
        check("%s: reads a resource" % mode, "network:" in config.contents[0].text, config)
        check("%s: has templates" % mode, len((await client.list_resource_templates()).resource_templates) == 4)
        prompts = (await client.list_prompts()).prompts
        prompt = await client.get_prompt("review_run", {"run": "live"})
        check("%s: has prompts" % mode, len(prompts) == 3 and "'live'" in prompt.messages[0].content.text, prompt)
        for name, arguments in (("get_run", {"run": "live"}), ("get_layers", {"run": "live"}), ("list_rules", {"run": "live"}),
                                ("list_settings", {"run": "live"}), ("read_log", {"run": "live"}),
                                ("list_changes", {"run": "live"}), ("list_interventions", {"run": "live"}),
                                ("compare_runs", {"runs": ["*"]}), ("get_values", {"run": "live", "identifier": "epoch"})):
            result = await client.call_tool(name, arguments)
            check("%s: %s" % (mode, name), not result.is_error, result)
        try:
            await client.call_tool("no_such_tool", {})
            check("%s: an unknown tool is an error" % mode, False)
        except Exception as error:  # the client has an exception of its own for errors of the protocol
            check("%s: an unknown tool is an error" % mode, "there is no tool" in str(error), error)


async def steer(folder):
    told = []

    async def progress(done, total, message):
        told.append(message)

    server = StdioServerParameters(command=SIGMA, args=["mcp", folder, "--role", "steer", "--by", "crosscheck"])
    async with Client(stdio_client(server)) as client:
        change = {"run": "live", "identifier": "optimiser.learning_rate", "value": 0.002, "reason": "the loss jumps"}
        dry = await client.call_tool("set_value", dict(change, dry_run=True))
        check("steer: tells what would change", not dry.is_error, dry)
        value = await client.call_tool("get_values", {"run": "live", "identifier": "optimiser.learning_rate"})
        check("steer: a dry run changes nothing", value.structured_content["values"][0]["value"] == 0.01, value)
        done = await client.call_tool("set_value", change)
        check("steer: sets a learning rate", not done.is_error, done)
        value = await client.call_tool("get_values", {"run": "live", "identifier": "optimiser.learning_rate"})
        check("steer: reads it back", value.structured_content["values"][0]["value"] == 0.002, value)
        wait = await client.call_tool("wait_for_run", {"run": "live", "iteration": 10**12, "seconds": 3},
                                      progress_callback=progress)
        check("steer: hears of progress", not wait.structured_content["reached"] and len(told) >= 1, told)
        list_ = await client.call_tool("list_interventions", {"run": "live"})
        check("steer: the journal says who and why",
              any(i["who"] == "mcp:crosscheck" and i.get("reason") == "the loss jumps"
                  for i in list_.structured_content["interventions"]), list_)
        refused = await client.call_tool("replay_run", {"run": "live", "reason": "not my role"})
        check("steer: is refused outside of its role", refused.is_error and "--role admin" in text_of(refused), refused)
        stopped = await client.call_tool("stop_run", {"run": "live", "reason": "enough"})
        check("steer: stops the training", not stopped.is_error, stopped)
        ended = await client.call_tool("wait_for_run", {"run": "live", "state": "ended"})
        check("steer: the training has ended", ended.structured_content["ended"], ended)
    with open(os.path.join(folder, "live", "journal.jsonl"), encoding="utf-8") as journal:
        lines = [json.loads(line) for line in journal]
    check("the line of the journal", any(line.get("who") == "mcp:crosscheck" and line.get("reason") == "the loss jumps" and
                                         line.get("new") == 0.002 for line in lines), lines[-3:])


def main():
    with tempfile.TemporaryDirectory() as folder:
        training = subprocess.Popen([SIGMA, "train", os.path.join(EXAMPLES, "iris.yaml"), "epochs=100000000",
                                     "checkpoint_every=1000", "folder=" + os.path.join(folder, "live"), "--quiet", "--no-keys"],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            time.sleep(2)
            for mode in ("auto", "legacy"):
                asyncio.run(look(folder, mode))
            asyncio.run(steer(folder))
        finally:
            training.terminate()
            training.wait()
    print("%d checks passed, %d failed" % (checks[True], checks[False]))
    return 1 if checks[False] else 0


if __name__ == "__main__":
    sys.exit(main())
