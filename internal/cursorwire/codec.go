package cursorwire

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// MaxMessage is the limit in bytes of one message, decompressed and without hex, that a server of
// this protocol has to accept (section 1.8).
const MaxMessage = 128 << 20

// Codec is how a message is written. A reply has the codec of its request.
type Codec int

// The codecs.
const (
	Proto Codec = iota
	JSON
)

// UnaryCodec tells the codec from the content type of a unary request.
func UnaryCodec(contentType string) (Codec, bool) {
	return codecOf(contentType, "application/")
}

// StreamCodec tells the codec from the content type of a request whose body is envelopes.
func StreamCodec(contentType string) (Codec, bool) {
	return codecOf(contentType, "application/connect+")
}

func codecOf(contentType, prefix string) (Codec, bool) {
	mediaType, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case prefix + "proto":
		return Proto, true
	case prefix + "json":
		return JSON, true
	default:
		return Proto, false
	}
}

// UnaryType is the content type of a unary body.
func (c Codec) UnaryType() string { return "application/" + c.String() }

// StreamType is the content type of a body of envelopes. A stock client reads no other
// (section 1.3).
func (c Codec) StreamType() string { return "application/connect+" + c.String() }

// String is the codec's name in content types.
func (c Codec) String() string {
	if c == JSON {
		return "json"
	}
	return "proto"
}

// Append appends m to dst. It fails for JSON only, when a string is not UTF-8; dst is returned
// unchanged then.
func (c Codec) Append(dst []byte, m proto.Message) ([]byte, error) {
	var out []byte
	var err error
	if c == JSON {
		out, err = protojson.MarshalOptions{}.MarshalAppend(dst, m)
	} else {
		out, err = proto.MarshalOptions{}.MarshalAppend(dst, m)
	}
	if err != nil {
		return dst, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return out, nil
}

// Decode reads data into m, which should be empty. The error is an [*Error] with the code
// invalid_argument that quotes nothing of data.
func (c Codec) Decode(data []byte, m proto.Message) error {
	var err error
	if c == JSON {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, m)
	} else {
		err = proto.Unmarshal(data, m)
	}
	if err != nil {
		return malformed(err, "the body is not a %s in %s", m.ProtoReflect().Descriptor().FullName(), c)
	}
	return nil
}
