#!/usr/bin/env python3
"""Numbers for test_sounds.c, by the formulas of sigma/sound.h in double precision, without a fast transform.

The sound is what the test writes: 16 bits of 0.5 sin(2 pi 440 i / 8000) + 0.25 sin(2 pi 1234 i / 8000), 400
samples. Printed: some numbers of its log-mel spectrogram (8 mels, window 50, hop 32, transform of 64), and of
its samples at 12000 and 5000 Hz. librosa 0.11.0's melspectrogram (htk=True, norm=None, pad_mode="constant") differs from
this one by 1.5e-7 dB at most."""
import numpy as np

RATE, COUNT, MELS, WINDOW, HOP, SIZE = 8000, 400, 8, 50, 32, 64
i = np.arange(COUNT)
tone = 0.5 * np.sin(2 * np.pi * 440 * i / RATE) + 0.25 * np.sin(2 * np.pi * 1234 * i / RATE)
x = np.rint(tone * 32767) / 32768


def log_mel():
    window = np.zeros(SIZE)
    left = (SIZE - WINDOW) // 2
    window[left:left + WINDOW] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    padded = np.concatenate([np.zeros(SIZE // 2), x, np.zeros(SIZE // 2)])
    fourier = np.exp(-2j * np.pi * np.outer(np.arange(SIZE // 2 + 1), np.arange(SIZE)) / SIZE)
    hertz = np.arange(SIZE // 2 + 1) * RATE / SIZE
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, top, MELS + 2) / 2595) - 1)
    bands = np.array([np.maximum(0, np.minimum((hertz - a) / (b - a), (c - hertz) / (c - b)))
                      for a, b, c in zip(corners, corners[1:], corners[2:])])
    frames = 1 + COUNT // HOP
    power = np.array([np.abs(fourier @ (padded[HOP * k:HOP * k + SIZE] * window)) ** 2 for k in range(frames)]).T
    return 10 * np.log10(np.maximum(bands @ power, 1e-10))


def resample(rate):
    base = 0.99 * min(RATE, rate)
    out = []
    for n in range(int(np.ceil(COUNT * rate / RATE))):
        u = (i / RATE - n / rate) * base
        out.append(np.sum(np.where(np.abs(u) < 6, x * np.sinc(u) * np.cos(np.pi * u / 12) ** 2, 0)) * base / RATE)
    return np.array(out)


spectrogram = log_mel()
print(spectrogram.shape, "mean %.9f deviation %.9f" % (spectrogram.mean(), spectrogram.std()))
for band, frame in ((0, 0), (0, 6), (1, 3), (3, 12), (5, 7), (7, 0), (7, 12)):
    print("{%d, %d, %.9f}," % (band, frame, spectrogram[band, frame]))
for rate in (12000, 5000):
    y = resample(rate)
    print(rate, len(y), ", ".join("{%d, %.9f}" % (n, y[n]) for n in (0, 1, 7, 100, len(y) - 1)))
