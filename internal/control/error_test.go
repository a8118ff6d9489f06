package control

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"

	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

func info(t *testing.T, err *connect.Error) *roostv1.ErrorInfo {
	t.Helper()
	if len(err.Details()) != 1 {
		t.Fatalf("%v has %d details, want 1", err, len(err.Details()))
	}
	m, e := connectproto.UnmarshalErrorDetail(err.Details()[0])
	if e != nil {
		t.Fatal(e)
	}
	return m.(*roostv1.ErrorInfo)
}

func TestEveryKindHasACode(t *testing.T) {
	n := 0
	for k := session.Internal; k == session.Internal || k.String() != session.Internal.String(); k++ {
		n++
		code, ok := codes[k]
		if !ok {
			t.Errorf("kind %v has no code", k)
		}
		got := wireError(fmt.Errorf("wrapped: %w", session.Errorf(k, "why")))
		if i := info(t, got); got.Code() != code || i.Kind != k.String() || i.Retry != session.Errorf(k, "").Retry {
			t.Errorf("kind %v: got %v with %v", k, got, i)
		}
		if got.Message() != "why" {
			t.Errorf("kind %v: message %q", k, got.Message())
		}
	}
	if n != len(codes) {
		t.Errorf("%d kinds, %d codes", n, len(codes))
	}
}

func TestErrorsWithoutKind(t *testing.T) {
	for _, c := range []struct {
		err  error
		code connect.Code
		kind string
	}{
		{errors.New("/secret/path"), connect.CodeInternal, "internal"},
		{context.DeadlineExceeded, connect.CodeCanceled, "canceled"},
		{fmt.Errorf("x: %w", context.Canceled), connect.CodeCanceled, "canceled"},
		{connect.NewError(connect.CodeInvalidArgument, "bad JSON"), connect.CodeInvalidArgument, "invalid"},
		{connect.NewError(connect.CodeResourceExhausted, "too long"), connect.CodeResourceExhausted, "too_large"},
		{connect.NewError(connect.CodeUnimplemented, "no such call"), connect.CodeUnimplemented, "not_found"},
		{connect.NewError(connect.CodeUnknown, "?"), connect.CodeUnknown, "internal"},
	} {
		got := wireError(c.err)
		if got.Code() != c.code || info(t, got).Kind != c.kind {
			t.Errorf("%v: got %v, kind %s", c.err, got, info(t, got).Kind)
		}
		if c.kind == "internal" && got.Message() == c.err.Error() {
			t.Errorf("the message gives away %q", got.Message())
		}
	}
}
