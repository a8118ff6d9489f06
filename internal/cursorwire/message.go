package cursorwire

import (
	"errors"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// errNoMessage is for a client message that says nothing and holds nothing unknown either.
var errNoMessage = errors.New("empty")

// DecodeClient reads one message of a client (section 3). Fields that are not known are kept; a
// message of a kind that is not known has a nil Message and unknown fields, and is for the caller to
// pass over. The error is an [*Error] with the code invalid_argument.
func DecodeClient(codec Codec, data []byte) (*agentv1.AgentClientMessage, error) {
	m := new(agentv1.AgentClientMessage)
	if err := codec.Decode(data, m); err != nil {
		return nil, err
	}
	if codec == Proto && m.GetMessage() == nil && len(m.ProtoReflect().GetUnknown()) == 0 {
		return nil, malformed(errNoMessage, "the client message is empty")
	}
	return m, nil
}

// AppendMessage appends m in an envelope to dst. It fails as [Codec.Append] does, and if m is longer
// than limit bytes; dst is returned unchanged then.
func AppendMessage(dst []byte, codec Codec, m proto.Message, limit int) ([]byte, error) {
	out, err := codec.Append(append(dst, make([]byte, envelopeHeader)...), m)
	if err != nil {
		return dst, err
	}
	return closeEnvelope(out, len(dst), 0, limit)
}
