#!/usr/bin/env python3
"""Dumps images: frames with detected boxes and points, a color map of numbers, a mask over a frame.

    python image_dump.py dumps               writes dumps/step-00000000/*.png

marey draws them; OpenCV and Pillow are not needed.
"""

from __future__ import annotations

import sys

import numpy as np

from marey import TensorDumper

HEIGHT, WIDTH = 180, 320
GREEN, WHITE, PINK = 0x00FF66, 0xFFFFFF, 0xFF00AA
Y, X = np.mgrid[0:HEIGHT, 0:WIDTH]


def frame(balls: list[tuple[int, int, int, tuple[int, int, int]]]) -> np.ndarray:
    """A sky, a meadow, and balls: x, y, radius, colour."""
    sky = np.stack([120 + 60 * Y / HEIGHT, 160 + 50 * Y / HEIGHT, 230 - 30 * Y / HEIGHT], -1)
    meadow = np.stack([80 + 0 * Y, 110 + 20 * np.sin(X / 9), 70 + 0 * Y], -1)
    pixels = np.where((Y < 110)[..., None], sky, meadow)
    for x, y, radius, color in balls:
        ball = (X - x) ** 2 + (Y - y) ** 2 < radius**2
        pixels[ball] = np.array(color) * (0.6 + 0.4 * (y + radius - Y[ball]) / (2 * radius))[:, None]
    return pixels.clip(0, 255).astype(np.uint8)


def main() -> None:
    red, blue, yellow = (200, 60, 50), (60, 80, 200), (220, 190, 60)
    scenes = [
        [(70, 100, 26, red), (180, 120, 20, blue), (260, 95, 32, yellow)],
        [(100, 100, 26, red), (150, 120, 20, blue), (260, 95, 32, yellow)],
    ]
    frames = np.stack([frame(balls) for balls in scenes])
    found = [(i, x, y, r) for i, balls in enumerate(scenes) for x, y, r, _ in balls]
    attention = np.exp(-((X - 180) ** 2 + (Y - 120) ** 2) / 1500) + 0.6 * np.exp(
        -((X - 70) ** 2 + (Y - 100) ** 2) / 900
    )
    attention[:6, :6] = np.nan  # shows as magenta

    dumper = TensorDumper(sys.argv[1] if len(sys.argv) > 1 else "dumps")
    dumper.add_tensor_data(
        "frames",
        frames,
        TensorDumper.Type.IMAGE_RGB,
        image={
            "range": (0, 255),
            "boxes": [(x - r, y - r, x + r, y + r, i, GREEN) for i, x, y, r in found],
            "points": [(x, y, i, WHITE) for i, x, y, _ in found],
            "line_width": 2,
        },
    )
    dumper.add_tensor_data("attention", attention, TensorDumper.Type.IMAGE_I, image={"map": "viridis"})
    over = {"range": (0, 255), "mask": attention > 0.5, "mask_color": PINK}
    dumper.add_tensor_data("attended", frames[0], TensorDumper.Type.IMAGE_RGB, image=over)
    dumper.dump()
    dumper.wait()
    print(f"pictures are in {dumper.dump_dir}/step-00000000")


if __name__ == "__main__":
    main()
