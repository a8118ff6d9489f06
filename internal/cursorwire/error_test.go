package cursorwire

import (
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

var codes = []Code{
	Canceled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied, ResourceExhausted,
	FailedPrecondition, Aborted, OutOfRange, Unimplemented, Internal, Unavailable, DataLoss, Unauthenticated,
}

// class is what a client makes of a failed stream: the rules of section 1.5 in their order.
func class(e *Error) string {
	kind := int32(e.Details.GetError())
	var retryable *bool
	if d := e.Details.GetDetails(); d != nil {
		retryable = d.IsRetryable
	}
	in := func(kinds ...int32) bool { return slices.Contains(kinds, kind) }
	switch {
	case e.Code == Canceled || e.Code == Aborted, in(21, 35):
		return "cancelled"
	case e.Details.GetDetails().GetAnalyticsMetadata().GetActionRequired() != "":
		return "action"
	case in(2, 18, 11, 12, 3, 38, 46, 47):
		return "login"
	case in(9, 7, 23, 10, 8, 50, 51, 22):
		return "upgrade"
	case in(44, 45):
		return "payment"
	case in(1, 42, 30):
		return "config"
	case in(29) && (retryable == nil || !*retryable), retryable != nil && !*retryable:
		return "card"
	case e.Code == Unauthenticated:
		return "login"
	case e.Code == PermissionDenied && (retryable == nil || !*retryable):
		return "card"
	default:
		return "retry"
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		e    *Error
		want string
	}{
		"provider, again":    {ProviderFailed("busy", true), "retry"},
		"provider, for good": {ProviderFailed("refused", false), "card"},
		"provider key":       {BadProviderKey("x"), "config"},
		"model":              {BadModel("x"), "card"},
		"too long":           {ConversationTooLong("x"), "card"},
		"refused":            {Refused("No", "x"), "card"},
		"interrupted":        {Interrupted("x"), "retry"},
		"login":              {NotLoggedIn("x"), "login"},
		"stopped":            {Stopped("x"), "cancelled"},
		"plain":              {NewError(Internal, "x"), "retry"},
		"malformed":          {malformed(nil, "x"), "retry"},
	} {
		if got := class(c.e); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		for where, read := range map[string]func(*Error) (*Error, error){
			"end":   func(e *Error) (*Error, error) { return DecodeEnd(AppendEnd(nil, e)[envelopeHeader:]) },
			"unary": func(e *Error) (*Error, error) { return UnmarshalError(MarshalError(e)) },
		} {
			back, bad := read(c.e)
			if bad != nil || back.Code != c.e.Code || back.Message != c.e.Message || !proto.Equal(back.Details, c.e.Details) {
				t.Errorf("%s: %s: %v, %v", name, where, back, bad)
			}
		}
	}
}

func TestDecodeEnd(t *testing.T) {
	for data, ok := range map[string]bool{
		`{}`: true, `{"metadata":{"a":["b"]}}`: true, `{"error":null}`: true,
		`{"error":{"code":"internal","details":[{"type":"other","value":"?"}]}}`: true,
		``: false, `[]`: false, `{"error":{}}`: false, `{"error":{"message":"x"}}`: false,
		`{"error":{"code":"internal","details":[{"type":"aiserver.v1.ErrorDetails","value":"?"}]}}`:    false,
		`{"error":{"code":"internal","details":[{"type":"aiserver.v1.ErrorDetails","value":"/w"}]}}`:   false,
		`{"error":{"code":"internal","details":[{"type":"aiserver.v1.ErrorDetails","value":"CDk="}]}}`: false,
	} {
		if _, bad := DecodeEnd([]byte(data)); (bad == nil) != ok {
			t.Errorf("%s: %v", data, bad)
		}
	}
	if _, bad := UnmarshalError([]byte("<html>")); bad == nil {
		t.Error("HTML is an error of this protocol")
	}
	if end, bad := DecodeEnd(AppendEnd(nil, nil)[envelopeHeader:]); end != nil || bad != nil {
		t.Errorf("%v, %v", end, bad)
	}
}

// Details whose text is not UTF-8 still make an end that clients can read.
func TestEndIsAlwaysJSON(t *testing.T) {
	end, bad := DecodeEnd(AppendEnd(nil, Refused("\xff", "\xfe\x00\"</script>"))[envelopeHeader:])
	if bad != nil || end.Details.GetError() != aiserverv1.ErrorDetails_ERROR_CUSTOM_MESSAGE || end.Details.GetDetails().GetTitle() != "\xff" {
		t.Errorf("%v, %v", end, bad)
	}
}

func TestStatus(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range codes {
		status := c.HTTPStatus()
		if status < 400 || status > 599 {
			t.Errorf("%s: %d", c, status)
		}
		seen[status] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d statuses: %v", len(seen), seen)
	}
	if NotFound.HTTPStatus() != 404 || Unauthenticated.HTTPStatus() != 401 || Unavailable.HTTPStatus() != 503 ||
		Canceled.HTTPStatus() != 499 || Unimplemented.HTTPStatus() != 501 || Code("odd").HTTPStatus() != 500 {
		t.Error("a code has the status of another one")
	}
}

func TestErrorWraps(t *testing.T) {
	e := &Error{Code: Internal, Message: "m", Cause: io.ErrUnexpectedEOF}
	if !errors.Is(e, io.ErrUnexpectedEOF) || e.Error() != "internal: m" {
		t.Errorf("%v", e)
	}
}
