package cursorwire

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

func textDelta(text string) *agentv1.AgentServerMessage {
	return &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{
		InteractionUpdate: &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{
			TextDelta: &agentv1.TextDeltaUpdate{Text: text},
		}},
	}}
}

func zip(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func envelope(flags byte, data []byte) []byte {
	n := len(data)
	return append([]byte{flags, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, data...)
}

// The bytes of a stream, written down by hand.
func TestGoldenStream(t *testing.T) {
	stream, err := AppendMessage(nil, Proto, textDelta("hi"), MaxMessage)
	if err != nil {
		t.Fatal(err)
	}
	const delta = "00" + "00000008" + "0a06" + "0a04" + "0a026869"
	if got := hex.EncodeToString(stream); got != delta {
		t.Errorf("%s, want %s", got, delta)
	}
	stream = AppendEnd(stream, nil)
	if got, want := hex.EncodeToString(stream), delta+"02"+"00000002"+"7b7d"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	text, err := AppendMessage([]byte("x"), JSON, textDelta("hi"), MaxMessage)
	if want := "x\x00\x00\x00\x00\x2c" + `{"interactionUpdate":{"textDelta":{"text":"hi"}}}`; err != nil || strings.ReplaceAll(string(text[6:]), " ", "") != want[6:] {
		t.Errorf("%q, %v", text, err)
	}
	failed := AppendEnd(nil, ProviderFailed("no money", false))
	const want = `{"error":{"code":"failed_precondition","message":"no money","details":[` +
		`{"type":"aiserver.v1.ErrorDetails","value":"CDkSIAoOUHJvdmlkZXIgRXJyb3ISCG5vIG1vbmV5IAAoATABGAA"}]}}`
	if string(failed) != string(envelope(2, []byte(want))) {
		t.Errorf("%q", failed)
	}
}

func TestReadStream(t *testing.T) {
	hello, err := Proto.Append(nil, textDelta("hello"))
	if err != nil {
		t.Fatal(err)
	}
	stream := envelope(0, hello)
	stream = append(stream, envelope(1, zip(t, hello))...)
	stream = append(stream, envelope(1, nil)...)
	stream = append(stream, envelope(0, nil)...)
	stream = append(stream, envelope(3, zip(t, []byte("{}")))...)
	for name, src := range map[string]io.Reader{
		"at once":      bytes.NewReader(stream),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"with the end": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		r := NewEnvelopeReader(src, "gzip", 100)
		for i, want := range [][]byte{hello, hello, nil, nil, []byte("{}")} {
			e, err := r.Next()
			if err != nil || !bytes.Equal(e.Data, want) || e.End != (i == 4) {
				t.Fatalf("%s: envelope %d: %v, %v", name, i, e, err)
			}
		}
		for range 2 {
			if e, err := r.Next(); !errors.Is(err, io.EOF) || e.Data != nil {
				t.Fatalf("%s: %v, %v", name, e, err)
			}
		}
	}
}

func TestReadStreamRefuses(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		src      io.Reader
		encoding string
		code     Code // empty: the error of the source
		cause    error
	}{
		"a cut header":         {strings.NewReader("\x00\x00"), "", InvalidArgument, io.ErrUnexpectedEOF},
		"a cut payload":        {strings.NewReader("\x00\x00\x00\x00\x02x"), "", InvalidArgument, io.ErrUnexpectedEOF},
		"a payload to come":    {strings.NewReader("\x00\x00\x00\x00\x02"), "", InvalidArgument, io.ErrUnexpectedEOF},
		"a length above":       {strings.NewReader("\x00\x00\x00\x00\x65"), "", ResourceExhausted, nil},
		"the greatest length":  {strings.NewReader("\x00\xff\xff\xff\xff"), "", ResourceExhausted, nil},
		"unknown flags":        {strings.NewReader("\x04\x00\x00\x00\x00"), "", InvalidArgument, nil},
		"unasked gzip":         {bytes.NewReader(envelope(1, zip(t, nil))), "identity", InvalidArgument, nil},
		"no gzip":              {strings.NewReader("\x01\x00\x00\x00\x02xy"), "gzip", InvalidArgument, nil},
		"damaged gzip":         {bytes.NewReader(envelope(1, damaged(t))), "gzip", InvalidArgument, nil},
		"cut gzip":             {bytes.NewReader(envelope(1, zip(t, []byte("hello"))[:15])), "gzip", InvalidArgument, io.ErrUnexpectedEOF},
		"a bomb":               {bytes.NewReader(envelope(1, zip(t, make([]byte, 5000)))), "gzip", ResourceExhausted, nil},
		"another compression":  {strings.NewReader(""), "br", Unimplemented, nil},
		"more after the end":   {strings.NewReader("\x02\x00\x00\x00\x02{}\x00\x00\x00\x00\x00"), "", InvalidArgument, nil},
		"a broken source":      {iotest.ErrReader(broken), "", "", broken},
		"a source that breaks": {io.MultiReader(strings.NewReader("\x00\x00\x00\x00\x02x"), iotest.ErrReader(broken)), "", "", broken},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewEnvelopeReader(c.src, c.encoding, 100)
			_, err := r.Next()
			if err == nil { // the end that something follows
				_, err = r.Next()
			}
			checkError(t, err, c.code, c.cause)
			if _, again := r.Next(); !errors.Is(again, err) {
				t.Errorf("%v, then %v", err, again)
			}
		})
	}
}

