package cursortest

import "time"

// stall is the detector of section 1.7: its timer fires when nothing came for too long. It is paused
// while a question to a person is open.
type stall struct {
	timer *time.Timer
	limit time.Duration
	open  int
}

func newStall(limit time.Duration) *stall {
	return &stall{timer: time.NewTimer(limit), limit: limit}
}

func (s *stall) reset() {
	if s.open == 0 {
		s.timer.Reset(s.limit)
	}
}

func (s *stall) pause() {
	s.open++
	s.timer.Stop()
}

func (s *stall) resume() {
	s.open--
	s.reset()
}

func (s *stall) stop() { s.timer.Stop() }
