package cursorwire

import (
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// The failures of a run, each with what a client does about it: it picks the first rule of
// section 1.5 that fits, so code, kind and retryability belong together. A client retries at most
// three times, and then shows title and detail.

// ProviderFailed is for a failed call of a model. retryable must be false for whatever a repetition
// cannot cure (a refused request, a wrong key, an unknown model): the client shows a card then, and
// otherwise retries by itself. Limits of the user's own account are provider failures too; the kinds
// for rate limits make the client offer an upgrade instead.
func ProviderFailed(detail string, retryable bool) *Error {
	code := FailedPrecondition
	if retryable {
		code = Unavailable
	}
	return newFailure(code, aiserverv1.ErrorDetails_ERROR_PROVIDER_ERROR, "Provider Error", detail, retryable)
}

// BadProviderKey is for a provider's key that is missing or refused. The client asks for
// configuration.
func BadProviderKey(detail string) *Error {
	return newFailure(FailedPrecondition, aiserverv1.ErrorDetails_ERROR_BAD_USER_API_KEY, "API Key Refused", detail, false)
}

// BadModel is for a model that is not offered. The client shows a card.
func BadModel(detail string) *Error {
	return newFailure(InvalidArgument, aiserverv1.ErrorDetails_ERROR_BAD_MODEL_NAME, "Unknown Model", detail, false)
}

// ConversationTooLong is for a context that does not fit, even after compaction. The client shows a
// card.
func ConversationTooLong(detail string) *Error {
	return newFailure(InvalidArgument, aiserverv1.ErrorDetails_ERROR_CONVERSATION_TOO_LONG, "Context Too Large", detail, false)
}

// Refused is for a run that cannot start or go on, whatever is tried. The client shows a card.
func Refused(title, detail string) *Error {
	return newFailure(FailedPrecondition, aiserverv1.ErrorDetails_ERROR_CUSTOM_MESSAGE, title, detail, false)
}

// Interrupted is for a run that this server no longer has, or cannot go on with now. The client
// resumes it by itself from its last checkpoint.
func Interrupted(detail string) *Error {
	return newFailure(Unavailable, aiserverv1.ErrorDetails_ERROR_INTERNAL, "Server Error", detail, true)
}

// NotLoggedIn is for a missing or wrong token. The client asks for a login.
func NotLoggedIn(detail string) *Error {
	return newFailure(Unauthenticated, aiserverv1.ErrorDetails_ERROR_NOT_LOGGED_IN, "Not Logged In", detail, false)
}

// Stopped is for a run that was cancelled or superseded. The client stops without a word.
func Stopped(message string) *Error { return NewError(Canceled, message) }

func newFailure(code Code, kind aiserverv1.ErrorDetails_Error, title, detail string, retryable bool) *Error {
	return &Error{Code: code, Message: detail, Details: &aiserverv1.ErrorDetails{
		Error:      kind,
		IsExpected: new(false),
		Details: &aiserverv1.CustomErrorDetails{
			Title:                    title,
			Detail:                   detail,
			IsRetryable:              new(retryable),
			ShowRequestId:            new(true),
			ShouldShowImmediateError: new(!retryable),
		},
	}}
}
