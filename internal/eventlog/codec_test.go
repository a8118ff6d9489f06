package eventlog

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/session"
	pb "github.com/roost-dev/roost/proto/eventlog/v1"
)

// update writes the golden file anew: ROOST_UPDATE=1 go test. Only ever add lines to it.
var update = os.Getenv("ROOST_UPDATE") != ""

// implementers returns the names of the types of package session that have a marker method.
func implementers(t *testing.T, method string) []string {
	t.Helper()
	files, err := filepath.Glob("../session/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var names []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != method {
				continue
			}
			recv := fn.Recv.List[0].Type
			if star, ok := recv.(*ast.StarExpr); ok {
				recv = star.X
			}
			names = append(names, recv.(*ast.Ident).Name)
		}
	}
	slices.Sort(names)
	return names
}

func typeNames[T any](values []T) []string {
	var names []string
	for _, v := range values {
		typ := reflect.TypeOf(v)
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		names = append(names, typ.Name())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestEveryTypeHasASample(t *testing.T) {
	for method, have := range map[string][]string{
		"event": typeNames(sampleEvents), "item": typeNames(sampleItems), "block": typeNames(sampleBlocks),
	} {
		if d := cmp.Diff(implementers(t, method), have); d != "" {
			t.Errorf("types with the method %s (-package session +samples):\n%s", method, d)
		}
	}
}

func TestKindIsTheFieldOfTheRecord(t *testing.T) {
	for _, e := range sampleEvents {
		var m pb.Record
		if err := encodeEvent(&m, e); err != nil {
			t.Fatal(err)
		}
		field := m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().Get(0))
		if got := Kind(e); got != string(field.Name()) {
			t.Errorf("Kind(%T) is %q, its field is %q", e, got, field.Name())
		}
	}
}

// TestSamplesFillEveryField makes sure that the round trips below leave no field untested.
func TestSamplesFillEveryField(t *testing.T) {
	filled := make(map[string]bool)
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface, reflect.Pointer:
			if !v.IsNil() {
				visit(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().Name() + "." + v.Type().Field(i).Name
				filled[name] = filled[name] || !v.Field(i).IsZero()
				visit(v.Field(i))
			}
		default:
		}
	}
	visit(reflect.ValueOf(sampleEvents))
	visit(reflect.ValueOf(sampleItems))
	visit(reflect.ValueOf(sampleHeads))
	for name, ok := range filled {
		if !ok {
			t.Errorf("no sample sets %s", name)
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := session.Record{
			Seq:   session.Seq(rapid.Uint64Min(1).Draw(t, "seq")),
			At:    rapid.Int64().Draw(t, "at"),
			Event: drawEvent(t),
		}
		b, err := AppendRecord([]byte("before"), want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRecord(b[len("before"):])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestItemsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []session.Item
		var b []byte
		for range rapid.IntRange(0, 3).Draw(t, "pieces") {
			var piece []session.Item
			for range rapid.IntRange(0, 4).Draw(t, "items") {
				piece = append(piece, drawItem(t))
			}
			var err error
			if b, err = AppendItems(b, piece); err != nil {
				t.Fatal(err)
			}
			want = append(want, piece...)
		}
		got, err := DecodeItems(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" && len(want)+len(got) > 0 {
			t.Fatal(d)
		}
	})
}

func TestHeadRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawValue[session.Head](t)
		for i := range want.TakenUps { // events are numbered from 1
			want.TakenUps[i] = max(want.TakenUps[i], 1)
		}
		b, err := AppendHead(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeHead(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// TestGolden reads records as earlier versions have written them.
func TestGolden(t *testing.T) {
	const file = "testdata/golden.txt"
	lines := make(map[string]any)
	var order []string
	for i, e := range sampleEvents {
		name := fmt.Sprintf("record %02d %s", i, Kind(e))
		lines[name], order = session.Record{Seq: session.Seq(i + 1), At: 1_790_000_000_000 + int64(i), Event: e}, append(order, name)
	}
	for i, item := range sampleItems {
		name := fmt.Sprintf("item %02d", i)
		lines[name], order = item, append(order, name)
	}
	for i, head := range sampleHeads {
		name := fmt.Sprintf("head %02d", i)
		lines[name], order = head, append(order, name)
	}

	if update {
		writeGolden(t, file, order, lines)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), ": ")
		want := lines[name]
		delete(lines, name)
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		if got := decodeGolden(t, name, b); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
	}
	for name := range lines {
		t.Errorf("the golden file has no %s", name)
	}
}

func decodeGolden(t *testing.T, name string, b []byte) (v any) {
	t.Helper()
	var err error
	switch {
	case strings.HasPrefix(name, "record"):
		v, err = DecodeRecord(b)
	case strings.HasPrefix(name, "head"):
		v, err = DecodeHead(b)
	default:
		var items []session.Item
		if items, err = DecodeItems(b); len(items) == 1 {
			v = items[0]
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func writeGolden(t *testing.T, file string, order []string, lines map[string]any) {
	t.Helper()
	var out strings.Builder
	for _, name := range order {
		var b []byte
		var err error
		switch v := lines[name].(type) {
		case session.Record:
			b, err = AppendRecord(nil, v)
		case session.Item:
			b, err = AppendItems(nil, []session.Item{v})
		case session.Head:
			b, err = AppendHead(nil, v)
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s: %x\n", name, b)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDecodeFailsClosed(t *testing.T) {
	encode := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ended := func(s pb.Status) *pb.Record {
		return &pb.Record{Seq: 1, Version: 1, Event: &pb.Record_PassEnded{PassEnded: &pb.PassEnded{Status: s}}}
	}
	renamed := &pb.Record_Renamed{Renamed: &pb.Renamed{}}
	block := &pb.Record_BlockStarted{BlockStarted: &pb.BlockStarted{Block: &pb.Block{}}}
	unknown := protowire.AppendBytes(protowire.AppendTag(encode(&pb.Record{Seq: 1, Version: 1}), 2000, protowire.BytesType), nil)
	for name, c := range map[string]struct {
		data []byte
		say  string
	}{
		"empty":          {nil, "version"},
		"garbage":        {[]byte("\xff\xff\xff"), "record"},
		"cut":            {encode(ended(pb.Status_STATUS_COMPLETE))[:7], "record"},
		"no version":     {encode(&pb.Record{Seq: 1, Event: renamed}), "without version"},
		"newer version":  {encode(&pb.Record{Seq: 1, Version: 2, Event: renamed}), "use a newer roost"},
		"no seq":         {encode(&pb.Record{Version: 1, Event: renamed}), "sequence number"},
		"no event":       {encode(&pb.Record{Seq: 1, Version: 1}), "without event"},
		"unknown event":  {unknown, "field 2000"},
		"no status":      {encode(ended(0)), "unknown status 0"},
		"unknown status": {encode(ended(77)), "unknown status 77"},
		"unknown block":  {encode(&pb.Record{Seq: 1, Version: 1, Event: block}), "unknown kind of block"},
	} {
		_, err := DecodeRecord(c.data)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DecodeItems(encode(&pb.Items{Items: []*pb.Item{{}}})); !errors.Is(err, ErrCorrupt) {
		t.Errorf("unknown item: %v", err)
	}
	if _, err := DecodeHead(encode(&pb.Head{Version: 9})); !errors.Is(err, ErrCorrupt) {
		t.Errorf("newer head: %v", err)
	}
}

func TestEncodeRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, e := range []session.Event{nil, session.BlockStarted{}, session.RunStarted{Blocks: []session.Block{nil}}} {
		if b, err := AppendRecord([]byte("x"), session.Record{Seq: 1, Event: e}); err == nil || string(b) != "x" {
			t.Errorf("%#v: %q %v", e, b, err)
		}
	}
	if _, err := AppendItems(nil, []session.Item{nil}); err == nil {
		t.Error("a nil item was encoded")
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for i, e := range sampleEvents {
		b, err := AppendRecord(nil, session.Record{Seq: session.Seq(i + 1), At: 1, Event: e})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRecord(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v is no ErrCorrupt", err)
			}
			return
		}
		again, err := AppendRecord(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		// Events may hold NaN, which is not equal to itself, so compare what was written.
		r2, err := DecodeRecord(again)
		if err != nil || fmt.Sprintf("%#v", r2.Seq) != fmt.Sprintf("%#v", r.Seq) || Kind(r2.Event) != Kind(r.Event) {
			t.Fatalf("%#v became %#v (%v)", r, r2, err)
		}
	})
}

func FuzzDecodeItems(f *testing.F) {
	b, err := AppendItems(nil, sampleItems)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		items, err := DecodeItems(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v is no ErrCorrupt", err)
			}
			return
		}
		if _, err := AppendItems(nil, items); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkEncodeDelta(b *testing.B) {
	r := session.Record{Seq: 123_456, At: 1_790_000_000_000, Event: session.Delta{Index: 1, Text: " a token or two of text"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AppendRecord(nil, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeDelta(b *testing.B) {
	data, err := AppendRecord(nil, session.Record{Seq: 123_456, At: 1_790_000_000_000, Event: session.Delta{Text: " a token or two of text"}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRecord(data); err != nil {
			b.Fatal(err)
		}
	}
}

// Samples of every type, with every field set by at least one of them.
var (
	sampleModel  = session.ModelRef{Provider: "anthropic", ID: "model-1"}
	sampleImage  = session.Image{MIME: "image/png", Blob: strings.Repeat("ab", 32), Size: 1234}
	sampleUsage  = session.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Cost: session.Cost{Input: 0.1, Output: 0.2, CacheRead: 0.3, CacheWrite: 0.4}}
	sampleBlocks = []session.Block{
		session.Text{Text: "text \xff that is no UTF-8"},
		session.Reasoning{Text: "thought", Signature: "c2lnbmF0dXJl", Redacted: true},
		sampleImage,
		session.ToolCall{Call: "call1-1-0", Name: "read", Input: `{"path":"a`, Complete: true},
	}
	sampleEvents = []session.Event{
		session.Created{ID: "01J", Cwd: "/work", Name: "a name", Model: sampleModel, Thinking: session.ThinkingHigh, Parent: "01H", Origin: "pi"},
		session.Renamed{Name: "another name"},
		session.ModelSet{Model: sampleModel, Thinking: session.ThinkingOff},
		session.ThinkingSet{Thinking: session.ThinkingMax},
		session.RunStarted{Run: 7, Item: "u1", Prompt: "client-1", Blocks: sampleBlocks},
		session.SteerQueued{Item: "u2", Prompt: "client-2", Blocks: sampleBlocks[:1]},
		session.SteerDelivered{Item: "u2"},
		session.PassStarted{Pass: 3, Item: "a7-3", Model: sampleModel},
		session.BlockStarted{Block: session.Text{}},
		session.BlockStarted{Block: session.Reasoning{}},
		session.BlockStarted{Block: session.ToolCall{Call: "call7-3-0", Name: "bash"}},
		session.Delta{Index: 2, Text: "héllo \xe2\x82"},
		session.BlockEnded{Index: 1, Signature: "c2ln", Redacted: true},
		session.PassInterrupted{Reason: "connection reset", ResumeAt: 1_790_000_000_500},
		session.PassResumed{},
		session.PassEnded{Status: session.Failed, Stop: session.StopRefusal, Error: "no", ResponseModel: "model-1b", Usage: &sampleUsage, Cut: true},
		session.ToolStarted{Call: "call7-3-0", Host: session.HostClient},
		session.ToolOutput{Call: "call7-3-0", Text: "out\x00put", Replace: true},
		session.ToolEnded{Call: "call7-3-0", IsError: true, Output: "done", Images: []session.Image{sampleImage}, Details: json.RawMessage(`{"exit":1}`)},
		session.AbortRequested{},
		session.RunEnded{Outcome: session.RunFailed, Error: "the provider said no"},
		session.ModeSet{Mode: session.ModePlan},
		session.Rewound{Items: 9},
		session.NoteAdded{Item: "u3", Note: session.NoteContext, Text: "the rules", Context: "00ff"},
		session.CompactionStarted{Through: 12},
		session.CompactionEnded{Summarized: 12, Summary: "what was said", Shortened: 14, Usage: &sampleUsage, Error: "no"},
		session.PassInterrupted{Reason: "too large", Overflow: true},
		session.ToolStarted{Call: "call7-3-1", Query: &sampleQuery},
		session.QueryAnswered{Call: "call7-3-1", Allow: true, Reason: "fine", Grants: []string{"bash:git push"}},
		session.ItemsCopied{
			Items:   []session.Item{&session.User{ID: "u1", Run: 1, Blocks: sampleBlocks[:1], At: 5}},
			LastRun: 1, Users: 1,
		},
		session.ToolStarted{Call: "call7-3-2", Query: &session.Query{Reason: "it waits", Until: 1_790_000_600_000}},
		session.ModeSet{Mode: session.ModeAsk, Offer: "00aa"},
		session.RunStarted{Run: 8, Item: "u4", Prompt: "client-3", Blocks: sampleBlocks[:1], Offer: "00aa"},
		session.RunStarted{Run: 9, Resume: true},
		session.ToolIssued{Call: "call7-3-0"},
		session.ToolEnded{Call: "call7-3-0", Output: "the plan", Last: true},
		session.FrontSet{Key: "cursor.run", Value: []byte("\x00\xff")},
		session.TakenUp{},
		session.PassEnded{Status: session.Failed, Error: "no", Fault: session.FaultKey},
		session.RunEnded{Outcome: session.RunFailed, Error: "no", Fault: session.FaultContext},
		session.ToolStarted{Call: "call7-3-3", Repeatable: true},
	}
	sampleItems = []session.Item{
		&session.User{ID: "u1", Run: 7, Prompt: "client-1", Steer: true, Blocks: sampleBlocks[:1], At: 5},
		&session.Assistant{
			ID: "a7-3", Run: 7, Pass: 3, Model: sampleModel, ResponseModel: "model-1b", Blocks: sampleBlocks,
			Status: session.Aborted, Stop: session.StopToolUse, Error: "no", Usage: &sampleUsage, At: 6,
		},
		&session.Tool{
			ID: "t7-3-0", Run: 7, Call: "call7-3-0", Name: "bash", Input: `{}`, Host: session.HostClient, Status: session.Complete,
			Output: "done", Images: []session.Image{sampleImage}, Details: json.RawMessage(`[]`), At: 7,
		},
		&session.User{ID: "u3", Note: session.NoteContext, Blocks: sampleBlocks[:1], At: 8},
		&session.Tool{ID: "t7-3-1", Call: "call7-3-1", Query: &sampleQuery},
	}
	sampleQuery = session.Query{Reason: "it sends", Grants: []string{"bash:git push"}}
	sampleHeads = []session.Head{{
		ID: "01J", Cwd: "/work", Name: "a name", Model: sampleModel, Thinking: session.ThinkingLow, Parent: "01H", Origin: "pi",
		CreatedAt: 1, UpdatedAt: 2, Seq: 3, LastRun: 4, LastOutcome: session.RunAborted, LastError: "no", Users: 5, Usage: sampleUsage,
		Mode: session.ModeAsk, Context: "00ff", Grants: []string{"bash:git push"}, Summary: "what was said", Summarized: 6, Shortened: 7, Compacted: 8,
	}, {
		ID: "01K", Seq: 9, LastFault: session.FaultKey, RunSeq: 4, TakenUps: []session.Seq{6}, Front: map[string][]byte{"a": []byte("1"), "b": {0xff}},
	}}
)
