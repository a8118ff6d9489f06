package cursorwire

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxRequestID is the limit of a request id in bytes; real ones are UUIDs.
const maxRequestID = 128

// The fields of aiserver.v1.BidiAppendRequest and, for requestIDField, of BidiRequestId.
const (
	appendData      protowire.Number = 1
	appendRequestID protowire.Number = 2
	appendSeqno     protowire.Number = 3
	appendBinary    protowire.Number = 4
	requestIDField  protowire.Number = 1
)

var errBothEmpty = errors.New("neither data nor data_binary")

// Append is what one BidiAppendRequest says.
type Append struct {
	// RequestID pairs it with a RunSSE; it is not empty and at most 128 bytes long.
	RequestID string
	// Seq counts the appends of one stream from 0; 0 also stands for an absent number (section 2.2).
	Seq int64
	// Message is an encoded client message, for [DecodeClient] with the codec Proto; never empty.
	Message []byte
}

// ReadAppend reads the body of BidiAppend, decompressed, with a message of at most limit bytes. Of a
// body in protobuf it holds the message only, never its hex form, which is twice as long.
//
// The hex digits of data may be of either case and have white space around them; data_binary, if it
// is there too, is preferred (section 2.1). The error is an [*Error]: invalid_argument for a body
// that is not an append, resource_exhausted for one above the limit. Otherwise it is what the source
// returned.
func ReadAppend(body io.Reader, codec Codec, limit int) (Append, error) {
	var a Append
	var err error
	src := &sourceReader{Reader: body}
	if codec == JSON {
		a, err = readAppendJSON(src, limit)
	} else {
		a, err = (&appendReader{src: bufio.NewReader(src), limit: limit}).read()
	}
	if err != nil {
		return Append{}, appendFailure(err, src.err)
	}
	switch a.RequestID = strings.TrimSpace(a.RequestID); {
	case a.RequestID == "":
		return Append{}, malformed(nil, "the append has no request_id")
	case len(a.RequestID) > maxRequestID:
		return Append{}, malformed(nil, "the request_id is longer than %d bytes", maxRequestID)
	case len(a.Message) == 0:
		return Append{}, malformed(errBothEmpty, "the append has no message")
	}
	return a, nil
}

// sourceReader remembers what its source failed with.
type sourceReader struct {
	io.Reader
	err error
}

func (r *sourceReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// appendFailure tells what is wrong with the body from a failure of the source.
func appendFailure(err, source error) error {
	if source != nil {
		return source
	}
	if e, worded := errors.AsType[*Error](err); worded {
		return e
	}
	return malformed(err, "the body is not an append")
}

// appendReader reads a BidiAppendRequest field by field.
type appendReader struct {
	src   *bufio.Reader
	limit int
}

func (r *appendReader) read() (Append, error) {
	var a Append
	var fromHex []byte
	for {
		tag, err := r.varint()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			num, typ := protowire.DecodeTag(tag)
			err = r.field(&a, &fromHex, num, typ)
		}
		if err != nil {
			return Append{}, err
		}
	}
	if len(a.Message) == 0 {
		a.Message = fromHex
	}
	return a, nil
}

func (r *appendReader) field(a *Append, fromHex *[]byte, num protowire.Number, typ protowire.Type) error {
	switch {
	case num == appendData && typ == protowire.BytesType:
		return r.sized(2*r.limit+hexSlack, func(src io.Reader) (err error) {
			*fromHex, err = decodeHex(src, r.limit)
			return err
		})
	case num == appendBinary && typ == protowire.BytesType:
		return r.sized(r.limit, func(src io.Reader) (err error) {
			a.Message, err = io.ReadAll(src)
			return err
		})
	case num == appendRequestID && typ == protowire.BytesType:
		return r.sized(maxSmall, func(src io.Reader) error { return readRequestID(src, &a.RequestID) })
	case num == appendSeqno && typ == protowire.VarintType:
		v, err := r.varint()
		a.Seq = int64(v)
		return unexpectedEnd(err)
	default:
		return r.skip(num, typ)
	}
}

// sized hands the bytes of a length-delimited field to use, which reads all or fails.
func (r *appendReader) sized(limit int, use func(io.Reader) error) error {
	n, err := r.varint()
	if err != nil {
		return unexpectedEnd(err)
	}
	if n > uint64(limit) {
		return tooLarge(r.limit)
	}
	field := &io.LimitedReader{R: r.src, N: int64(n)}
	if err := use(field); err != nil {
		return unexpectedEnd(err)
	}
	if field.N > 0 { // the body ended first
		return io.ErrUnexpectedEOF
	}
	return nil
}

// skip passes over a field that is not known.
func (r *appendReader) skip(num protowire.Number, typ protowire.Type) error {
	var n uint64
	var err error
	switch {
	case num < protowire.MinValidNumber || num > protowire.MaxValidNumber:
		return errors.New("invalid field number")
	case typ == protowire.VarintType:
		_, err = r.varint()
	case typ == protowire.Fixed32Type:
		n = 4
	case typ == protowire.Fixed64Type:
		n = 8
	case typ == protowire.BytesType:
		n, err = r.varint()
	default:
		return errors.New("invalid wire type")
	}
	switch {
	case err != nil:
		return unexpectedEnd(err)
	case n > uint64(r.limit):
		return tooLarge(r.limit)
	}
	_, err = io.CopyN(io.Discard, r.src, int64(n))
	return unexpectedEnd(err)
}

// varint returns io.EOF only if the source ends before it.
func (r *appendReader) varint() (uint64, error) {
	var buf [10]byte
	for i := range buf {
		b, err := r.src.ReadByte()
		if err != nil && i > 0 {
			return 0, unexpectedEnd(err)
		}
		if err != nil {
			return 0, err
		}
		if buf[i] = b; b < 0x80 {
			v, n := protowire.ConsumeVarint(buf[:i+1])
			return v, protowire.ParseError(n)
		}
	}
	return 0, errors.New("varint of more than 10 bytes")
}

func readRequestID(src io.Reader, id *string) error {
	data, err := io.ReadAll(src)
	for err == nil && len(data) > 0 {
		num, typ, n := protowire.ConsumeField(data)
		if err = protowire.ParseError(n); err != nil {
			break
		}
		if num == requestIDField && typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data[protowire.SizeTag(num):n])
			*id = string(value)
		}
		data = data[n:]
	}
	return err
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readAppendJSON reads the whole body: clients send JSON by hand only.
func readAppendJSON(body io.Reader, limit int) (Append, error) {
	data, err := io.ReadAll(io.LimitReader(body, int64(2*limit+maxSmall)+1))
	if err != nil {
		return Append{}, err
	}
	if len(data) > 2*limit+maxSmall {
		return Append{}, tooLarge(limit)
	}
	var m struct {
		Data      string `json:"data"`
		RequestID struct {
			RequestID string `json:"requestId"`
		} `json:"requestId"`
		Seq    json.RawMessage `json:"appendSeqno"`
		Binary []byte          `json:"dataBinary"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return Append{}, err
	}
	a := Append{RequestID: m.RequestID.RequestID, Message: m.Binary}
	if text := strings.Trim(string(m.Seq), `"`); text != "" && text != "null" {
		if a.Seq, err = strconv.ParseInt(text, 10, 64); err != nil {
			return Append{}, malformed(err, "append_seqno is not an integer")
		}
	}
	if len(a.Message) == 0 {
		a.Message, err = decodeHex(strings.NewReader(m.Data), limit)
	}
	if len(a.Message) > limit {
		return Append{}, tooLarge(limit)
	}
	return a, err
}
