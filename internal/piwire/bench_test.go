package piwire

import (
	"fmt"
	"strings"
	"testing"
)

func delta() *SessionProgressEvent {
	return &SessionProgressEvent{"3f6a2b1c-session", &AssistantDelta{"message-17", 2, DeltaText, "a few words of text "}}
}

// snapshotOf makes a snapshot of n items, a turn being a prompt, an answer with a
// tool call, the tool's output and a closing answer.
func snapshotOf(tb testing.TB, n int) *SessionSnapshot {
	tb.Helper()
	input, err := ValueFromJSON([]byte(`{"command":"go test ./...","timeout":120,"env":["A=1","B=2"]}`), ToolCallLevels)
	if err != nil {
		tb.Fatal(err)
	}
	s := validSnapshot()
	for i := range n {
		id := fmt.Sprintf("item-%d", i)
		var it Item
		switch i % 4 {
		case 0:
			it = &UserItem{id, []Block{&Text{strings.Repeat("please look at this ", 8)}}, 1_750_000_000_000}
		case 2:
			it = &ToolItem{ID: id, ToolCallID: "call-1", ToolName: "bash", Input: input, Content: []Block{&Text{strings.Repeat("ok  \tpackage/path\t0.012s\n", 60)}}, Timestamp: 1_750_000_000_000, Status: ToolComplete}
		default:
			it = &AssistantItem{
				ID: id, Content: []Block{&Thinking{strings.Repeat("let me think. ", 20), nil}, &Text{strings.Repeat("here is what I do. ", 20)}, &ToolCall{"call-1", "bash", input}},
				Model: ModelRef{"provider", "model"}, Usage: &Usage{Input: 1200, Output: 300, TotalTokens: 1500, Cost: UsageCost{Total: 0.0123}},
				Timestamp: 1_750_000_000_000, Status: AssistantComplete, StopReason: StopToolUse,
			}
		}
		s.Transcript = append(s.Transcript, it)
	}
	return s
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 1<<20)
	snapshot := &SessionSnapshotEvent{snapshotOf(t, 100)}
	for name, m := range map[string]ServerMessage{"delta": delta(), "snapshot": snapshot} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := AppendServerFrame(buf, m, MaxFrame); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestDeltaOverheadOnTheWire(t *testing.T) {
	m := delta()
	b, err := AppendServerFrame(nil, m, MaxFrame)
	if err != nil {
		t.Fatal(err)
	}
	names := len(m.SessionID) + len("message-17") + len("a few words of text ")
	if overhead := len(b) - names; overhead > 130 { // the protocol's own keys
		t.Errorf("%d bytes", overhead)
	}
}

func BenchmarkEncodeDelta(b *testing.B) {
	m := delta()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = AppendServerFrame(buf[:0], m, MaxFrame)
	}
}

func benchmarkSnapshot(b *testing.B, s *SessionSnapshot) {
	b.Helper()
	m := &SessionSnapshotEvent{s}
	buf, err := AppendServer(nil, m)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = AppendServer(buf[:0], m)
	}
}

func BenchmarkEncodeSnapshot10kItems(b *testing.B) { benchmarkSnapshot(b, snapshotOf(b, 10_000)) }

func BenchmarkEncodeSnapshot10kRawItems(b *testing.B) {
	s := snapshotOf(b, 10_000)
	for i, it := range s.Transcript {
		raw, err := EncodeItem(it)
		if err != nil {
			b.Fatal(err)
		}
		s.Transcript[i] = raw
	}
	benchmarkSnapshot(b, s)
}

func BenchmarkDecodeClient(b *testing.B) {
	payload, err := AppendClient(nil, &Request{"request-1", &Prompt{"3f6a2b1c-session", "fix the failing test in package foo"}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = DecodeClient(payload)
	}
}

func BenchmarkDecodeSnapshot10kItems(b *testing.B) {
	payload, err := AppendServer(nil, &SessionSnapshotEvent{snapshotOf(b, 10_000)})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = DecodeServer(payload)
	}
}

func BenchmarkValueFromJSON(b *testing.B) {
	text := []byte(`{"path":"internal/pkg/file.go","edits":[{"oldText":"` + strings.Repeat("line of code\\n", 40) + `","newText":"x"}]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ValueFromJSON(text, ToolCallLevels)
	}
}
