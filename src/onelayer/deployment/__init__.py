"""A finished layer at work: its folder, other forms of attention, GPUs, files of points, exports."""
