package cursor

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/guard"
	"github.com/roost-dev/roost/internal/session"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// offered is what the tests' server has: a model that thinks and sees, one that does neither and whose
// id looks like a variant, and two that share an id and a name.
func offered() []catalog.Model {
	return []catalog.Model{
		{
			Ref: session.ModelRef{Provider: "fake", ID: "test-model"}, Name: "Test model", Reasoning: true,
			Input: []string{catalog.InputText, catalog.InputImage}, ContextWindow: 1_000_000,
			ThinkingLevels: []session.Thinking{session.ThinkingOff, session.ThinkingMinimal, session.ThinkingLow, session.ThinkingHigh},
		},
		{
			Ref: session.ModelRef{Provider: "local", ID: "small:8b"}, Name: "Small", Input: []string{catalog.InputText},
			ContextWindow: 32_768, ThinkingLevels: []session.Thinking{session.ThinkingOff},
		},
		{
			Ref: session.ModelRef{Provider: "local", ID: "vendor/shared"}, Name: "Shared", Input: []string{catalog.InputText},
			ContextWindow: 128_000, ThinkingLevels: []session.Thinking{session.ThinkingOff},
		},
		{
			Ref: session.ModelRef{Provider: "fake", ID: "vendor/shared"}, Name: "Shared", Input: []string{catalog.InputText},
			ContextWindow: 64_000, ThinkingLevels: []session.Thinking{session.ThinkingHigh},
		},
	}
}

// newTestCalls returns the routes of a server, changed by edit.
func newTestCalls(t *testing.T, edit func(*callsOptions)) http.Handler {
	t.Helper()
	opt := callsOptions{
		Models:   offered,
		Default:  func() session.ModelRef { return session.ModelRef{Provider: "fake", ID: "test-model"} },
		Aliases:  map[string]session.ModelRef{"claude-4.5-sonnet": {Provider: "fake", ID: "test-model"}, "gone": {Provider: "fake", ID: "gone"}},
		Thinking: session.ThinkingMedium,
		Blobs:    new(blob.Memory),
	}
	if edit != nil {
		edit(&opt)
	}
	mux := http.NewServeMux()
	newCalls(opt).register(mux)
	return mux
}

// askCall makes a call and returns its answer.
func askCall(t *testing.T, h http.Handler, codec cursorwire.Codec, path string, body []byte, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", codec.UnaryType())
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// answerCall makes a call that succeeds and reads the answer into m.
func answerCall(t *testing.T, h http.Handler, codec cursorwire.Codec, path string, request, m proto.Message) {
	t.Helper()
	body, err := codec.Append(nil, request)
	if err != nil {
		t.Fatal(err)
	}
	w := askCall(t, h, codec, path, body)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != codec.UnaryType() {
		t.Fatalf("%s in %s: status %d, type %s: %s", path, codec, w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	if err := codec.Decode(w.Body.Bytes(), m); err != nil {
		t.Fatalf("%s in %s: %v", path, codec, err)
	}
}

// everyCall is every path with a call of one message.
func everyCall() []string {
	paths := slices.Concat(emptyCalls, slices.Collect(maps.Keys(newCalls(callsOptions{}).handlers())), []string{pathUpload})
	slices.Sort(paths)
	return paths
}

func TestEveryCallAnswersInTheCodecOfItsRequest(t *testing.T) {
	h := newTestCalls(t, nil)
	ids, err := cursorwire.JSON.Append(nil, &aiserverv1.GetUsableModelsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]map[cursorwire.Codec][]byte{ // the calls that need something
		agentService + "NotifyConversationClone":    {cursorwire.JSON: []byte(`{"conversationId":"b","sourceConversationId":"a"}`), cursorwire.Proto: []byte("\n\x01b\x12\x01a")},
		agentService + "UpdateConversationMetadata": {cursorwire.JSON: []byte(`{"conversationId":"b"}`), cursorwire.Proto: []byte("\n\x01b")},
	}
	for _, path := range everyCall() {
		for codec, none := range map[cursorwire.Codec][]byte{cursorwire.JSON: ids, cursorwire.Proto: nil} {
			body := none
			if b := bodies[path]; b != nil {
				body = b[codec]
			}
			w := askCall(t, h, codec, path, body)
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != codec.UnaryType() {
				t.Errorf("%s in %s: status %d, type %s: %s", path, codec, w.Code, w.Header().Get("Content-Type"), w.Body)
			}
			if codec == cursorwire.JSON && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s: no JSON: %q", path, w.Body)
			}
			if !isMessage(w.Body.Bytes()) && codec == cursorwire.Proto {
				t.Errorf("%s: no protobuf: %q", path, w.Body)
			}
			if slices.Contains(emptyCalls, path) && strings.Trim(w.Body.String(), "{}") != "" {
				t.Errorf("%s is not empty: %q", path, w.Body)
			}
		}
	}
}

func isMessage(data []byte) bool {
	for len(data) > 0 {
		_, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return false
		}
		data = data[n:]
	}
	return true
}

// A client that probes for a network gets 200 however it asks: it gives a run up otherwise (R30).
func TestIsConnectedIsAlwaysThere(t *testing.T) {
	h := newTestCalls(t, nil)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		for _, contentType := range []string{"", "application/proto", "application/connect+proto", "text/plain"} {
			r := httptest.NewRequestWithContext(t.Context(), method, "/aiserver.v1.NetworkService/IsConnected", nil)
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK || w.Body.Len() != 0 {
				t.Errorf("%s %q: status %d, body %q", method, contentType, w.Code, w.Body)
			}
		}
	}
}

