"""Writes resize_pillow.h: what Pillow makes of pictures in other sizes, as a hash of the bytes.

    python3 resize_pillow.py > resize_pillow.h     (made with Pillow 13.0.0)

Pictures are of bytes that a linear congruential generator draws; test_image_resize.c has the formula, too.
"""
import PIL
from PIL import Image

# (width, height) of a picture and of the result. Rows come first where more than twice as many rows as columns are lost.
SIZES = [
    ((640, 480), (224, 224)), ((480, 640), (224, 224)), ((500, 375), (224, 224)), ((375, 500), (224, 224)),
    ((300, 400), (224, 224)), ((256, 384), (224, 224)), ((360, 640), (224, 224)),  # rows first
    ((500, 375), (341, 256)), ((375, 500), (256, 341)), ((375, 500), (256, 256)), ((96, 96), (224, 224)),
    ((60, 100), (224, 224)), ((100, 300), (224, 224)), ((300, 100), (224, 224)),
    ((124, 324), (74, 224)), ((124, 325), (74, 224)),  # twice as many, and one more
    ((224, 300), (224, 224)), ((300, 224), (224, 224)), ((30, 500), (40, 100)), ((1, 9), (3, 2)),
]
FILTERS = [("BILINEAR", Image.BILINEAR), ("BICUBIC", Image.BICUBIC)]
MODES = ["", "L", "", "RGB"]


def draw(size, channels):
    state, drawn = 1, bytearray()
    for _ in range(size[0] * size[1] * channels):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        drawn.append(state >> 24)
    return Image.frombytes(MODES[channels], size, bytes(drawn))


def hash_of(data):
    """FNV-1a of 32 bits."""
    result = 2166136261
    for byte in data:
        result = (result ^ byte) * 16777619 & 0xFFFFFFFF
    return result


print(f"/* Made by resize_pillow.py with Pillow {PIL.__version__}. */")
print("static const struct {\n    sgm__image_filter filter;\n    int32_t channels, size[2], wanted[2];\n    uint32_t hash;\n"
      "} pillow_results[] = {")
for channels in 1, 3:
    for size, wanted in SIZES if channels == 3 else SIZES[::4]:
        picture = draw(size, channels)
        for name, kind in FILTERS:
            result = hash_of(picture.resize(wanted, kind).tobytes())
            print(f"    {{SGM__IMAGE_{name}, {channels}, {{{size[0]}, {size[1]}}}, {{{wanted[0]}, {wanted[1]}}}, 0x{result:08x}}},")
print("};")
