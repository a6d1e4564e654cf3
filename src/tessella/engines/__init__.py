"""Where the cells of a large table are computed: the same answers wherever that is."""