func TestUnknownCalls(t *testing.T) {
	var log bytes.Buffer
	h := newTestCalls(t, func(o *callsOptions) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 3 {
		for path, want := range map[string]string{
			"/aiserver.v1.AiService/StreamCpp":      `{"code":"unimplemented"}`,
			"/aiserver.v1.FileSyncService/FSUpload": `{"code":"unimplemented"}`,
			"/agent.v1.AgentService/Later":          `{"code":"unimplemented"}`,
			"/aiserver.v2.AiService/X":              "404 page not found\n",
			"/favicon.ico":                          "404 page not found\n",
		} {
			w := askCall(t, h, cursorwire.Proto, path, []byte("x"))
			if w.Code != http.StatusNotFound || w.Body.String() != want {
				t.Errorf("%s: status %d, %q", path, w.Code, w.Body)
			}
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("%d lines, want one for each call of the protocol:\n%s", n, &log)
	}
	log.Reset()
	askCall(t, h, cursorwire.Proto, "/agent.v1."+strings.Repeat("x", 1000), nil)
	for i := range 2 * maxUnknown {
		askCall(t, h, cursorwire.Proto, "/agent.v1.X/"+strings.Repeat("y", i%100)+string(rune('a'+i/100)), nil)
	}
	if n := strings.Count(log.String(), "\n"); n != maxUnknown-3 {
		t.Errorf("%d lines of a client that makes paths up, want %d", n, maxUnknown-3)
	}
}

func TestUnaryRefusals(t *testing.T) {
	h := newTestCalls(t, nil)
	path := aiService + "CountTokens"
	for name, tc := range map[string]struct {
		method, contentType, encoding, body string
		want                                int
	}{
		"GET":               {http.MethodGet, "application/proto", "", "", 405},
		"stream":            {http.MethodPost, "application/connect+proto", "", "", 415},
		"form":              {http.MethodPost, "text/plain", "", "", 415},
		"unknown encoding":  {http.MethodPost, "application/proto", "br", "x", 501},
		"not gzip":          {http.MethodPost, "application/proto", "gzip", "xxxxxxxxxxxxxxxxxxxx", 400},
		"too long":          {http.MethodPost, "application/proto", "", strings.Repeat("x", maxUnary+1), 429},
		"too long unzipped": {http.MethodPost, "application/proto", "gzip", zipped(t, strings.Repeat("x", maxUnary+1)), 429},
		"longest":           {http.MethodPost, "application/proto", "", strings.Repeat("x", maxUnary), 200},
		"zipped":            {http.MethodPost, "application/json; charset=utf-8", "gzip", zipped(t, "{}"), 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, path, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.contentType)
		r.Header.Set("Content-Encoding", tc.encoding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s: status %d, want %d: %.200s", name, w.Code, tc.want, w.Body)
		}
	}
	if w := askCall(t, h, cursorwire.JSON, agentService+"NameAgent", []byte("{")); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "invalid_argument") {
		t.Errorf("half a message: %d %s", w.Code, w.Body)
	}
}

func zipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, s); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// startCalls serves the calls behind the guard, as they are in a server.
func startCalls(t *testing.T, edit func(*callsOptions)) (url, token string) {
	t.Helper()
	secret, _, err := guard.LoadToken(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(nil)
	g, err := guard.New(guard.Options{Port: srv.Listener.Addr().(*net.TCPAddr).Port, Token: secret, Keep: TokenPaths()})
	if err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler = g.Handler(guard.LimitBody(1<<20, newTestCalls(t, edit), LargePaths()...))
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL, secret.Reveal()
}

// The calls of a run by the SDK 1.0.32, in its order and with its headers, except the run itself.
var sdkCalls = []struct {
	path, contentType, body string
	want                    string // in the answer
}{
	{pathExchange, "application/json", "{}", "accessToken"},
	{dashboardService + "GetUserPrivacyMode", "application/proto", "\x08\x01", "\x08\x01"},
	{"/v1/models", "", "", `{"id":"fake/test-model","displayName":"Test model"}`},
	{pathExchange, "application/json", "{}", "accessToken"},
	{"/aiserver.v1.ServerConfigService/GetServerConfig", "application/proto", "", "8\x01"},
	{pathExchange, "application/json", "{}", "accessToken"},
	{analyticsService + "BootstrapStatsig", "application/json", "{}", "nal_agent_retries"},
	{pathExchange, "application/json", "{}", "accessToken"},
	{dashboardService + "GetTeamAdminSettingsOrEmptyIfNotInTeam", "application/proto", "", ""},
	{pathExchange, "application/json", "{}", "accessToken"},
	{pathExchange, "application/json", "{}", "accessToken"},
	{pathExchange, "application/json", "{}", "accessToken"},
	{analyticsService + "TrackEvents", "application/proto", "\x0a\x10\x0a\x0esdk.run.create", ""},
}

func TestCallsOfTheSDKInItsOrder(t *testing.T) {
	url, key := startCalls(t, nil)
	token := key
	for i, call := range sdkCalls {
		method, bearer := http.MethodPost, token
		if call.contentType == "" {
			method, bearer = http.MethodGet, key
		}
		status, body := overNetwork(t, method, url+call.path, bearer, call.contentType, call.body)
		if status != http.StatusOK || !strings.Contains(body, call.want) {
			t.Fatalf("call %d, %s: status %d, %q", i, call.path, status, body)
		}
		if call.path == pathExchange {
			token = accessTokenOf(t, body)
		}
	}
	if token != key {
		t.Errorf("the access token is not the one that the guard takes")
	}
}

func accessTokenOf(t *testing.T, body string) string {
	t.Helper()
	var reply struct{ AccessToken string }
	if err := json.Unmarshal([]byte(body), &reply); err != nil {
		t.Fatal(err)
	}
	return reply.AccessToken
}

func overNetwork(t *testing.T, method, url, token, contentType, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": contentType, "Accept": "*/*", "Accept-Language": "*",
		"Sec-Fetch-Mode": "cors", "User-Agent": "node", "X-Ghost-Mode": "true",
		"X-Cursor-Client-Version": "sdk-1.0.32", "X-Cursor-Client-Type": "sdk",
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// Nothing works with a key that roost has not given out (W55), and only the login tells a token.
func TestOnlyTheTokenOpensAndOnlyTheLoginTellsIt(t *testing.T) {
	url, token := startCalls(t, nil)
	for _, path := range append(everyCall(), pathExchange, pathPoll, "/oauth/token", "/auth/logout", "/v1/traces") {
		if status, _ := overNetwork(t, http.MethodPost, url+path, "key_dummy", "application/json", "{}"); status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
			t.Errorf("%s with a foreign key: %d", path, status)
		}
		_, body := overNetwork(t, http.MethodPost, url+path, token, "application/json", "{}")
		if told := strings.Contains(body, token); told != slices.Contains(TokenPaths(), path) {
			t.Errorf("%s: tells the token: %v", path, told)
		}
	}
}

// W53: what a client or a configuration knows of keys comes back from no call, and no model sees it.
func TestNoKeyInAnyAnswer(t *testing.T) {
	const planted = "sk-planted-hunter2"
	var asked []string
	h := newTestCalls(t, func(o *callsOptions) {
		o.Models, o.Aliases = configured(t, planted)
		o.Ask = func(_ context.Context, _ session.ModelRef, system, text string) (string, error) {
			asked = append(asked, system, text)
			return "An answer", nil
		}
	})
	credentials := `"apiKeyCredentials":{"apiKey":"` + planted + `"},"credentials":"` + planted + `"`
	for _, path := range everyCall() {
		body := `{` + credentials + `,"messages":[{"text":"hi"}],"diffs":["+x"],"userMessage":"hi","conversationId":"c","sourceConversationId":"d"}`
		w := askCall(t, h, cursorwire.JSON, path, []byte(body), "Authorization", "Bearer "+planted)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), planted) || strings.Contains(strings.ToLower(w.Body.String()), "credential") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if len(asked) != 8 || strings.Contains(strings.Join(asked, ""), planted) {
		t.Errorf("%d texts went to the model: %q", len(asked), asked)
	}
}

// configured returns the models and aliases of a configuration that is full of keys.
func configured(t *testing.T, key string) (func() []catalog.Model, map[string]session.ModelRef) {
	t.Helper()
	cfg, err := config.Parse("c.yaml", []byte(`
providers:
  fake:
    api: openai-chat
    api_key: `+key+`
    base_url: https://example.com/v1
    headers: {X-Key: `+key+`}
    models: [{id: test-model}]
aliases: {sonnet: fake/test-model}
`), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var list []catalog.Model
	for _, p := range cfg.Providers {
		for _, m := range p.Models {
			list = append(list, new(catalog.Catalog).Lookup(session.ModelRef{Provider: p.Name, ID: m.ID}, "", catalog.APIOpenAIChat, catalog.Override{}))
		}
	}
	return func() []catalog.Model { return list }, cfg.Aliases
}
