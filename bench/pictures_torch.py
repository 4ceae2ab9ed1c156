#!/usr/bin/env python3
"""What bench/pictures.c measures, with torchvision: ImageFolder, Resize, ToTensor, Normalize and a DataLoader.

    bench/pictures_torch.py FOLDER WORKERS     0 workers: in the process itself; one thread in each
"""
import os
import resource
import sys
import time

import torch
import torchvision
from torchvision import transforms

TO, PASSES = 64, 3


def processor_time():
    return sum(used.ru_utime + used.ru_stime
               for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main():
    folder, workers = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.Resize((TO, TO)), transforms.ToTensor(),
                                transforms.Normalize((0.5,) * 3, (0.25,) * 3)])
    data = torchvision.datasets.ImageFolder(folder, steps)
    for _ in range(PASSES):
        begin, processor = time.perf_counter(), processor_time()
        examples = sum(len(batch) for batch, _ in torch.utils.data.DataLoader(data, 64, num_workers=workers))
        print(os.path.basename(folder), "torchvision", workers, "%.0f %.0f" % (
            examples / (time.perf_counter() - begin), 1e6 * (processor_time() - processor) / examples))


main()
