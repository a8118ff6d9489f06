package cursortest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
)

// identity is what the headers of one attempt say about it.
type identity struct{ requestID, original string }

// headers are those of every call of an attempt (section 1.4).
func (c *Client) headers(id identity) http.Header {
	h := http.Header{}
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	if c.o.Token != "" {
		h.Set("Authorization", "Bearer "+c.o.Token)
	}
	set("Connect-Protocol-Version", "1")
	set("User-Agent", "connect-es/1.6.1")
	set("X-Request-Id", id.requestID)
	set("X-Original-Request-Id", id.original)
	set("X-Blob-Encryption-Key", c.key)
	set("X-Ghost-Mode", "true")
	set("X-Cursor-Client-Type", "sdk")
	set("X-Cursor-Client-Version", "sdk-1.0.32")
	if !c.o.HTTP2 {
		set("X-Cursor-Streaming", "true")
	}
	if s := c.o.Subagent; s != nil {
		set("X-Parent-Request-Id", s.ParentRequestID)
		set("X-Root-Parent-Request-Id", s.RootRequestID)
		set("X-Parent-Agent-Tool-Call-Id", s.ToolCallID)
		if s.Direct {
			set("X-Direct-Meta-Parent-Child-Subagent", "true")
		}
	}
	return h
}

// streamHeaders are those of RunSSE and Run.
func (c *Client) streamHeaders(id identity) http.Header {
	h := c.headers(id)
	h.Set("Content-Type", cursorwire.Proto.StreamType())
	h.Set("Connect-Accept-Encoding", "gzip,br")
	return h
}

// appendTime is how long an append of size bytes may take: a minute, and a second for each 128 KiB.
func appendTime(size int) time.Duration {
	return time.Minute + time.Duration((1000*size+1<<17-1)>>17)*time.Millisecond
}

// appendHeaders are those of BidiAppend, whose body has size bytes.
func (c *Client) appendHeaders(id identity, size int) http.Header {
	h := c.headers(id)
	h.Set("Content-Type", cursorwire.Proto.UnaryType())
	h.Set("Connect-Timeout-Ms", strconv.FormatInt(appendTime(size).Milliseconds(), 10))
	if c.o.Gzip {
		h.Set("Content-Encoding", "gzip")
	}
	return h
}
