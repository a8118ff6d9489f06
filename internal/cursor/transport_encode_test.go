package cursor

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Each kind of stream has its encoding, its end and its head (section 1.3).
func TestEncodings(t *testing.T) {
	for name, c := range map[string]struct {
		path, contentType string
		codec             cursorwire.Codec
		client            string
		request           proto.Message
		want              []string
	}{
		"protobuf": {cursorwire.PathRunSSE, "application/connect+proto", cursorwire.Proto, "sdk", &agentv1.BidiRequestId{RequestId: " id\n"}, []string{"one", "x"}},
		"JSON":     {cursorwire.PathRunSSE, "application/connect+json", cursorwire.JSON, "sdk", &agentv1.BidiRequestId{RequestId: "id"}, []string{"one", "x"}},
		"events":   {cursorwire.PathRunSSE, "text/event-stream", cursorwire.Proto, "ide", &agentv1.BidiRequestId{RequestId: "id"}, []string{"one", "x"}},
		"polled": {
			cursorwire.PathRunPoll, "application/connect+proto", cursorwire.Proto, "ide",
			&agentv1.BidiPollRequest{RequestId: &agentv1.BidiRequestId{RequestId: "id"}},
			[]string{"0:one", "1:x", "2:eof"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHub(hubOptions{Drive: echo, EventStream: func(h cursorwire.Headers) bool { return h.ClientType == "ide" }})
				defer h.Close()
				post(t.Context(), h, "id", 0, runRequest("one"))
				post(t.Context(), h, "id", 1, execResult(1))
				mux := http.NewServeMux()
				h.register(mux)
				s := newSocket()
				<-open(t.Context(), s, func(w http.ResponseWriter, r *http.Request) {
					r.Header.Set("X-Cursor-Client-Type", c.client)
					mux.ServeHTTP(w, r)
				}, c.path, c.codec, c.request)
				messages, end, ended := s.envelopes(t)
				var got []string
				for _, data := range messages {
					got = append(got, decodeText(t, c.path, c.codec, data))
				}
				if strings.Join(got, ",") != strings.Join(c.want, ",") || !ended || end != nil {
					t.Errorf("got %q, ended %v with %v", got, ended, end)
				}
				if ct, x, cache := s.header.Get("Content-Type"), s.header.Get("X-Accel-Buffering"), s.header.Get("Cache-Control"); ct != c.contentType || x != "no" || cache != "no-cache" {
					t.Errorf("headers %q, %q, %q", ct, x, cache)
				}
			})
		})
	}
}

// decodeText returns the text of a message, and its number if it has one.
func decodeText(t *testing.T, path string, codec cursorwire.Codec, data []byte) string {
	t.Helper()
	prefix := ""
	if path == cursorwire.PathRunPoll {
		p := new(agentv1.BidiPollResponse)
		if err := codec.Decode(data, p); err != nil {
			t.Fatal(err)
		}
		prefix = fmt.Sprintf("%d:", p.GetSeqno())
		if p.GetEof() {
			return prefix + "eof"
		}
		var err error
		if data, err = hex.DecodeString(p.GetData()); err != nil {
			t.Fatal(err)
		}
	}
	m := new(agentv1.AgentServerMessage)
	if err := codec.Decode(data, m); err != nil {
		t.Fatal(err)
	}
	return prefix + m.GetInteractionUpdate().GetTextDelta().GetText()
}

// What is long is written in parts, each with a time of its own, and all of it comes.
func TestLongBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := make(chan link, 1)
		h := newHub(hubOptions{Drive: held(links)})
		defer h.Close()
		post(t.Context(), h, "id", 0, runRequest("go"))
		l := <-links
		const longer = maxWrite + 1 // than what is written at once
		l.Send(textMessage(strings.Repeat("y", longer)), 1)
		for i := range 100 {
			l.Send(textMessage(strings.Repeat("x", 10<<10)), uint64(i+2))
		}
		l.End(nil)
		s := newSocket()
		<-openSSE(t.Context(), h, s, "id")
		messages, end, ended := s.envelopes(t)
		if len(messages) != 101 || end != nil || !ended || l.Written() != 101 {
			t.Errorf("%d messages, ended %v with %v, written up to %d", len(messages), ended, end, l.Written())
		}
		if s.longest > longer+100 {
			t.Errorf("%d bytes at once", s.longest)
		}
	})
}
