"""Smaller PNG files without loss: browsers write them quickly rather than tightly, and with an opaque alpha channel."""

import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def tightened(png: bytes) -> bytes:
    """The same opaque picture as RGB, every row with the filter that leaves the smallest numbers; never a larger file."""
    width, height, pixels = _decoded(png)
    if (pixels[..., 3] < 255).any():
        return png
    x = pixels[..., :3].astype(np.int16)
    left, above, corner = (np.zeros_like(x) for _ in range(3))
    left[:, 1:], above[1:], corner[1:, 1:] = x[:, :-1], x[:-1], x[:-1, :-1]
    guess = left + above - corner
    d_left, d_above, d_corner = (np.abs(guess - t) for t in (left, above, corner))
    nearest = np.where(d_above <= d_corner, above, corner)
    paeth = np.where((d_left <= d_above) & (d_left <= d_corner), left, nearest)
    filtered = [(x - t) & 255 for t in (np.zeros_like(x), left, above, (left + above) // 2, paeth)]  # filters 0 … 4
    rows = np.stack([t.astype(np.uint8).reshape(height, -1) for t in filtered])
    best = np.abs(rows.astype(np.int8).astype(np.int64)).sum(axis=2).argmin(axis=0)
    chosen = np.concatenate([best[:, None].astype(np.uint8), rows[best, np.arange(height)]], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(chosen.tobytes(), 9)), (b"IEND", b""))
    written = SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return min(written, png, key=len)


def _decoded(png: bytes) -> tuple[int, int, np.ndarray]:
    """(width, height, pixels [height, width, RGBA]) of a PNG with alpha and with filters 0 to 2, as Chromium writes it."""
    at, compressed, header = len(SIGNATURE), b"", b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        header = data if kind == b"IHDR" else header
        compressed += data if kind == b"IDAT" else b""
        at += 12 + length
    width, height, bits, colour, *rest = struct.unpack(">IIBBBBB", header)
    raw = np.frombuffer(zlib.decompress(compressed), dtype=np.uint8)
    if (bits, colour, *rest) != (8, 6, 0, 0, 0) or raw.reshape(height, -1)[:, 0].max() > 2:
        raise ValueError("a PNG of another kind than Chromium writes")
    rows = raw.reshape(height, -1)
    pixels = rows[:, 1:].reshape(height, width, 4).copy()
    for y, how in enumerate(rows[:, 0]):
        if how == 1:
            pixels[y] = np.cumsum(pixels[y], axis=0, dtype=np.uint8)
        elif how == 2 and y:
            pixels[y] += pixels[y - 1]
    return width, height, pixels
