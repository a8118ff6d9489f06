package pi

import (
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// Code returns the code that a kind of error is told as.
func Code(k session.Kind) piwire.ErrorCode { return codes[k] }

// Attachments returns how many attachments the server knows, in its index and in the
// connections.
func (s *Server) Attachments() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, as := range s.watched {
		n += len(as)
	}
	for c := range s.conns {
		c.mu.Lock()
		n += len(c.sessions)
		c.mu.Unlock()
	}
	return n
}

// Connections returns how many connections there are.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
