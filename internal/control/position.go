package control

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/internal/controlview"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// positionError says why a position cannot be resumed.
type positionError struct {
	fault            roostv1.PositionFault
	message          string
	earliest, latest *session.Position // nil for a malformed one
}

func (e *positionError) Error() string { return e.message }

// Unwrap gives the error its kind.
func (e *positionError) Unwrap() error {
	return &session.Error{Kind: session.Invalid, Message: e.message}
}

func (e *positionError) info() *roostv1.PositionInfo {
	w := &roostv1.PositionInfo{Fault: e.fault}
	if e.earliest != nil && e.latest != nil {
		w.Earliest, w.Latest = controlview.Position(*e.earliest), controlview.Position(*e.latest)
	}
	return w
}

func malformed(format string, args ...any) *positionError {
	return &positionError{fault: roostv1.PositionFault_POSITION_FAULT_MALFORMED, message: fmt.Sprintf(format, args...)}
}

// readPosition reads a position that a client names, nil for none.
func readPosition(p *roostv1.Position) (*session.Position, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.Epoch == 0 || p.Seq > math.MaxInt64:
		return nil, malformed("position: epoch must be at least 1 and seq at most 2^63-1; use a position that the server has given")
	}
	return &session.Position{Epoch: session.Epoch(p.Epoch), Seq: session.Seq(p.Seq)}, nil
}

// formatPosition writes a position as the id of a server-sent event.
func formatPosition(p session.Position) string {
	return strconv.FormatUint(uint64(p.Epoch), 10) + "-" + strconv.FormatUint(uint64(p.Seq), 10)
}

// parsePosition reads what formatPosition has written, and nothing else.
func parsePosition(s string) (*session.Position, error) {
	epoch, seq, _ := strings.Cut(s, "-")
	e, errEpoch := strconv.ParseUint(epoch, 10, 64)
	n, errSeq := strconv.ParseUint(seq, 10, 64)
	if errEpoch == nil && errSeq == nil {
		p, err := readPosition(&roostv1.Position{Epoch: e, Seq: n})
		if err == nil && formatPosition(*p) == s {
			return p, nil
		}
	}
	return nil, malformed("Last-Event-ID %.80q: use the id of an event that the server has sent, two numbers with a dash between them", s)
}

// unresumable says why a subscription that was made from a position has begun with a reset.
func (s *Server) unresumable(from session.Position, sub *live.Subscription, state *session.State) *positionError {
	epoch := s.opt.Engine.Epoch()
	e := &positionError{
		fault:    roostv1.PositionFault_POSITION_FAULT_GONE,
		message:  "the position is too old: the server has no longer the events that follow it",
		earliest: &session.Position{Epoch: epoch, Seq: sub.Earliest}, latest: &session.Position{Epoch: epoch, Seq: state.Seq},
	}
	switch {
	case from.Epoch != epoch:
		e.fault, e.message = roostv1.PositionFault_POSITION_FAULT_OTHER_EPOCH, "the position is of another history than the one that the server has now"
	case from.Seq > state.Seq:
		e.fault, e.message = roostv1.PositionFault_POSITION_FAULT_FOREIGN, "the position lies after the session's last event; is it of another session?"
	}
	return e
}

// resetReasons says a fault to a client that wants to go on all the same.
var resetReasons = map[roostv1.PositionFault]roostv1.ResetReason{
	roostv1.PositionFault_POSITION_FAULT_OTHER_EPOCH: roostv1.ResetReason_RESET_REASON_OTHER_EPOCH,
	roostv1.PositionFault_POSITION_FAULT_FOREIGN:     roostv1.ResetReason_RESET_REASON_FOREIGN,
	roostv1.PositionFault_POSITION_FAULT_GONE:        roostv1.ResetReason_RESET_REASON_GONE,
}
