"""Files of points, read and written a batch of rows at a time, with values kept on disk until they are complete."""
