//go:build unix && !linux && !darwin

package datadir

// Free returns false: it does not know how to ask this system.
func Free(string) (bytes uint64, ok bool) { return 0, false }
