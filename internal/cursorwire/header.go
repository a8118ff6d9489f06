package cursorwire

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Headers are what the headers of a request say (section 1.4). What a client leaves out is zero. All
// of it is the client's word: the ids are neither checked nor unique.
type Headers struct {
	// Token is the bearer token, and a secret.
	Token string
	// RequestID is that of the stream; an append repeats it.
	RequestID string
	// OriginalRequestID is the RequestID of the first attempt; a client's retries keep it.
	OriginalRequestID string
	// ParentRequestID, RootRequestID and ParentToolCallID are set on the run of a subagent.
	ParentRequestID, RootRequestID, ParentToolCallID string
	// ClientType is "sdk", "ide" or "cli" as far as is known; ClientVersion is like "sdk-1.0.32".
	ClientType, ClientVersion string
	UserAgent                 string
	// Streaming is true on every call of the transport over HTTP/1.1.
	Streaming bool
	// Private asks that nothing is kept for training: the ghost mode.
	Private bool
	// AllowedTools and ExcludedTools name arms of agent.v1.ToolCall, like "shell_tool_call". A model
	// gets no other tools than the allowed ones, unless the list is empty, and none of the excluded.
	AllowedTools, ExcludedTools []string
	// Timeout is how long the client waits; 0 means for ever.
	Timeout time.Duration
}

// ReadHeaders reads h. What cannot be read counts as absent.
func ReadHeaders(h http.Header) Headers {
	return Headers{
		Token:             bearer(h.Get("Authorization")),
		RequestID:         text(h, "X-Request-Id"),
		OriginalRequestID: text(h, "X-Original-Request-Id"),
		ParentRequestID:   text(h, "X-Parent-Request-Id"),
		RootRequestID:     text(h, "X-Root-Parent-Request-Id"),
		ParentToolCallID:  text(h, "X-Parent-Agent-Tool-Call-Id"),
		ClientType:        text(h, "X-Cursor-Client-Type"),
		ClientVersion:     text(h, "X-Cursor-Client-Version"),
		UserAgent:         text(h, "User-Agent"),
		Streaming:         text(h, "X-Cursor-Streaming") == "true",
		Private:           text(h, "X-Ghost-Mode") == "true",
		AllowedTools:      list(h, "X-Cursor-Agent-Allowed-Tools"),
		ExcludedTools:     list(h, "X-Cursor-Agent-Exclude-Tools"),
		Timeout:           milliseconds(text(h, "Connect-Timeout-Ms")),
	}
}

// Offers reports whether a tool with this arm of agent.v1.ToolCall may be offered to the model.
func (h *Headers) Offers(arm string) bool {
	return (len(h.AllowedTools) == 0 || slices.Contains(h.AllowedTools, arm)) && !slices.Contains(h.ExcludedTools, arm)
}

func text(h http.Header, name string) string { return strings.TrimSpace(h.Get(name)) }

func list(h http.Header, name string) []string {
	var all []string
	for _, value := range h.Values(name) {
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, item)
			}
		}
	}
	return all
}

func bearer(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// milliseconds is 0 for what is no number or too large a one.
func milliseconds(s string) time.Duration {
	ms, err := strconv.ParseUint(s, 10, 64)
	if err != nil || ms > math.MaxInt64/uint64(time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
