package provider

import (
	"slices"
	"strings"
)

// Classify maps a refusal to a fault: status is the HTTP status (0 when the answer had
// already begun), code and message are what the provider said. It knows the words of the
// large providers for "too long", "too fast" and "too busy", because compatible servers
// hide those behind all kinds of statuses.
func Classify(status int, code, message string) Fault {
	code, text := strings.ToLower(code), strings.ToLower(message)
	switch {
	case status == 401 || status == 403, containsAny(code, authCodes):
		return FaultAuth
	case containsAny(code, contextCodes), status == 413,
		(status == 0 || status >= 400 && status < 500) && status != 429 && containsAny(text, contextWords):
		return FaultContext
	case containsAny(code, filterCodes):
		return FaultFilter
	case status == 429, containsAny(code, rateCodes):
		return FaultRateLimit
	case status >= 500 && status != 501, status == 408, status == 409, status == 425, containsAny(code, overloadCodes):
		return FaultOverload
	case status == 0 && containsAny(text, overloadWords):
		return FaultOverload
	case status == 0 && code == "":
		return FaultProtocol
	}
	return FaultRequest
}

// A quota that is used up comes as 429, but waiting does not help: somebody must pay.
var authCodes = []string{"authentication", "permission", "invalid_api_key", "insufficient_quota", "billing", "unauthorized"}

var contextCodes = []string{"context_length", "context_window", "request_too_large", "string_above_max_length"}

var contextWords = []string{
	"context length", "context window", "context size", "maximum context", "prompt is too long",
	"input is too long", "too many tokens", "exceeds the maximum number of tokens",
	"reduce the length of the messages", "maximum prompt length",
	"input length and `max_tokens` exceed", "too large for model",
}

var filterCodes = []string{"content_filter", "content_policy", "data_inspection_failed"}

var rateCodes = []string{"rate_limit", "too_many_requests", "429"}

var overloadCodes = []string{"overloaded", "server_error", "api_error", "internal_error", "timeout", "unavailable", "500", "502", "503", "504", "529"}

var overloadWords = []string{"overloaded", "internal server error", "try again", "temporarily"}

func containsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}
