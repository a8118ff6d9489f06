package httpcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/roost-dev/roost/internal/provider"
)

const (
	maxErrorBody    = 64 << 10 // bytes read of a refusal
	maxErrorMessage = 500      // characters of it that a person is shown
)

// refusal returns why res is not an event stream, or nil when it may be one.
func refusal(res *http.Response) *provider.Error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")) // "" when unreadable
	if res.StatusCode == http.StatusOK && kind != "application/json" && kind != "text/html" {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // what there is of it is enough
	code, message := Explain(body)
	if res.StatusCode == http.StatusOK {
		if code == "" && message == "" || kind == "text/html" {
			return provider.Errorf(provider.FaultProtocol, "it answered with %s instead of an event stream; check the base URL", kind)
		}
		return Failure(body)
	}
	if kind == "text/html" || message == "" {
		message = http.StatusText(res.StatusCode)
	}
	return &provider.Error{
		Fault:      provider.Classify(res.StatusCode, code, message),
		Message:    fmt.Sprintf("%s (status %d)", message, res.StatusCode),
		Status:     res.StatusCode,
		RetryAfter: retryAfter(res.Header),
	}
}

// Explain finds the code and the message in a provider's error, in any of the shapes that
// are in use: {"error":{"message","code","type"}}, {"error":"…"}, {"message"}, {"detail"},
// a list of one of these, or plain text. The message is one line of at most 500 characters.
func Explain(body []byte) (code, message string) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var text string
	if json.Unmarshal(body, &text) == nil {
		return "", oneLine(text)
	}
	var outer struct {
		Error   json.RawMessage
		Message json.RawMessage
		Detail  json.RawMessage
		Code    json.RawMessage
		Type    json.RawMessage
	}
	if json.Unmarshal(body, &outer) != nil {
		return "", oneLine(string(body))
	}
	var inner struct {
		Message json.RawMessage
		Code    json.RawMessage
		Type    json.RawMessage
	}
	if json.Unmarshal(outer.Error, &inner) != nil {
		inner.Message = outer.Error // a string, or absent
	}
	code = join(word(inner.Type), word(inner.Code))
	if code == "" {
		code = join(word(outer.Type), word(outer.Code))
	}
	for _, m := range []json.RawMessage{inner.Message, outer.Message, outer.Detail, outer.Error} {
		if s := word(m); s != "" {
			return code, oneLine(s)
		}
	}
	return code, code
}

// word returns a JSON string's value, or another value as it is written; null is "".
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func join(a, b string) string { return strings.TrimSpace(a + " " + b) }

// oneLine makes a provider's text fit for a message: valid UTF-8, no control characters,
// single spaces, at most maxErrorMessage characters.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(s); len(runes) > maxErrorMessage {
		s = string(runes[:maxErrorMessage]) + "…"
	}
	return s
}

// retryAfter reads how long the provider wants us to wait; 0 when it does not say.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(ms / 1000)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return bounded(s)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date")) // its clock, not ours
	if err != nil {
		now = time.Now()
	}
	return bounded(at.Sub(now).Seconds())
}

// bounded turns seconds into a duration from 0 to a day.
func bounded(seconds float64) time.Duration {
	const day = 24 * 60 * 60
	if !(seconds > 0) { // NaN too
		return 0
	}
	return time.Duration(min(seconds, day) * float64(time.Second))
}

// network names a failed exchange without the URL, which may hold a secret.
func network(err error) *provider.Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return provider.Errorf(provider.FaultNetwork, "the connection broke before the answer was complete")
	}
	return provider.Errorf(provider.FaultNetwork, "%s", oneLine(err.Error()))
}

// Failure returns the fault for an error that came inside an event stream.
func Failure(body []byte) *provider.Error {
	code, message := Explain(body)
	if message == "" {
		message = "it ended the answer with an error that says nothing"
	}
	fault := provider.Classify(0, code, message)
	if fault == provider.FaultProtocol {
		fault = provider.FaultOverload // it failed while it worked: worth another try
	}
	return &provider.Error{Fault: fault, Message: message}
}
