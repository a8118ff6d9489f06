package workspace

// nonblock is nothing: the simulation, which is all that runs here, opens no pipes.
const nonblock = 0
