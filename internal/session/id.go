package session

import (
	"fmt"
	"strings"
)

// ID names a session. It is 1 to 64 characters of [A-Za-z0-9_-] and never a path.
type ID string

// maxID bounds session ids; a ULID has 26 characters and a UUID 36.
const maxID = 64

// Valid reports whether id may name a session.
func (id ID) Valid() bool {
	if id == "" || len(id) > maxID {
		return false
	}
	return !strings.ContainsFunc(string(id), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// Seq numbers the events of one session from 1, without gaps. 0 means "before the first".
type Seq uint64

// Epoch numbers the incarnations of an event log. It grows when history may have been
// replaced (a restored backup, a repair), so that a position of an older one is refused.
type Epoch uint64

// Position is what a client holds to come back to: an event of one incarnation of the log.
type Position struct {
	Epoch Epoch
	Seq   Seq
}

// RunID numbers the runs of a session from 1. 0 means "no run".
type RunID uint32

// ItemID names a transcript item, uniquely within its session and for ever. Ids are
// derived from counters of the state, never drawn, so that a replay gives the same ones.
type ItemID string

// CallID names a tool call, uniquely within its session. It matches
// ^[a-zA-Z0-9_-]{1,40}$, which every provider accepts: the ids that providers choose
// repeat between passes and do not survive a change of model.
type CallID string

func userItemID(n uint32) ItemID { return ItemID(fmt.Sprintf("u%d", n)) }

// NoteItemID returns the id of the next note or message in s.
func NoteItemID(s *State) ItemID { return userItemID(s.Users + 1) }

func passItemID(run RunID, pass int) ItemID { return ItemID(fmt.Sprintf("a%d-%d", run, pass)) }
func toolItemID(call CallID) ItemID         { return ItemID("t" + strings.TrimPrefix(string(call), "call")) }

// NewCallID returns the id of the call with index n (from 0) in a pass of a run.
func NewCallID(run RunID, pass, n int) CallID {
	return CallID(fmt.Sprintf("call%d-%d-%d", run, pass, n))
}
