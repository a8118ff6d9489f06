package server

import (
	"runtime/debug"
	"time"
)

// quietFor is how long nothing must have run before memory is given back to the system.
const quietFor = 5 * time.Second

// giveBack gives memory back to the system once after each time of work: a Go process that
// idles neither collects nor returns what a burst of sessions took.
func (s *Server) giveBack(busy func() bool, stop <-chan struct{}) {
	ticker := time.NewTicker(quietFor)
	defer ticker.Stop()
	worked := false
	for {
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
		switch now := busy(); {
		case now:
			worked = true
		case worked:
			worked = false
			debug.FreeOSMemory()
		}
	}
}
