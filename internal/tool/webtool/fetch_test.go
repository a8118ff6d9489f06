package webtool_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/webtool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func anywhere(netip.AddrPort) error { return nil }

func fetch(ctx context.Context, allow webtool.Policy, address string, offset int) tool.Result {
	in, err := json.Marshal(map[string]any{"url": address, "offset": offset})
	if err != nil {
		panic(err)
	}
	return webtool.New(allow).Run(ctx, tool.Call{Input: in}, nil)
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func page(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		_, _ = io.WriteString(w, body)
	}
}

func TestKinds(t *testing.T) {
	html := `<html><head><title>T</title><style>HIDDEN</style></head><body><!-- HIDDEN --><script>HIDDEN("</div>")</script><h1>Head</h1><p>One <b>two</b> <a href="/x?a=1&amp;b=2">three</a></p><ul><li>four</li></ul><table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>`
	for _, c := range []struct{ name, kind, body, want string }{
		{"html", "text/html; charset=utf-8", html, "# Head\n\nOne **two** [three](SERVER/x?a=1&b=2)\n\n- four\n\n"},
		{"html by its looks", "", html, "# Head"},
		{"text", "text/plain", "a <b> *c*\n", "\n\na <b> *c*"},
		{"json", "application/vnd.x+json", `{"a":1}`, `{"a":1}`},
		{"latin 1 by its server", "text/plain; charset=iso-8859-1", "caf\xe9", "café"},
		{"latin 1 by custom", "text/plain", "caf\xe9", "café"},
		{"shift-jis by its page", "text/html", "<meta charset=shift_jis><p>\x93\xfa\x96\x7b", "日本"},
		{"utf-16", "text/plain; charset=utf-16le", "h\x00i\x00", "hi"},
		{"unknown charset", "text/plain; charset=x-none", "plain", "plain"},
		{"nul", "text/plain", "a\x00b", "a\uFFFDb"},
		{"empty", "text/plain", "", "[The page has no text.]"},
	} {
		server := serve(t, page(c.kind, c.body))
		res := fetch(t.Context(), anywhere, server, 0)
		if res.IsError || !strings.Contains(strings.ReplaceAll(res.Text, server, "SERVER"), c.want) || strings.Contains(res.Text, "HIDDEN") || !utf8.ValidString(res.Text) {
			t.Errorf("%s: got %q, want %q", c.name, res.Text, c.want)
		}
	}
	for _, c := range []struct{ kind, body string }{{"image/png", "x"}, {"application/pdf", "%PDF"}, {"", "\x00\x01\x02\x03"}, {"application/octet-stream", "\x7fELF\x00\x00"}} {
		if res := fetch(t.Context(), anywhere, serve(t, page(c.kind, c.body)), 0); !res.IsError || !strings.Contains(res.Text, "only text can be fetched") {
			t.Errorf("%s: got %q", c.kind, res.Text)
		}
	}
}

func TestLongPagesGoOn(t *testing.T) {
	var want strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&want, "line %d é\n", i)
	}
	server := serve(t, page("text/plain", want.String()))
	var got strings.Builder
	for offset := 0; ; {
		res := fetch(t.Context(), anywhere, server, offset)
		_, text, _ := strings.Cut(res.Text, "\n\n")
		text, notice, more := strings.Cut(text, "\n\n[Showing")
		if res.IsError || len(text) > webtool.MaxText || strings.Count(res.Text, "\n") > tool.MaxLines+4 {
			t.Fatalf("at %d: %d bytes, %v", offset, len(text), res.IsError)
		}
		got.WriteString(text + "\n")
		if !more {
			break
		}
		_, next, _ := strings.Cut(notice, "offset=")
		if _, err := fmt.Sscanf(next, "%d", &offset); err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != want.String() {
		t.Error("the pieces are not the page")
	}
	if res := fetch(t.Context(), anywhere, server, want.Len()+5); !res.IsError {
		t.Errorf("beyond the end: %q", res.Text)
	}
}

func TestHugeBodies(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte("é"), 32<<20))
	_ = z.Close()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if r.URL.Path == "/packed" {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes())
			return
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return
			}
		}
	})
	for _, path := range []string{"/packed", "/endless"} {
		res := fetch(t.Context(), anywhere, server+path, 0)
		if res.IsError || len(res.Text) > webtool.MaxText+tool.MaxNotice || !strings.Contains(res.Text, "The page is larger than 2.0 MiB") || strings.Contains(res.Text, "Ã") {
			t.Errorf("%s: %d bytes, %.200q", path, len(res.Text), res.Text)
		}
	}
}

