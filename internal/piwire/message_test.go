package piwire

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestClientMessagesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawClientMessage(t)
		payload, err := AppendClient(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeClient(payload)
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("got %#v, %v", back, err)
		}
		clear(payload) // the message must not share its memory
		if !reflect.DeepEqual(back, m) {
			t.Fatal("message changes with the payload")
		}
	})
}

func TestServerMessagesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawServerMessage(t)
		payload, err := AppendServer(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if fault := checkPayload(payload); fault != "" {
			t.Fatal(fault)
		}
		back, err := DecodeServer(payload)
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("got %#v, %v", back, err)
		}
		clear(payload)
		if !reflect.DeepEqual(back, m) {
			t.Fatal("message changes with the payload")
		}
	})
}

func TestKeysInAnyOrder(t *testing.T) {
	for _, v := range vectors(t, "vectors") {
		payload := v.stream(t)[headerSize:]
		want, err := decodeAny(v.Kind, payload)
		if err != nil {
			t.Fatal(v.Name, err)
		}
		got, err := decodeAny(v.Kind, reversed(t, payload))
		if err != nil {
			t.Fatal(v.Name, err)
		}
		a, _ := appendAny(nil, got)
		b, _ := appendAny(nil, want)
		if !reflect.DeepEqual(oracle(t, a), oracle(t, b)) {
			t.Errorf("%s: got %#v", v.Name, got)
		}
	}
}

// reversed returns an item with the entries of every map in reverse order.
func reversed(tb testing.TB, item []byte) []byte {
	tb.Helper()
	w := walker{cborReader: cborReader{b: item}}
	major, n, fault := w.head()
	if fault != "" || major != majorMap && major != majorArray {
		return item
	}
	next := func() []byte {
		start := w.pos
		if _, _, fault := w.item(0); fault != "" {
			tb.Fatal(fault)
		}
		return item[start:w.pos]
	}
	var out []byte
	for range n {
		if major == majorArray {
			out = append(out, reversed(tb, next())...)
			continue
		}
		key := next()
		out = slices.Concat(key, reversed(tb, next()), out)
	}
	return append(appendHead(nil, major, n), out...)
}

// TestFieldsGoWhereTheyBelong pins the Go field of every wire field, which a
// round trip alone does not.
func TestFieldsGoWhereTheyBelong(t *testing.T) {
	for _, v := range vectors(t, "vectors") {
		got, err := decodeAny(v.Kind, v.stream(t)[headerSize:])
		if err != nil {
			t.Fatal(v.Name, err)
		}
		compareFields(t, v.Name, v.Message, reflect.ValueOf(got))
	}
}

