package cursorwire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

func appendBody(tb testing.TB, codec Codec, m *aiserverv1.BidiAppendRequest) []byte {
	tb.Helper()
	body, err := codec.Append(nil, m)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func request(id, data string, binary []byte, seq int64) *aiserverv1.BidiAppendRequest {
	return &aiserverv1.BidiAppendRequest{Data: data, RequestId: &aiserverv1.BidiRequestId{RequestId: id}, AppendSeqno: seq, DataBinary: binary}
}

func TestReadAppend(t *testing.T) {
	for name, c := range map[string]struct {
		in   *aiserverv1.BidiAppendRequest
		want Append
	}{
		"hex":               {request("r", "3a00", nil, 3), Append{"r", 3, []byte("\x3a\x00")}},
		"upper case":        {request("r", "3AfF", nil, 0), Append{"r", 0, []byte("\x3a\xff")}},
		"white space":       {request(" r\n", " \r\n3a00\t\n", nil, -1), Append{"r", -1, []byte("\x3a\x00")}},
		"binary":            {request("r", "", []byte("\x3a\x00"), 1<<62), Append{"r", 1 << 62, []byte("\x3a\x00")}},
		"both":              {request("r", "ff", []byte("\x3a\x00"), 1), Append{"r", 1, []byte("\x3a\x00")}},
		"as long as can be": {request("r", strings.Repeat("00", 1000), nil, 1), Append{"r", 1, make([]byte, 1000)}},
	} {
		for _, codec := range []Codec{Proto, JSON} {
			body := appendBody(t, codec, c.in)
			for _, src := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body)), iotest.DataErrReader(bytes.NewReader(body))} {
				got, err := ReadAppend(src, codec, 1000)
				if err != nil || got.RequestID != c.want.RequestID || got.Seq != c.want.Seq || !bytes.Equal(got.Message, c.want.Message) {
					t.Errorf("%s: %s: %+v, %v", name, codec, got, err)
				}
			}
		}
	}
}

