//go:build !linux

package sandbox

// self is not used where nothing can be confined.
const self = ""

// Supported says no: only Linux has Landlock.
func Supported() (abi int, ok bool) { return 0, false }

func restrict(Options) error { return ErrUnsupported }

func run(string, []string) error { return ErrUnsupported }