// A limit is the greatest length that is allowed, plain and compressed.
func TestLimitsAreInclusive(t *testing.T) {
	data := make([]byte, 100)
	r := NewEnvelopeReader(bytes.NewReader(append(envelope(0, data), envelope(1, zip(t, data))...)), "gzip", 100)
	for range 2 {
		if e, err := r.Next(); err != nil || len(e.Data) != 100 {
			t.Fatalf("%d bytes, %v", len(e.Data), err)
		}
	}
	if _, err := AppendMessage(nil, Proto, textDelta("hi"), 8); err != nil {
		t.Error(err)
	}
}

func checkError(t *testing.T, err error, code Code, cause error) {
	t.Helper()
	e, typed := errors.AsType[*Error](err)
	if typed != (code != "") || typed && e.Code != code {
		t.Errorf("%v, want %q", err, code)
	}
	if err == nil || cause != nil && !errors.Is(err, cause) {
		t.Errorf("%v, want %v", err, cause)
	}
}

func damaged(tb testing.TB) []byte {
	tb.Helper()
	data := zip(tb, []byte("hello, hello, hello"))
	data[12] ^= 0xff
	return data
}

// What a header announces is not allocated before it arrives.
func TestAnnouncementsCostNothing(t *testing.T) {
	allocated := testing.AllocsPerRun(10, func() {
		r := NewEnvelopeReader(strings.NewReader("\x00\x07\xff\xff\xff"), "", MaxMessage)
		if _, err := r.Next(); err == nil {
			t.Error("no error")
		}
		if r.buf.Cap() > keepBuffer {
			t.Errorf("a buffer of %d bytes", r.buf.Cap())
		}
	})
	if allocated > 50 {
		t.Errorf("%v allocations", allocated)
	}
}

// One large envelope does not keep its memory.
func TestLargeBuffersAreFreed(t *testing.T) {
	stream := append(envelope(0, make([]byte, 1<<20)), envelope(0, []byte("x"))...)
	r := NewEnvelopeReader(bytes.NewReader(stream), "", MaxMessage)
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if r.buf.Cap() > keepBuffer {
		t.Errorf("a buffer of %d bytes", r.buf.Cap())
	}
}

