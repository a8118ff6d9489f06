// Package simulation holds a test of everything at once: a server with its front ends, clients of
// both protocols, models, tools, the network and the disk, in simulated time, from one seed. The
// server dies in the middle of writes, loses its lease, meets a full disk; clients vanish, stall and
// come back; models fail in every way. After each step, and at the end, what must always hold is
// checked.
//
// Compiled for WebAssembly, where a program has one thread and takes time and chance from its host
// alone, a run is the same each time: see the program simulate, which runs thousands of seeds.
package simulation
