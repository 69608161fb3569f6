"""The explorer: the theorem in a browser. `onelayer serve` starts it.

    page (assets) → request (`wish`) → queue (`lane`) → worker process (`worker`, `job`) → answers for the page (`view`)

The server only reads requests and passes lines on; building, proving and training happen in processes that can be killed.
"""
