package cursor

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// What a session remembers for this front end (session.FrontSet).
const (
	keyRun    = "cursor.run"     // runMark
	keySent   = "cursor.sent"    // sentMark
	keyJoined = "cursor.joined"  // joinMark
	keyAppend = "cursor.append/" // + request id, "/", seqno: a message that waits for its predecessors
)

// joinMark is of the last message that became a steer of a run of another protocol. A client that
// resumes does not repeat it.
type joinMark struct {
	Identity string `json:"id"` // the original request id
	Prompt   string `json:"prompt"`
}

// runMark tells a client's retry from a new wish, and lets another process go on with the tools.
type runMark struct {
	Run       session.RunID     `json:"run"`
	Identity  string            `json:"id"` // the original request id
	Prompt    string            `json:"prompt"`
	Root      string            `json:"root,omitempty"`
	Terminals string            `json:"terminals,omitempty"`
	Model     string            `json:"model,omitempty"`
	Mode      agentv1.AgentMode `json:"mode,omitempty"`
	Agents    cursortool.Agents `json:"agents"`
	PiOnly    bool              `json:"pi,omitempty"`
}

// sentMark says what a client has been told of a run.
type sentMark struct {
	Run   session.RunID `json:"run"`
	Seq   session.Seq   `json:"seq,omitempty"`   // everything up to it was written to the client
	Open  bool          `json:"open,omitempty"`  // a client is being told; Seq is not known
	At    session.Seq   `json:"at,omitempty"`    // the last event when it was opened
	Turns int           `json:"turns,omitempty"` // in the newest checkpoint that a client has got
}

func readMark[T any](s *session.State, key string) T {
	var m T
	_ = json.Unmarshal(s.Front[key], &m) // what cannot be read is not there
	return m
}

func setMark(key string, m any) session.FrontSet {
	data, _ := json.Marshal(m) // of plain structs, which cannot fail
	return session.FrontSet{Key: key, Value: data}
}

// seenOf returns up to which event a client has been told of the newest run. After a crash, the
// first since the client came, that is the last event before it: events are written to the client as soon as they are in the log.
func seenOf(s *session.State) session.Seq {
	sent := readMark[sentMark](s, keySent)
	switch {
	case sent.Run != s.LastRun:
		return s.RunSeq
	case sent.Open:
		if at := takenUpAfter(s, sent.At); at > 0 {
			return at - 1
		}
		return s.Seq
	}
	return max(sent.Seq, s.RunSeq)
}

// takenUpAfter returns the event with which the newest run was taken up first after seq, 0 when it
// was not.
func takenUpAfter(s *session.State, seq session.Seq) session.Seq {
	for _, at := range s.TakenUps {
		if at > max(seq, s.RunSeq) {
			return at
		}
	}
	return 0
}

// inlineAppend is up to which size a journaled message is kept in the event itself.
const inlineAppend = 128 << 10

func appendKey(request string, seq int64) string {
	return keyAppend + request + "/" + strconv.FormatInt(seq, 10)
}

// appendSeq reads the number back; keys of one request sort by it.
func appendSeq(key string) int64 {
	n, _ := strconv.ParseInt(key[strings.LastIndexByte(key, '/')+1:], 10, 64)
	return n
}