func TestStatus(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone away", http.StatusGone) })
	if res := fetch(t.Context(), anywhere, server, 0); !res.IsError || !strings.Contains(res.Text, "Status: 410 Gone\n\ngone away") {
		t.Errorf("got %+v", res)
	}
}

func TestRedirects(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/end":
			_, _ = fmt.Fprint(w, "arrived")
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		}
	})
	if res := fetch(t.Context(), anywhere, server+"/ok", 0); res.IsError || !strings.Contains(res.Text, "/end\n\narrived") {
		t.Errorf("got %+v", res)
	}
	for _, path := range []string{"/loop", "/?to=file:///etc/passwd", "/?to=http://u:p@127.0.0.1/", "/?to=http://0x7f.1/", "/?to=gopher://x/"} {
		if res := fetch(t.Context(), anywhere, server+path, 0); !res.IsError || !strings.Contains(res.Text, "not an address that can be fetched") {
			t.Errorf("%s: got %+v", path, res)
		}
	}
}

// The address that is dialled is judged, on the way of a redirect too, and by the policy
// that was given.
func TestForbiddenAddresses(t *testing.T) {
	hits := 0
	server := serve(t, func(http.ResponseWriter, *http.Request) { hits++ })
	port := server[strings.LastIndexByte(server, ':'):]
	for _, address := range []string{server, "http://localhost" + port, "http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port, "http://127.1.2.3" + port, "http://0.0.0.0" + port, "http://169.254.169.254/latest/meta-data/"} {
		if res := fetch(t.Context(), nil, address, 0); !res.IsError || !strings.Contains(res.Text, "not a public address") {
			t.Errorf("%s: got %+v", address, res)
		}
	}
	for _, address := range []string{"http://2130706433" + port, "http://0177.0.0.1" + port, "http://0x7f000001" + port, "http://127.1" + port, "http://good.example@127.0.0.1" + port, "ftp://x/", "file:///etc/passwd", "http:///x", "x", "http:x", "http://%zz/"} {
		if res := fetch(t.Context(), nil, address, 0); !res.IsError || !strings.Contains(res.Text, "not an address that can be fetched") {
			t.Errorf("%s: got %+v", address, res)
		}
	}
	if hits != 0 {
		t.Errorf("%d requests arrived", hits)
	}

	inner, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	outer := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, server, http.StatusFound) })
	errInner := errors.New("not the inner one")
	res := fetch(t.Context(), func(ap netip.AddrPort) error {
		if ap.String() == inner.Host {
			return errInner
		}
		return nil
	}, outer, 0)
	if !res.IsError || !strings.Contains(res.Text, errInner.Error()) || hits != 0 {
		t.Errorf("a redirect to a forbidden address: %+v, %d requests", res, hits)
	}
}

func TestPublic(t *testing.T) {
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"} {
		if err := webtool.Public(netip.AddrPortFrom(netip.MustParseAddr(a), 443)); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
	for _, a := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "168.63.129.16", "240.0.0.1",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2001::1", "fec0::1", "::127.0.0.1",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1",
	} {
		if err := webtool.Public(netip.AddrPortFrom(netip.MustParseAddr(a), 80)); err == nil {
			t.Errorf("%s counts as public", a)
		}
	}
	if webtool.Public(netip.AddrPort{}) == nil {
		t.Error("no address at all counts as public")
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	})
	if res := fetch(ctx, anywhere, server, 0); !res.IsError || !strings.HasPrefix(res.Text, "Aborted") {
		t.Errorf("got %+v", res)
	}
}

func TestInput(t *testing.T) {
	f := webtool.New(nil)
	for _, in := range []string{``, `{}`, `{"url":""}`, `{"url":1}`, `{"url":"http://a","offset":-1}`} {
		if res := f.Run(t.Context(), tool.Call{Input: json.RawMessage(in)}, nil); !res.IsError || !strings.HasPrefix(res.Text, "fetch: invalid input") {
			t.Errorf("%s: got %+v", in, res)
		}
	}
	if s := f.Spec(); s.Name != "fetch" || !s.Repeatable {
		t.Errorf("spec: %+v", s)
	}
}