// Whatever a newer client adds is passed over.
func TestReadAppendPassesOverUnknownFields(t *testing.T) {
	m := request("r", "3a00", nil, 9)
	addUnknown(m.ProtoReflect())
	body := append([]byte("\x08\x05"), appendBody(t, Proto, m)...) // field 1 as a number is an unknown field
	got, err := ReadAppend(bytes.NewReader(body), Proto, 1000)
	if err != nil || got.Seq != 9 || string(got.Message) != "\x3a\x00" || got.RequestID != "r" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = ReadAppend(strings.NewReader(`{"data":"3a00","requestId":{"requestId":"r","x":1},"appendSeqno":9,"y":[{}]}`), JSON, 1000)
	if err != nil || got.Seq != 9 || string(got.Message) != "\x3a\x00" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadAppendRefuses(t *testing.T) {
	broken := errors.New("broken")
	type bad struct {
		body  io.Reader
		codec Codec
		code  Code
		cause error
	}
	cases := map[string]bad{
		"no bytes":             {strings.NewReader(""), Proto, InvalidArgument, nil},
		"no json":              {strings.NewReader("{"), JSON, InvalidArgument, nil},
		"a cut field":          {strings.NewReader("\x0a\x04ab"), Proto, InvalidArgument, io.ErrUnexpectedEOF},
		"a cut binary":         {strings.NewReader("\x22\x04ab"), Proto, InvalidArgument, io.ErrUnexpectedEOF},
		"a cut length":         {strings.NewReader("\x0a"), Proto, InvalidArgument, io.ErrUnexpectedEOF},
		"a cut number":         {strings.NewReader("\x18\x80"), Proto, InvalidArgument, io.ErrUnexpectedEOF},
		"a cut unknown field":  {strings.NewReader("\x7a\x04ab"), Proto, InvalidArgument, io.ErrUnexpectedEOF},
		"a cut tag":            {strings.NewReader("\x80"), Proto, InvalidArgument, io.ErrUnexpectedEOF},
		"an endless number":    {strings.NewReader(strings.Repeat("\xff", 11)), Proto, InvalidArgument, nil},
		"an overflow":          {strings.NewReader("\x18" + strings.Repeat("\xff", 9) + "\x7f"), Proto, InvalidArgument, nil},
		"a group":              {strings.NewReader("\x0b\x0c"), Proto, InvalidArgument, nil},
		"field 0":              {strings.NewReader("\x00\x00"), Proto, InvalidArgument, nil},
		"a damaged id":         {strings.NewReader("\x12\x01\x0a"), Proto, InvalidArgument, nil},
		"an endless id":        {strings.NewReader("\x12\xff\xff\x7f"), Proto, ResourceExhausted, nil},
		"endless data":         {strings.NewReader("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), Proto, ResourceExhausted, nil},
		"endless binary":       {strings.NewReader("\x22\xe9\x07"), Proto, ResourceExhausted, nil},
		"an endless unknown":   {strings.NewReader("\x7a\xff\xff\x7f"), Proto, ResourceExhausted, nil},
		"white space for ever": {bytes.NewReader(appendBody(t, Proto, request("r", "00"+strings.Repeat(" ", 1500), nil, 1))), Proto, InvalidArgument, nil},
		"a broken source":      {iotest.ErrReader(broken), Proto, "", broken},
		"a source that breaks": {io.MultiReader(strings.NewReader("\x0a\x0400"), iotest.ErrReader(broken)), Proto, "", broken},
		"a broken JSON source": {iotest.ErrReader(broken), JSON, "", broken},
		"a seqno of letters":   {strings.NewReader(`{"data":"00","requestId":{"requestId":"r"},"appendSeqno":"x"}`), JSON, InvalidArgument, nil},
		"endless JSON":         {strings.NewReader(strings.Repeat(" ", 2000+maxSmall+1)), JSON, ResourceExhausted, nil},
		"large binary in JSON": {strings.NewReader(`{"dataBinary":"` + base64.StdEncoding.EncodeToString(make([]byte, 1001)) + `"}`), JSON, ResourceExhausted, nil},
	}
	for name, m := range map[string]*aiserverv1.BidiAppendRequest{
		"no id":                request("", "00", nil, 1),
		"a blank id":           request(" ", "00", nil, 1),
		"a long id":            request(strings.Repeat("x", 129), "00", nil, 1),
		"no message":           request("r", "", nil, 1),
		"a blank message":      request("r", " \n", nil, 1),
		"half a byte":          request("r", "000", nil, 1),
		"no hex":               request("r", "0g", nil, 1),
		"a space inside":       request("r", "00 00", nil, 1),
		"a space inside later": request("r", strings.Repeat("0", hexBlock)+"  00", nil, 1),
		"a prefix":             request("r", "0x00", nil, 1),
	} {
		for _, codec := range []Codec{Proto, JSON} {
			cases[name+" in "+codec.String()] = bad{bytes.NewReader(appendBody(t, codec, m)), codec, InvalidArgument, nil}
		}
	}
	for _, codec := range []Codec{Proto, JSON} {
		body := appendBody(t, codec, request("r", strings.Repeat("0", 2002), nil, 1))
		cases["too long in "+codec.String()] = bad{bytes.NewReader(body), codec, ResourceExhausted, nil}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			limit := 1000
			if strings.HasPrefix(name, "a space inside later") {
				limit = 10000
			}
			got, err := ReadAppend(c.body, c.codec, limit)
			checkError(t, err, c.code, c.cause)
			if got.Message != nil || got.RequestID != "" {
				t.Errorf("%+v besides the error", got)
			}
		})
	}
}

// The hex form of a large message is never held: reading one costs what the message costs, and the
// growth of a buffer.
func TestReadAppendStreams(t *testing.T) {
	const size = 8 << 20
	body := appendBody(t, Proto, request("r", strings.Repeat("ab", size), nil, 1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a, err := ReadAppend(bytes.NewReader(body), Proto, MaxMessage)
	runtime.ReadMemStats(&after)
	if err != nil || len(a.Message) != size || a.Message[size-1] != 0xab {
		t.Fatalf("%d bytes, %v", len(a.Message), err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8*size {
		t.Errorf("%d bytes for a message of %d", got, size)
	}
}

// The numbers of the fields that are read by hand are those of the tables.
func TestAppendFields(t *testing.T) {
	for name, number := range map[string]protoreflect.FieldNumber{
		"BidiAppendRequest.data": appendData, "BidiAppendRequest.request_id": appendRequestID,
		"BidiAppendRequest.append_seqno": appendSeqno, "BidiAppendRequest.data_binary": appendBinary,
		"BidiRequestId.request_id": requestIDField,
	} {
		if got := find[protoreflect.FieldDescriptor](t, "aiserver.v1."+name).Number(); got != number {
			t.Errorf("%s is %d, not %d", name, got, number)
		}
	}
}

// The messages of the traces come through an append unchanged.
func TestTracesAsAppends(t *testing.T) {
	for i, tr := range traces(t) {
		if tr.Type != "agent.v1.AgentClientMessage" {
			continue
		}
		data, err := Proto.Append(nil, tr.message(t))
		if err != nil {
			t.Fatal(err)
		}
		body := appendBody(t, Proto, request(fmt.Sprint("r", i), hex.EncodeToString(data), nil, int64(i)))
		a, err := ReadAppend(bytes.NewReader(body), Proto, MaxMessage)
		if err != nil {
			t.Fatal(err)
		}
		m, err := DecodeClient(Proto, a.Message)
		if err != nil || a.Seq != int64(i) || !proto.Equal(m, tr.message(t)) {
			t.Errorf("%s: %v, %v", tr.Trace, m, err)
		}
	}
}

func BenchmarkReadAppend(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		body := appendBody(b, Proto, request("0d6a3a4e-5a0b-4d1c-9b1e-5b8a5d1f2c3d", strings.Repeat("ab", size), nil, 7))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := ReadAppend(bytes.NewReader(body), Proto, MaxMessage); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendMessage(b *testing.B) {
	m, buf := textDelta("a delta of a few words"), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = AppendMessage(buf[:0], Proto, m, MaxMessage); err != nil {
			b.Fatal(err)
		}
	}
}
