package pi

import (
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// codes says each kind of error in pi's words (SPEC 2.2).
var codes = map[session.Kind]piwire.ErrorCode{
	session.Internal:        piwire.CodeInternal,
	session.Invalid:         piwire.CodeInvalidRequest,
	session.NotFound:        piwire.CodeNotFound,
	session.Busy:            piwire.CodeBusy,
	session.Locked:          piwire.CodeSessionLocked,
	session.Unauthenticated: piwire.CodeInvalidRequest,
	session.Forbidden:       piwire.CodeInvalidRequest,
	session.TooLarge:        piwire.CodeInvalidRequest,
	session.Unavailable:     piwire.CodeInternal,
	session.Provider:        piwire.CodeInternal,
	session.Canceled:        piwire.CodeInternal,
}

// maxErrorText bounds a message, in bytes: it may repeat what the client sent.
const maxErrorText = 500

// protocolError projects an error. What has no kind is an internal error, and its text
// stays here (SPEC 3.2).
func protocolError(err error) *piwire.ProtocolError {
	e := session.AsError(err)
	w := &piwire.ProtocolError{Code: codes[e.Kind], Message: piwire.SafeText(e.Message[:min(len(e.Message), maxErrorText)])}
	if e.Kind == session.Internal {
		w.Message = "Internal server error"
	}
	return w
}
