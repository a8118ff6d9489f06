package webtool

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/tool"
)

// A provider that says nothing is given up after the limit, to the second.
func TestSearchTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSearch(SearchOptions{Provider: SearXNG, URL: "http://a.example"}).(*search)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		s.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
		start := time.Now()
		res := s.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"query":"q"}`)}, nil)
		if took := time.Since(start); took != SearchTimeout || !res.IsError || !strings.Contains(res.Text, "no answer within 20s") {
			t.Errorf("after %v: %+v", took, res)
		}
	})
}