// compareFields walks a Go value along the JSON message: a field's name is its
// wire name but for the case of letters.
func compareFields(t *testing.T, path string, want any, got reflect.Value) {
	t.Helper()
	for got.Kind() == reflect.Interface || got.Kind() == reflect.Pointer {
		got = got.Elem()
	}
	if v, ok := reflect.TypeAssert[Value](got); ok {
		parsed := oracle(t, []byte(v.enc))
		if !reflect.DeepEqual(parsed, want) {
			t.Errorf("%s: %v, want %v", path, parsed, want)
		}
		return
	}
	switch want := want.(type) {
	case map[string]any:
		for key, value := range want {
			compareField(t, path+"."+key, key, value, got)
		}
	case []any:
		if len(want) != got.Len() {
			t.Errorf("%s: %d elements, want %d", path, got.Len(), len(want))
			return
		}
		for i, value := range want {
			compareFields(t, path, value, got.Index(i))
		}
	case float64:
		if got.CanInt() && got.Int() != int64(want) || got.CanFloat() && got.Float() != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	case string:
		if got.String() != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	case bool:
		if got.Bool() != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func compareField(t *testing.T, path, key string, want any, got reflect.Value) {
	t.Helper()
	switch key {
	case "type", "role", "isError", "protocolVersion": // the Go type, or a constant, says it
		return
	case "ok":
		if got.FieldByName("Error").IsNil() != want.(bool) {
			t.Errorf("%s: want %v", path, want)
		}
		return
	case "event": // has no struct of its own
		compareFields(t, path, want, got)
		return
	case "command":
		if m, ok := reflect.TypeAssert[interface{ CommandName() CommandName }](got.Addr()); ok && string(m.CommandName()) != want {
			t.Errorf("%s: %s, want %s", path, m.CommandName(), want)
		}
		return
	case "request":
		key = "command"
	case "version":
		if _, ok := reflect.TypeAssert[*ServerHello](got.Addr()); ok {
			return
		}
	}
	field := got.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
	if !field.IsValid() {
		t.Errorf("%s: no such field in %s", path, got.Type())
		return
	}
	compareFields(t, path, want, field)
}

func details(tb testing.TB, json string) ServerMessage {
	tb.Helper()
	v, err := ValueFromJSON([]byte(json), maxDepth)
	if err != nil {
		tb.Fatal(err)
	}
	return &HelloError{ProtocolError{CodeBusy, "m", v}}
}

func withCost(cost float64) ServerMessage {
	return &SessionProgressEvent{"s", &ItemUpdated{&ToolItem{
		ID: "i", ToolCallID: "c", ToolName: "n", Status: ToolRunning, Usage: &Usage{Cost: UsageCost{Total: cost}},
	}}}
}

func started(it Item) ServerMessage { return &SessionProgressEvent{"s", &ItemStarted{it}} }

func TestRefusedWhenEncoding(t *testing.T) {
	empty, text := "", "x"
	const (
		unicode = "Unable to encode server protocol message: CBOR text strings must contain valid Unicode scalar values"
		unsafe  = "Unable to encode server protocol message: CBOR integers must be safe JavaScript integers"
		depth   = "Unable to encode server protocol message: CBOR nesting depth exceeds configured limit of 64"
		invalid = "Invalid server protocol message"
	)
	ref := ModelRef{"p", "m"}
	assistant := func(status AssistantStatus, stop StopReason, msg *string) Item {
		return &AssistantItem{ID: "a", Model: ref, Status: status, StopReason: stop, ErrorMessage: msg}
	}
	for _, tt := range []struct {
		name string
		m    ServerMessage
		want string
	}{
		{"invalid UTF-8", &HelloError{ProtocolError{CodeBusy, "\xff", Value{}}}, unicode},
		{"surrogate", &HelloError{ProtocolError{CodeBusy, "\xed\xa0\x80", Value{}}}, unicode},
		{"timestamp too large", started(&UserItem{ID: "u", Timestamp: MaxCount + 1}), unsafe},
		{"integer-valued cost too large", withCost(1e300), unsafe},
		{"NaN", withCost(math.NaN()), invalid},
		{"infinite", withCost(math.Inf(1)), invalid},
		{"negative cost", withCost(-1), invalid},
		{"schema before CBOR", started(&UserItem{ID: "", Timestamp: MaxCount + 1}), invalid},
		{"too deep", details(t, strings.Repeat("[", 63)+strings.Repeat("]", 63)+" "), ""},
		{"too deep by one", details(t, strings.Repeat("[", 64)+strings.Repeat("]", 64)), depth},
		{"negative count", started(&UserItem{ID: "u", Timestamp: -1}), invalid},
		{"no message", nil, invalid},
		{"no item", started(nil), invalid},
		{"no progress", &SessionProgressEvent{SessionID: "s"}, invalid},
		{"no snapshot", &SessionSnapshotEvent{}, invalid},
		{"no server snapshot", &ServerHello{ConnectionID: "c"}, invalid},
		{"no session id", &SessionRemovedEvent{}, invalid},
		{"unknown code", &HelloError{ProtocolError{"auth", "m", Value{}}}, invalid},
		{"neither result nor error", &Response{ID: "r"}, invalid},
		{"result and error", &Response{"r", &ListResult{}, &ProtocolError{Code: CodeBusy}}, invalid},
		{"session result of list", &Response{"r", &SessionResult{CommandList, validSnapshot()}, nil}, invalid},
		{"model without levels", &ServerSnapshotEvent{&ServerSnapshot{ServerID: "s", Models: []ModelMetadata{{
			Provider: "p", ID: "m", Name: "n", API: "a", ContextWindow: 1, MaxTokens: 1,
		}}}}, invalid},
		{"queued assistant", &SessionSnapshotEvent{func() *SessionSnapshot {
			s := validSnapshot()
			s.QueuedSteer = []Item{assistant(AssistantStreaming, "", nil)}
			return s
		}()}, invalid},
		{"user with thinking", started(&UserItem{ID: "u", Content: []Block{&Thinking{}}}), invalid},
		{"assistant with image", started(&AssistantItem{ID: "a", Model: ref, Status: AssistantStreaming, Content: []Block{&Image{"", "m"}}}), invalid},
		{"streaming and stopped", started(assistant(AssistantStreaming, StopStop, nil)), invalid},
		{"complete without reason", started(assistant(AssistantComplete, "", nil)), invalid},
		{"complete with error", started(assistant(AssistantComplete, StopError, nil)), invalid},
		{"complete with message", started(assistant(AssistantComplete, StopStop, &text)), invalid},
		{"error with empty message", started(assistant(AssistantError, StopError, &empty)), invalid},
		{"error", started(assistant(AssistantError, StopError, &text)), ""},
		{"aborted with stop", started(assistant(AssistantAborted, StopStop, nil)), invalid},
		{"aborted with empty message", started(assistant(AssistantAborted, StopAborted, &empty)), ""},
		{"unknown status", started(assistant("paused", "", nil)), invalid},
		{"user updated", &SessionProgressEvent{"s", &ItemUpdated{&UserItem{ID: "u"}}}, invalid},
		{"user finished", &SessionProgressEvent{"s", &ItemFinished{&UserItem{ID: "u"}}}, invalid},
		{"streaming finished", &SessionProgressEvent{"s", &ItemFinished{assistant(AssistantStreaming, "", nil)}}, invalid},
		{"delta kind", &SessionProgressEvent{"s", &AssistantDelta{"m", 0, "tool_call", ""}}, invalid},
		{"delta index", &SessionProgressEvent{"s", &AssistantDelta{"m", -1, DeltaText, ""}}, invalid},
	} {
		got, err := AppendServer([]byte("kept"), tt.m)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err == nil || err.Error() != tt.want || string(got) != "kept" {
			t.Errorf("%s: %q, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	for _, m := range []ClientMessage{
		nil, &Hello{-1}, &Request{"", &List{}}, &Request{"r", nil}, &Request{"r", &Attach{}}, &Request{"r", &Prompt{"", "x"}},
		&Request{"r", &Create{ThinkingLevel: "huge"}}, &Request{"r", &Create{Model: &ModelRef{"", "m"}}}, &Request{"r", &SetThinking{"s", ""}},
	} {
		if _, err := AppendClient(nil, m); err == nil || err.Error() != "Invalid client protocol message" {
			t.Errorf("%#v: %v", m, err)
		}
	}
}

// TestEncodeNegativeVectors builds those of pi's refused values that Go can build.
func TestEncodeNegativeVectors(t *testing.T) {
	prompt := func(text string) any { return &Request{"r", &Prompt{"s", text}} }
	messages := map[string]any{
		"lone-high-surrogate":   prompt("\xed\xa0\x80"),
		"integer-valued-1e300":  withCost(1e300),
		"nan-cost":              withCost(math.NaN()),
		"infinity-cost":         withCost(math.Inf(1)),
		"timestamp-beyond-safe": started(&UserItem{ID: "u", Timestamp: 1_750_000_000_000_000_000}),
		"depth-65":              details(t, strings.Repeat("[", 64)+strings.Repeat("]", 64)),
		"frame-over-limit":      prompt(strings.Repeat("x", MaxFrame)),
	}
	// A Value holds only what has been reduced, so these cannot be built.
	impossible := []string{
		"lone-low-surrogate-key", "unsafe-integer-details", "unsafe-negative-details", "undefined-in-array", "cycle",
		"date-object", "bytes-in-details",
	}
	for _, v := range vectors(t, "encode-negative") {
		m, ok := messages[v.Name]
		if !ok {
			if !slices.Contains(impossible, v.Name) {
				t.Errorf("%s is not tried", v.Name)
			}
			continue
		}
		var err error
		if c, ok := m.(ClientMessage); ok {
			_, err = AppendClientFrame(nil, c, MaxFrame)
		} else {
			_, err = AppendServerFrame(nil, m.(ServerMessage), MaxFrame)
		}
		if err == nil || err.Error() != v.Error {
			t.Errorf("%s: %v, want %s", v.Name, err, v.Error)
		}
	}
}

func TestListTooLongToEncode(t *testing.T) {
	m := &AssistantItem{ID: "a", Model: ModelRef{"p", "m"}, Status: AssistantStreaming}
	for _, n := range []int{maxContainer, maxContainer + 1} {
		m.Content = slices.Repeat([]Block{&Text{}}, n)
		if _, err := EncodeItem(m); (err == nil) != (n == maxContainer) {
			t.Errorf("%d blocks: %v", n, err)
		}
	}
}

func validSnapshot() *SessionSnapshot {
	return &SessionSnapshot{ID: "s", Cwd: "/", Phase: PhaseIdle, Model: ModelRef{"p", "m"}, ThinkingLevel: ThinkingOff}
}

func TestFrameLimitWhenEncoding(t *testing.T) {
	m := &Request{"r", &Prompt{"s", strings.Repeat("x", 1000)}}
	whole, err := AppendClientFrame(nil, m, MaxFrame)
	if err != nil {
		t.Fatal(err)
	}
	size := uint32(len(whole) - headerSize)
	if again, err := AppendClientFrame([]byte("kept"), m, size); err != nil || string(again) != "kept"+string(whole) {
		t.Errorf("at the limit: %v", err)
	}
	got, err := AppendClientFrame([]byte("kept"), m, size-1)
	var e *Error
	if !errors.As(err, &e) || e.Stage != StageEncode || string(got) != "kept" || !strings.HasSuffix(e.Msg, "limit of "+strconv.Itoa(int(size-1))) {
		t.Errorf("above the limit: %q, %v", got, err)
	}
	huge := &HelloError{ProtocolError{CodeBusy, strings.Repeat("x", MaxFrame+1), Value{}}}
	const want = "Unable to encode server protocol message: CBOR byte length exceeds configured limit of 16777216"
	if _, err := AppendServerFrame(nil, huge, MaxFrame); err == nil || err.Error() != want {
		t.Errorf("huge text: %v", err)
	}
}

func TestRawItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := drawItem(t)
		raw, err := EncodeItem(it)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := EncodeItem(raw); same != raw || err != nil {
			t.Fatal("a raw item is encoded again")
		}
		plain, err := AppendItem(nil, it)
		if err != nil || len(plain) != raw.Size() {
			t.Fatalf("%d bytes, %v; want %d", len(plain), err, raw.Size())
		}
		for _, wrap := range []func(Item) ServerMessage{
			started,
			func(it Item) ServerMessage { return &SessionProgressEvent{"s", &ItemUpdated{it}} },
			func(it Item) ServerMessage { return &SessionProgressEvent{"s", &ItemFinished{it}} },
			func(it Item) ServerMessage {
				s := validSnapshot()
				s.Transcript = []Item{it}
				return &SessionSnapshotEvent{s}
			},
			func(it Item) ServerMessage {
				s := validSnapshot()
				s.QueuedSteer = []Item{it}
				return &Response{"r", &SessionResult{CommandAttach, s}, nil}
			},
		} {
			a, errA := AppendServer(nil, wrap(it))
			b, errB := AppendServer(nil, wrap(raw))
			if string(a) != string(b) || (errA == nil) != (errB == nil) {
				t.Fatalf("plain %x, %v\nraw   %x, %v", a, errA, b, errB)
			}
		}
	})
}

func TestItemDepthBudgets(t *testing.T) {
	nested := func(n int) Value {
		v, err := ValueFromJSON([]byte(strings.Repeat("[", n+1)+strings.Repeat("]", n+1)), maxDepth)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	call := func(n int) Item {
		return &AssistantItem{
			ID: "a", Model: ModelRef{"p", "m"}, Status: AssistantStreaming, Content: []Block{&ToolCall{"c", "n", nested(n)}},
		}
	}
	input := func(n int) Item {
		return &ToolItem{ID: "t", ToolCallID: "c", ToolName: "n", Status: ToolRunning, Input: nested(n)}
	}
	detail := func(n int) Item {
		return &ToolItem{ID: "t", ToolCallID: "c", ToolName: "n", Status: ToolRunning, Details: nested(n)}
	}
	for _, tt := range []struct {
		it Item
		ok bool
	}{
		{call(ToolCallLevels), true},
		{call(ToolCallLevels + 1), false},
		{input(ToolItemLevels), true},
		{input(ToolItemLevels + 1), false},
		{detail(ToolItemLevels), true},
		{detail(ToolItemLevels + 1), false},
	} {
		raw, err := EncodeItem(tt.it)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range []Item{tt.it, raw} {
			s := validSnapshot()
			s.Transcript = []Item{it}
			payload, err := AppendServer(nil, &Response{"r", &SessionResult{CommandAttach, s}, nil})
			if (err == nil) != tt.ok {
				t.Errorf("%T: %v, want ok %t", it, err, tt.ok)
			}
			if err != nil {
				continue
			}
			if _, err := DecodeServer(payload); err != nil {
				t.Errorf("%T does not decode: %v", it, err)
			}
		}
		if _, err := AppendServer(nil, started(tt.it)); err != nil { // one level higher up
			t.Errorf("progress: %v", err)
		}
	}
}

func TestSafeTextAndClampCount(t *testing.T) {
	if got := SafeText("a\xff\xfeb\xed\xa0\x80"); got != "a\uFFFDb\uFFFD" {
		t.Errorf("SafeText: %q", got)
	}
	for n, want := range map[int64]int64{-1: 0, 0: 0, 7: 7, MaxCount: MaxCount, MaxCount + 1: MaxCount, math.MaxInt64: MaxCount} {
		if got := ClampCount(n); got != want {
			t.Errorf("ClampCount(%d) = %d", n, got)
		}
	}
}

func TestErrorTextHoldsNoPayload(t *testing.T) {
	payload, err := AppendClient(nil, &Request{"r", &Prompt{"s", strings.Repeat("secret", 400_000)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = DecodeServer(payload)
	if err == nil || strings.Contains(err.Error(), "secret") || len(err.Error()) > maxErrorText {
		t.Errorf("got %v", err)
	}
	if long := newError(StageFrame, FromClient, strings.Repeat("x", 1000)); len(long.Msg) != maxErrorText {
		t.Errorf("%d bytes", len(long.Msg))
	}
}
