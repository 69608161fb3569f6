"""Files of points, read and written a batch of rows at a time, and values that wait on disk until they are complete."""
