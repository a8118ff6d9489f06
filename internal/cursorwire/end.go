package cursorwire

import (
	"encoding/base64"
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/proto"

	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

const detailsType = "aiserver.v1.ErrorDetails"

// errorJSON is an error as it stands in a unary reply and in the end of a stream.
type errorJSON struct {
	Code    Code         `json:"code"`
	Message string       `json:"message,omitempty"`
	Details []detailJSON `json:"details,omitempty"`
}

type detailJSON struct {
	Type string `json:"type"`
	// Value is base64 without padding.
	Value string `json:"value"`
}

type endJSON struct {
	Error    *errorJSON          `json:"error,omitempty"`
	Metadata map[string][]string `json:"metadata,omitempty"`
}

// MarshalError is the body of a unary reply with err; its content type is application/json, whatever
// the codec of the request, and its status err.Code.HTTPStatus().
func MarshalError(err *Error) []byte { return mustJSON(toJSON(err)) }

// AppendEnd appends the envelope that ends a stream to dst: a clean end if err is nil. A client that
// does not get one takes the connection for lost (section 1.3).
func AppendEnd(dst []byte, err *Error) []byte {
	end := endJSON{}
	if err != nil {
		end.Error = toJSON(err)
	}
	start := len(dst)
	dst = append(append(dst, make([]byte, envelopeHeader)...), mustJSON(end)...)
	dst, _ = closeEnvelope(dst, start, flagEnd, len(dst)) // within a limit of its own length
	return dst
}

// DecodeEnd reads the data of an end envelope: nil for a clean end, otherwise what the stream ended
// with. bad is not nil if data is not an end.
func DecodeEnd(data []byte) (end *Error, bad error) {
	var e endJSON
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e.Error == nil {
		return nil, nil
	}
	return fromJSON(e.Error)
}

// UnmarshalError reads the body of a unary reply that is not a success.
func UnmarshalError(body []byte) (reply *Error, bad error) {
	var e errorJSON
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	return fromJSON(&e)
}

func toJSON(err *Error) *errorJSON {
	e := &errorJSON{Code: err.Code, Message: err.Message}
	if err.Details != nil {
		value, encodeErr := proto.MarshalOptions{Deterministic: true}.Marshal(err.Details)
		if encodeErr == nil { // never fails: no required fields, and strings are not checked
			e.Details = []detailJSON{{detailsType, base64.RawStdEncoding.EncodeToString(value)}}
		}
	}
	return e
}

func fromJSON(e *errorJSON) (*Error, error) {
	if e.Code == "" {
		return nil, errors.New("an error without a code")
	}
	out := &Error{Code: e.Code, Message: e.Message}
	for _, d := range e.Details {
		if d.Type != detailsType {
			continue
		}
		value, err := base64.RawStdEncoding.DecodeString(d.Value)
		if err != nil {
			return nil, err
		}
		out.Details = new(aiserverv1.ErrorDetails)
		if err := proto.Unmarshal(value, out.Details); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mustJSON encodes structs of strings, which cannot fail.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
