package cursortest

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/roost-dev/roost/internal/cursorwire"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

func TestClassify(t *testing.T) {
	withKind := func(code cursorwire.Code, kind int32, retryable *bool) *cursorwire.Error {
		return &cursorwire.Error{Code: code, Message: "m", Details: &aiserverv1.ErrorDetails{
			Error: aiserverv1.ErrorDetails_Error(kind), Details: &aiserverv1.CustomErrorDetails{IsRetryable: retryable},
		}}
	}
	action := withKind(cursorwire.Unavailable, 57, new(true))
	action.Details.Details.AnalyticsMetadata = &aiserverv1.ErrorAnalyticsMetadata{ActionRequired: new("pay")}
	for i, test := range []struct {
		err  error
		want Class
	}{
		{cursorwire.NewError(cursorwire.Canceled, "stop"), Cancelled},
		{cursorwire.NewError(cursorwire.Aborted, "read ECONNRESET"), TransportError},
		{withKind(cursorwire.Internal, 21, nil), Cancelled},
		{withKind(cursorwire.Internal, 35, nil), Cancelled},
		{action, ActionRequired},
		{withKind(cursorwire.Internal, 11, nil), ActionRequired},
		{withKind(cursorwire.Internal, 50, nil), ActionRequired},
		{withKind(cursorwire.Internal, 45, nil), ActionRequired},
		{withKind(cursorwire.Internal, 42, new(true)), ActionRequired},
		{withKind(cursorwire.Internal, 29, nil), NonRetriable},
		{withKind(cursorwire.Internal, 29, new(true)), ServerError},
		{withKind(cursorwire.Internal, 57, new(false)), NonRetriable},
		{withKind(cursorwire.Internal, 57, nil), ServerError},
		{cursorwire.NewError(cursorwire.Unauthenticated, "who"), ActionRequired},
		{cursorwire.NewError(cursorwire.PermissionDenied, "no"), NonRetriable},
		{withKind(cursorwire.PermissionDenied, 57, new(true)), ServerError},
		{cursorwire.NewError(cursorwire.InvalidArgument, "protocol error: what"), TransportError},
		{cursorwire.NewError(cursorwire.InvalidArgument, "what"), ServerError},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), TransportError},
		{&sendError{cursorwire.NewError(cursorwire.Internal, "append")}, ServerError},
		{errors.New("reset"), TransportError},
	} {
		if got := classify(test.err, false); got.Class != test.want || !errors.Is(got, test.err) {
			t.Errorf("%d: %v is %q, want %q", i, test.err, got.Class, test.want)
		}
	}
}

func TestFailureText(t *testing.T) {
	if got := classify(cursorwire.ProviderFailed("no quota", false), false).Text; got != "Provider Error no quota" {
		t.Errorf("with details %q", got)
	}
	if got := classify(cursorwire.NewError(cursorwire.Internal, "plain"), false).Text; got != "plain" {
		t.Errorf("without %q", got)
	}
}
