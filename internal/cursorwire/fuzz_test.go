package cursorwire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"

	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// FuzzEnvelope compares a stream read at once and byte by byte, and writes it again.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x02hi\x02\x00\x00\x00\x02{}"), true)
	f.Add(envelope(1, zip(f, []byte("hello"))), true)
	f.Add(envelope(1, damaged(f)), true)
	f.Add([]byte("\x03\x00\x00\x00\x00\x00"), false)
	f.Add([]byte("\x00\xff\xff\xff\xff"), false)
	f.Fuzz(func(t *testing.T, stream []byte, zipped bool) {
		encoding := map[bool]string{true: "gzip"}[zipped]
		a := NewEnvelopeReader(bytes.NewReader(stream), encoding, 1000)
		b := NewEnvelopeReader(iotest.OneByteReader(bytes.NewReader(stream)), encoding, 1000)
		for rest := stream; ; {
			p, errA := a.Next()
			q, errB := b.Next()
			if !bytes.Equal(p.Data, q.Data) || p.End != q.End || (errA == nil) != (errB == nil) || len(p.Data) > 1000 {
				t.Fatalf("%q, %v and %q, %v", p.Data, errA, q.Data, errB)
			}
			if errA != nil {
				if _, typed := errors.AsType[*Error](errA); !typed && !errors.Is(errA, io.EOF) {
					t.Fatal(errA)
				}
				return
			}
			if p.End {
				_, _ = DecodeEnd(p.Data)
			}
			if rest[0]&flagCompressed == 0 {
				if again := envelope(rest[0], p.Data); !bytes.HasPrefix(rest, again) {
					t.Fatalf("%q is written %q", rest, again)
				}
			}
			rest = rest[envelopeHeader+(int(rest[3])<<8|int(rest[4])):]
		}
	})
}

// FuzzHex compares the reader of hex with that of the standard library.
func FuzzHex(f *testing.F) {
	for _, s := range []string{"", " 0aFF\n", "0", "0 0", "zz", "\t\t", "\v", strings.Repeat("ab", hexBlock) + " "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, wantErr := hex.DecodeString(strings.Trim(s, space))
		for _, src := range []io.Reader{strings.NewReader(s), iotest.OneByteReader(strings.NewReader(s)), iotest.DataErrReader(iotest.HalfReader(strings.NewReader(s)))} {
			got, err := decodeHex(src, 1<<20)
			if strings.Contains(s, strings.Repeat(" ", 100)) {
				continue // too much white space is refused
			}
			if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
				t.Fatalf("%q: %x, %v, want %x, %v", s, got, err, want, wantErr)
			}
		}
	})
}

// FuzzAppend compares the reader of appends with the generated code.
func FuzzAppend(f *testing.F) {
	f.Add(appendBody(f, Proto, request("r", "3a00", nil, 7)))
	f.Add(appendBody(f, Proto, request("r", "3a00", []byte("x"), -7)))
	f.Add([]byte("\x12\x03\x0a\x01r\x12\x03\x0a\x01s\x22\x01x\xfa\x7f\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := ReadAppend(bytes.NewReader(body), Proto, 1<<20)
		var want aiserverv1.BidiAppendRequest
		if err != nil {
			if _, typed := errors.AsType[*Error](err); !typed {
				t.Fatal(err)
			}
			return
		}
		if wantErr := proto.Unmarshal(body, &want); wantErr != nil {
			t.Fatalf("%+v, but %v", got, wantErr)
		}
		message := want.GetDataBinary()
		if len(message) == 0 {
			message, _ = hex.DecodeString(strings.Trim(want.GetData(), space))
		}
		if got.RequestID != strings.TrimSpace(want.GetRequestId().GetRequestId()) || got.Seq != want.GetAppendSeqno() || !bytes.Equal(got.Message, message) {
			t.Fatalf("%+v, want %v", got, &want)
		}
	})
}

// FuzzClientMessage writes what it reads, and reads the same again; what a front end asks of any
// message does not panic.
func FuzzClientMessage(f *testing.F) {
	for i, tr := range traces(f) {
		if tr.Type != "agent.v1.AgentClientMessage" || i%5 > 0 {
			continue
		}
		if data, err := Proto.Append(nil, tr.message(f)); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte("\x12\x07\x08\x07\xb2\x01\x02\x0a\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeClient(Proto, data)
		if err != nil {
			if _, typed := errors.AsType[*Error](err); !typed {
				t.Fatal(err)
			}
			return
		}
		again, err := Proto.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeClient(Proto, again)
		if err != nil || !proto.Equal(m, back) {
			t.Fatalf("%v, %v, want %v", back, err, m)
		}
		run := m.GetRunRequest()
		_, _ = RequestedModel(run.GetRequestedModel(), run.GetModelDetails())
		_ = RequestedMode(run.GetAction(), run.GetConversationState())
		_ = UserMessage(run.GetAction())
		_ = Context(run.GetAction())
	})
}