func TestAppendMessageRefuses(t *testing.T) {
	kept, err := AppendMessage([]byte("x"), Proto, textDelta("0123456789"), 5)
	if string(kept) != "x" {
		t.Errorf("%q", kept)
	}
	checkError(t, err, ResourceExhausted, nil)
	kept, err = AppendMessage([]byte("x"), JSON, textDelta("\xff"), 5)
	if string(kept) != "x" || err == nil {
		t.Errorf("%q, %v", kept, err)
	}
}

func TestDecompress(t *testing.T) {
	for encoding, body := range map[string][]byte{"": []byte("hello"), "identity": []byte("hello"), "gzip": zip(t, []byte("hello"))} {
		r, err := Decompress(encoding, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != "hello" {
			t.Errorf("%s: %q, %v", encoding, got, err)
		}
	}
	_, err := Decompress("br", nil)
	checkError(t, err, Unimplemented, nil)
	broken := errors.New("broken")
	for _, c := range []struct {
		body  io.Reader
		code  Code
		cause error
	}{
		{strings.NewReader(""), InvalidArgument, io.ErrUnexpectedEOF},
		{strings.NewReader("hello, hello"), InvalidArgument, gzip.ErrHeader},
		{iotest.ErrReader(broken), "", broken},
	} {
		r, err := Decompress("gzip", c.body)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(r)
		checkError(t, err, c.code, c.cause)
	}
}

func TestCodecs(t *testing.T) {
	for _, c := range []struct {
		contentType   string
		codec         Codec
		unary, stream bool
	}{
		{"application/proto", Proto, true, false},
		{"application/json", JSON, true, false},
		{"application/json; charset=utf-8", JSON, true, false},
		{" Application/Proto ", Proto, true, false},
		{"application/connect+proto", Proto, false, true},
		{"application/connect+json", JSON, false, true},
		{"text/event-stream", Proto, false, false},
		{"application/grpc", Proto, false, false},
		{"", Proto, false, false},
	} {
		codec, ok := UnaryCodec(c.contentType)
		if ok != c.unary || ok && codec != c.codec {
			t.Errorf("unary %q: %v, %v", c.contentType, codec, ok)
		}
		if codec, ok = StreamCodec(c.contentType); ok != c.stream || ok && codec != c.codec {
			t.Errorf("stream %q: %v, %v", c.contentType, codec, ok)
		}
	}
	for _, codec := range []Codec{Proto, JSON} {
		if got, ok := UnaryCodec(codec.UnaryType()); !ok || got != codec {
			t.Errorf("%s", codec.UnaryType())
		}
		if got, ok := StreamCodec(codec.StreamType()); !ok || got != codec {
			t.Errorf("%s", codec.StreamType())
		}
		err := codec.Decode([]byte("\x07secret"), new(aiserverv1.BidiRequestId))
		checkError(t, err, InvalidArgument, nil)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%v quotes the body", err)
		}
	}
	// Unknown names in JSON are passed over; numbers of 64 bits may be strings.
	var m aiserverv1.BidiAppendRequest
	if err := JSON.Decode([]byte(`{"appendSeqno":"7","newer":{"x":[1]}}`), &m); err != nil || m.GetAppendSeqno() != 7 {
		t.Errorf("%v, %v", &m, err)
	}
}

func TestDecodeClient(t *testing.T) {
	for name, data := range map[string]string{"empty": "", "cut": "\x0a\x05", "no protobuf": "\xff\xff\xff"} {
		if _, err := DecodeClient(Proto, []byte(data)); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			checkError(t, err, InvalidArgument, nil)
		}
	}
	// A kind of message that nobody knows yet.
	m, err := DecodeClient(Proto, []byte("\xca\x3e\x00"))
	if err != nil || m.GetMessage() != nil {
		t.Errorf("%v, %v", m, err)
	}
	m, err = DecodeClient(JSON, []byte(`{"clientHeartbeat":{}}`))
	if want := (&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ClientHeartbeat{ClientHeartbeat: &agentv1.ClientHeartbeat{}}}); err != nil || !proto.Equal(m, want) {
		t.Errorf("%v, %v", m, err)
	}
}
