package cursortest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Recorded is a message that a real client sent.
type Recorded struct {
	// RequestID is that of the attempt, and Seq the message's number in it, from 0.
	RequestID string
	Seq       int64
	Message   *agentv1.AgentClientMessage
}

// maxTraceLine bounds a line of a trace in bytes.
const maxTraceLine = 4 << 20

// Replay reads the client's messages of a trace in the order in which they arrived: JSON lines, of
// which those with dir "c2s" count, with the protocol's own names, base64 and plain JSON for
// google.protobuf.Value, as the files below internal/cursor/testdata/traces have it.
func Replay(tb testing.TB, path string) []Recorded {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var all []Recorded
	next := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxTraceLine)
	for n := 1; lines.Scan(); n++ {
		var line struct {
			Dir, Req string
			Msg      json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			tb.Fatalf("%s:%d: %v", path, n, err)
		}
		if line.Dir != "c2s" {
			continue
		}
		m := new(agentv1.AgentClientMessage)
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(line.Msg, m); err != nil {
			tb.Fatalf("%s:%d: %v", path, n, err)
		}
		all = append(all, Recorded{line.Req, next[line.Req], m})
		next[line.Req]++
	}
	if err := lines.Err(); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return all
}
