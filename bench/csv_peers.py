#!/usr/bin/env python3
"""Time to read a text table with other programs, for comparison; bench/csv.sh runs it.

    csv_peers.py pandas|pyarrow FILE THREADS     prints seconds, seconds of the processors, largest memory in MB
    csv_peers.py --version pandas|pyarrow        the version; exit code 77 where it is not installed

pandas reads with its C engine, which has one thread. Both give a table in memory, with types found in the text.
"""
import resource
import sys
import time


def seconds_of_processors():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def read_pandas(path, threads):
    import pandas
    return lambda: pandas.read_csv(path, engine="c")


def read_pyarrow(path, threads):
    import pyarrow
    from pyarrow import csv
    pyarrow.set_cpu_count(threads)
    options = csv.ReadOptions(use_threads=threads > 1)
    return lambda: csv.read_csv(path, read_options=options)


READERS = {"pandas": read_pandas, "pyarrow": read_pyarrow}


def main():
    if sys.argv[1] == "--version":
        try:
            print(__import__(sys.argv[2]).__version__)
        except ImportError:
            sys.exit(77)
        return
    program, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    read = READERS[program](path, threads)
    began, processors = time.perf_counter(), seconds_of_processors()
    table = read()
    seconds = time.perf_counter() - began
    assert len(table) > 0
    print("%.4f %.4f %.1f" % (seconds, seconds_of_processors() - processors,
                              resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


main()
